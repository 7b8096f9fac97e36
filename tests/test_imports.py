"""The direction of imports, from commands down to kernels, as drawn in docs/architecture.md."""

import ast
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "translator"
EVERYWHERE = {"errors", "files", "ids", "languages"}
# What each package may import. Modules not listed here are commands or build and may import everything.
ALLOWED = {
    "kernels": {"kernels"},
    "attention": {"attention", "kernels"},
    "models": {"models", "attention", "kernels"},
    "data": {"data"} | EVERYWHERE,
    "decoding": {"decoding", "data.normalization", "kernels", "models.base", "schema.decode"} | EVERYWHERE,
    "evaluation": {"evaluation", "data.normalization"} | EVERYWHERE,
    # `evaluation.utilities` is loaded only when minimum Bayes risk is asked for.
    "runs": {
        "runs",
        "config",
        "evaluation.utilities",
        "data.examples",
        "data.normalization",
        "data.tokenizer",
        "decoding",
        "models",
        "schema",
    }
    | EVERYWHERE,
    "training": {
        *{"training", "runs", "devices", "kernels", "models.base", "data.batching", "evaluation.metrics"},
        "schema.training",
        *EVERYWHERE,
    },
    "export": {
        *{"export", "runs", "config", "decoding", "evaluation", "data", "models", "attention", "schema"},
        *EVERYWHERE,
    },
    "engines": {"engines", "export", "runs", "config", "decoding", "schema.decode"} | EVERYWHERE,
    "inspection": {"inspection", "decoding", "models.base", "schema.decode"} | EVERYWHERE,
    "report": {"__version__", "report", "config", "data", "decoding", "evaluation", "models.base", "runs", "schema"}
    | EVERYWHERE,
    "serve": {
        *{"__version__", "serve", "api", "config", "decoding", "inspection", "kernels.allocator", "runs", "schema"},
        *{"report.charts", "report.html"},  # what all pages share
        *{"data.normalization", "data.tokenizer", "engines.choice", "export.folder"},  # an exported model
        *EVERYWHERE,
    },
    "atlas": {
        *{"__version__", "atlas", "report", "attention", "models", "kernels", "runs", "config", "data", "decoding"},
        *{"evaluation", "schema"},
        *EVERYWHERE,
    },
    "demo": {"demo", "data.corpus"} | EVERYWHERE,
    "plots": {"plots"} | EVERYWHERE,
    "schema": {"schema", "errors", "ids"},
    "config": {"schema", "errors", "files"},
    "devices": {"errors"},
    "progress_display": set[str](),
    "files": {"files", "errors"},
    "errors": set[str](),
    "ids": set[str](),
    "languages": set[str](),
}
# Third-party libraries and the only packages that may import them.
OWNERS = {
    "matplotlib": {"plots"},
    "sacrebleu": {"evaluation"},
    "sentencepiece": {"data", "export"},
    "datasets": {"data"},
    "hydra": {"cli", "overrides"},
    "omegaconf": {"cli", "config"},
    "tensorboard": {"training", "verify_resume", "report"},
    "ctranslate2": {"export", "engines", "serve"},
    "transformers": {"export"},
    "tokenizers": {"export"},
    "onnx": {"export"},
    "onnxruntime": {"export"},
    "starlette": {"serve"},
    "uvicorn": {"serve"},
    "prometheus_client": {"serve"},
    "py3langid": {"serve"},
}
FILES = sorted(PACKAGE.rglob("*.py"))


@cache
def imports_of(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


# Modules of a package that are commands and may import everything.
COMMANDS = {
    *PACKAGE.rglob("__main__.py"),
    PACKAGE / "export" / "command.py",
    PACKAGE / "serve" / "command.py",
    PACKAGE / "serve" / "launch.py",
    *(PACKAGE / "atlas" / "measure").glob("*.py"),
}


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_one_way(path: Path) -> None:
    allowed = ALLOWED.get(room_of(path))
    if allowed is None or path in COMMANDS:
        return
    ours = {name.removeprefix("translator.") for name in imports_of(path) if name.startswith("translator.")}
    wrong = [name for name in ours if not any(name == good or name.startswith(f"{good}.") for good in allowed)]
    assert not wrong, f"{room_of(path)} must not import {', '.join(wrong)}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_libraries_have_one_owner(path: Path) -> None:
    for name in imports_of(path):
        owners = OWNERS.get(name.split(".")[0])
        assert owners is None or room_of(path) in owners, f"{name} belongs to {', '.join(sorted(owners))}"


def test_the_demo_grammar_is_one_corpus_among_others() -> None:
    """It is opened in one place, and nothing else depends on it."""
    importers = {path for path in FILES if any(name.startswith("translator.demo") for name in imports_of(path))}
    assert {path for path in importers if room_of(path) != "demo"} == {PACKAGE / "build" / "data.py"}


def test_the_mathematics_imports_only_torch() -> None:
    for path in FILES:
        if room_of(path) in ("attention", "kernels", "models"):
            libraries = {name.split(".")[0] for name in imports_of(path)}
            standard = {
                "abc",
                "collections",
                "contextlib",
                "ctypes",
                "dataclasses",
                "functools",
                "math",
                "os",
                "typing",
            }
            assert libraries <= standard | {"torch", "translator"}, path


def test_importing_the_package_is_cheap() -> None:
    """`import translator` must not load torch, so that the command line responds at once."""
    top = {name.split(".")[0] for name in imports_of(PACKAGE / "__init__.py")}
    assert "torch" not in top
