"""Loads modules that need optional libraries; if one is missing, a one-line error says what to install."""

import importlib
from types import ModuleType

from translator.errors import UserError


def load_target(name: str) -> ModuleType:
    """The module that exports to a library, such as `translator.export.ctranslate2`."""
    return load(f"translator.export.{name}", f"--to {name}", "export")


def load(module: str, needed_by: str, extra: str) -> ModuleType:
    """A module that imports optional libraries; `needed_by` is what the user asked for."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        library = (error.name or "translator").split(".")[0]
        if library == "translator":
            raise
        raise UserError(
            f"{needed_by}: needs {library}, which is not installed; pip install 'translator[{extra}]'"
        ) from error
