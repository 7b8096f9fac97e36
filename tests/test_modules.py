"""Every module can be imported, and every module is imported or run by some test."""

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

import translator

TESTS = Path(__file__).parent
# Word lists without behaviour; the sentences built from them are tested.
WORD_LISTS = {
    "translator.demo.lexicon_adjectives",
    "translator.demo.lexicon_adverbials",
    "translator.demo.lexicon_nouns",
    "translator.demo.lexicon_verbs",
}


def modules() -> Iterator[str]:
    """The package and all its modules, except those that run a command when imported."""
    yield translator.__name__
    for module in pkgutil.walk_packages(translator.__path__, f"{translator.__name__}."):
        if not module.name.endswith(".__main__"):
            yield module.name


MODULES = sorted(modules())


@cache
def parsed(source: str) -> ast.Module:
    return ast.parse(source)


def is_empty(name: str) -> bool:
    """Whether a module has only a docstring, like most `__init__.py` files."""
    path = Path(str(importlib.import_module(name).__file__))
    statements = parsed(path.read_text(encoding="utf-8")).body
    return all(isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant) for s in statements)


def names_in(source: str) -> Iterator[str]:
    """The modules that a program imports or runs: ["-m", "NAME"], in a list or as arguments of a call."""
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.List | ast.Call):
            items = node.elts if isinstance(node, ast.List) else node.args
            words = [item.value if isinstance(item, ast.Constant) else None for item in items]
            yield from (str(name) for option, name in pairwise(words) if option == "-m")


@pytest.fixture(scope="module")
def tested() -> set[str]:
    return {name for path in sorted(TESTS.rglob("*.py")) for name in names_in(path.read_text(encoding="utf-8"))}


@pytest.mark.parametrize("name", MODULES)
def test_a_module_can_be_imported(name: str) -> None:
    importlib.import_module(name)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_tested_by_name(name: str, tested: set[str]) -> None:
    if name in WORD_LISTS or is_empty(name):
        return
    assert name in tested, f"no test imports {name}: write one that imports it and checks what it does"


def test_the_reader_finds_imports_and_commands() -> None:
    program = (
        'import a.b\nfrom c import d as e\ndef f():\n    from g.h import i\nrun([x, "-m", "j.k", "--l"], "-m", "m")'
    )
    assert set(names_in(program)) == {"a.b", "c", "c.d", "g.h", "g.h.i", "j.k", "m"}


@pytest.mark.parametrize("path", sorted(TESTS.rglob("*.py")), ids=lambda path: path.relative_to(TESTS).as_posix())
def test_tests_import_no_other_tests(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    others = [name for name in names_in(source) if name.split(".")[0].startswith("test_")]
    assert not others, f"{', '.join(others)}: what tests share belongs in tests/support"
    paths = [node for node in ast.walk(parsed(source)) if isinstance(node, ast.Attribute) and node.attr == "path"]
    assert not any(isinstance(node.value, ast.Name) and node.value.id == "sys" for node in paths), (
        "sys.path stays as it is: pythonpath in pyproject.toml and support.processes.environment() see to imports"
    )
