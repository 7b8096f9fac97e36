"""The reading order of docs/architecture.md: complete, and short enough for an afternoon."""

import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
PACKAGE = REPOSITORY / "translator"
PAGE = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")
MOST_LINES = 3_000
SEARCH = ("hypotheses", "constraints", "greedy_and_sampling", "beam", "ensemble", "search")
# Further objectives are read when they are used: the loop is complete with the plain one.
LOOP = (
    "objectives/cross_entropy",
    "schedule",
    "optimizer",
    "updater",
    "progress",
    "validation",
    "validation_result",
    "trainer",
)


def reading_order() -> list[Path]:
    section = PAGE.split("## Reading order")[1].split("\n## ")[0]
    stations = "\n".join(re.findall(r"^\d\. .*?(?=^\d\. |^\n)", section + "\n\n", re.M | re.S))
    return [PACKAGE / name for name in re.findall(r"`([a-z_/]+\.py)`", stations)]


def test_it_names_every_file_once() -> None:
    rooms = ("attention", "models")
    every_file = {path for room in rooms for path in (PACKAGE / room).glob("*.py") if path.name != "__init__.py"}
    for room, names in (("decoding", SEARCH), ("training", LOOP)):
        every_file |= {PACKAGE / room / f"{name}.py" for name in names}
    listed = reading_order()
    assert set(listed) == every_file
    assert len(set(listed)) == len(listed)


def test_it_is_short() -> None:
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in reading_order()) < MOST_LINES
