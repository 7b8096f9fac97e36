"""Which browser opens the web pages in tests, and that people and machines that run them are told to have one."""

from pathlib import Path

import pytest
import yaml

from support.page_visits import BROWSERS, find_browser

REPOSITORY = Path(__file__).parents[1]


@pytest.mark.parametrize("name", BROWSERS)
def test_it_is_found_by_each_of_its_names(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_browser() is None
    (tmp_path / name).touch(mode=0o755)
    assert find_browser() == str(tmp_path / name)


def test_contributors_and_the_nightly_job_have_one() -> None:
    advice = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    workflow = yaml.safe_load((REPOSITORY / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8"))
    commands = [step["run"] for step in workflow["jobs"]["slow"]["steps"] if "run" in step]
    installing = commands.index(next(command for command in commands if "apt-get install" in command))
    assert installing < commands.index("make test-slow")
    for name in BROWSERS:
        assert f"`{name}`" in advice
        assert f"which {name}" in commands[installing]
