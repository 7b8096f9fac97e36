"""Links between the pages of the documentation lead somewhere."""

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
PAGES = [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md")]
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """Those that GitHub gives to the headings of a page: lower case, hyphens for spaces, no punctuation."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_links_to_files_and_headings_exist(page: Path) -> None:
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    targets = [target for target in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in target]
    missing = []
    for target in targets:
        name, _, anchor = target.partition("#")
        file = (page.parent / name) if name else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            missing.append(target)
    assert missing == []
