"""docs/how_to_add.md: every diff applies to the package as it is, and the lines after it run."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support import warm_python
from support.processes import environment

REPOSITORY = Path(__file__).parents[1]
PAGE = (REPOSITORY / "docs" / "how_to_add.md").read_text(encoding="utf-8")
SECTION = re.compile(r"^## … (?P<name>.+?)$.*?^```diff\n(?P<diff>.*?)^```.*?^```python\n(?P<use>.*?)^```", re.M | re.S)
SECTIONS = {match["name"]: match for match in SECTION.finditer(PAGE)}
# How many files a change of this kind may touch.
MOST_FILES = {"decoding constraint": 2, "metric": 1, "learning-rate schedule": 2, "loss": 2}


def test_the_page_has_all_sections() -> None:
    assert SECTIONS.keys() == MOST_FILES.keys()
    assert PAGE.count("\n## ") == len(SECTIONS)


@pytest.mark.parametrize("name", MOST_FILES)
def test_the_change_applies(name: str) -> None:
    diff = SECTIONS[name]["diff"]
    assert len(re.findall(r"^\+\+\+ b/", diff, re.M)) <= MOST_FILES[name]
    check = ["git", "apply", "--check", "-"]
    applied = subprocess.run(check, input=diff, cwd=REPOSITORY, capture_output=True, text=True)
    assert applied.returncode == 0, applied.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", MOST_FILES)
def test_what_the_change_adds_works(name: str, tmp_path: Path) -> None:
    diff, use = SECTIONS[name]["diff"], SECTIONS[name]["use"]
    assert warm_python.run(use, cwd=tmp_path).returncode, "it works without the change"
    for folder in ("translator", "configs"):
        shutil.copytree(REPOSITORY / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    applied = subprocess.run(["git", "apply", "-"], input=diff, cwd=tmp_path, capture_output=True, text=True)
    assert applied.returncode == 0, applied.stderr
    run = [sys.executable, "-c", use]
    used = subprocess.run(run, cwd=tmp_path, env=path_to(tmp_path), capture_output=True, text=True)
    assert used.returncode == 0, used.stderr


def path_to(folder: Path) -> dict[str, str]:
    """The environment of a process that finds the changed package first."""
    return environment() | {"PYTHONPATH": str(folder)}
