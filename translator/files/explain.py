"""Turns errors with the files of a run into one-line messages for the user."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from translator.errors import UserError

COPY_AGAIN = "copy the run again"
WRITTEN_AGAIN = "remove it, and resuming the run writes it again"
ANOTHER_FOLDER = "make room or give another folder"


@contextmanager
def explain_damage(path: Path, *damage: type[Exception], remedy: str = COPY_AGAIN) -> Iterator[None]:
    """For reading a file that translator wrote itself: any unexpected content means that it is damaged.

    `damage` are exceptions of the library that reads the file, besides those of Python's own readers.
    """
    of_python = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)
    all_damage: tuple[type[Exception], ...] = (*of_python, *damage)
    try:
        yield
    except FileNotFoundError as error:
        raise UserError(f"{error.filename or path}: no such file; {remedy}") from error
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({reason(error)}); {remedy}") from error
    except all_damage as error:
        raise UserError(f"{path}: damaged ({reason(error)}); {remedy}") from error


@contextmanager
def explain_write_errors(destination: object, remedy: str = "") -> Iterator[None]:
    """For writing to a file, folder or stream that the user has named; the message begins with `destination`.

    A closed pipe, which ends a command quietly, and an interruption are not write errors.
    """
    try:
        yield
    except (BrokenPipeError, InterruptedError):
        raise
    except OSError as error:
        ending = f"; {remedy}" if remedy else ""
        raise UserError(f"{destination}: cannot be written ({reason(error)}){ending}") from error


def require_folder(option: str, path: Path) -> Path:
    """Refuses a path that is a file or lies below one; returns the nearest folder that exists."""
    nearest = path
    while not os.path.lexists(nearest) and nearest != nearest.parent:
        nearest = nearest.parent
    if nearest.is_dir():
        return nearest
    if nearest.is_symlink() and not nearest.exists():
        raise UserError(f"{option}={path}: {nearest} is a broken link; give another folder")
    what = "is a file" if nearest == path else f"lies below {nearest}, which is a file"
    raise UserError(f"{option}={path}: {what}; give another folder")


def require_writable(option: str, path: Path) -> None:
    """Refuses a folder in which nothing can be created. Permissions are not conclusive, so it tries."""
    with explain_write_errors(f"{option}={path}", ANOTHER_FOLDER):
        Path(tempfile.mkdtemp(prefix=".writable-", dir=require_folder(option, path))).rmdir()


def reason(error: BaseException) -> str:
    """The first line of an exception's message; for a system error, without file name and error number."""
    if isinstance(error, KeyError):
        return f"{error} is missing"
    text = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    return text.splitlines()[0]
