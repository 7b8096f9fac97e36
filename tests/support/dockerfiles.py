"""Docker files as instructions, and the Python packages and modules of an image that is made from one."""

import importlib.metadata
import re
import shlex
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

DOCKER = Path(__file__).parents[2] / "docker"
FILES = sorted(path for path in DOCKER.iterdir() if not path.name.endswith(".dockerignore"))
SMALL_IMAGE = DOCKER / "Dockerfile.ctranslate2"
OPTIONS_WITH_VALUES = ("-c", "--constraint", "--build-constraint")  # of pip install


@dataclass(frozen=True)
class Instruction:
    name: str
    arguments: str  # on one line


def instructions(path: Path) -> list[Instruction]:
    lines = path.read_text(encoding="utf-8").splitlines()
    text = "\n".join(line for line in lines if line.strip() and not line.lstrip().startswith("#"))
    joined = re.sub(r"\\\n\s*", "", text)
    return [Instruction(*line.split(maxsplit=1)) for line in joined.splitlines()]


def stages(path: Path) -> list[list[Instruction]]:
    """The instructions of each stage, which begin with its FROM."""
    result: list[list[Instruction]] = []
    for instruction in instructions(path):
        if instruction.name == "FROM":
            result.append([])
        if result:
            result[-1].append(instruction)
    return result


def pip_installs(stage: Iterable[Instruction]) -> list[list[str]]:
    """The arguments of every `pip install`."""
    commands = [
        shlex.split(command)
        for instruction in stage
        if instruction.name == "RUN"
        for command in instruction.arguments.split("&&")
    ]
    return [command[2:] for command in commands if Path(command[0]).name == "pip" and command[1] == "install"]


def named_packages(arguments: list[str]) -> set[str]:
    """The packages that a `pip install` names, without this one."""
    names, is_value = set(), False
    for argument in arguments:
        if not is_value and not argument.startswith(("-", ".")):
            names.add(str(canonicalize_name(Requirement(argument).name)))
        is_value = argument in OPTIONS_WITH_VALUES
    return names


def with_dependencies(packages: Iterable[str]) -> set[str]:
    """The packages, which are installed here too, and everything that they need."""
    found: set[str] = set()
    waiting = list(packages)
    while waiting:
        name = str(canonicalize_name(waiting.pop()))
        if name in found:
            continue
        found.add(name)
        requirements = map(Requirement, importlib.metadata.requires(name) or [])
        waiting += [one.name for one in requirements if one.marker is None or one.marker.evaluate({"extra": ""})]
    return found


def importable_modules(packages: Iterable[str]) -> set[str]:
    """The top-level modules that can be imported where only these packages and this one are installed."""
    installed = set(packages)
    modules = {"translator", *sys.stdlib_module_names}
    for module, owners in importlib.metadata.packages_distributions().items():
        if not installed.isdisjoint(canonicalize_name(owner) for owner in owners):
            modules.add(module)
    return modules
