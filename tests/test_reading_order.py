"""The reading order of docs/architecture.md: complete, and short enough for an afternoon."""

import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
PACKAGE = REPOSITORY / "translator"
PAGE = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")
MOST_LINES = 3_000


def reading_order() -> list[Path]:
    section = PAGE.split("## Reading order")[1].split("\n## ")[0]
    stations = "\n".join(re.findall(r"^\d\. .*?(?=^\d\. |^\n)", section + "\n\n", re.M | re.S))
    return [PACKAGE / name for name in re.findall(r"`([a-z_/]+\.py)`", stations)]


def test_it_names_every_file_of_attention_and_models() -> None:
    listed = reading_order()
    rooms = [path for room in ("attention", "models") for path in (PACKAGE / room).glob("*.py")]
    assert {path for path in rooms if path.name != "__init__.py"} <= set(listed)
    assert len(set(listed)) == len(listed)


def test_it_is_short() -> None:
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in reading_order()) < MOST_LINES
