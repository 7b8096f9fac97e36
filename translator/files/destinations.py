"""Output paths of commands: a path that would overwrite an input or is not writable is refused before work begins.

A file is replaced atomically once the new one is complete, and symbolic links are kept. Devices, pipes and open
descriptors such as /dev/stdout cannot be replaced and are written directly. "-" is the standard output.
"""

import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

from translator.errors import UserError
from translator.files.atomic import write_text
from translator.files.explain import explain_write_errors

STANDARD_STREAM = Path("-")
_DESCRIPTORS = ("/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/")


class Destination(NamedTuple):
    """A path to write to, and the option that names it."""

    option: str
    path: Path
    beside: tuple[Path, ...] = ()  # other files that are written in the process

    def __str__(self) -> str:
        return "standard output" if self.path == STANDARD_STREAM else f"{self.option} {self.path}"


def is_written_directly(path: Path) -> bool:
    """Whether the path is a device, a pipe or an open descriptor."""
    if str(path.absolute()).startswith(_DESCRIPTORS):
        return True
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def replaced_file(path: Path) -> Path:
    """The file that a new one replaces: the target of symbolic links."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def protect_inputs(destinations: Sequence[Destination], inputs: Sequence[Path]) -> None:
    """Refuses destinations that, under any name, are an input or are also written by another option."""
    read = {identity: path for path in inputs for identity in _identities(path, sys.stdin)}
    written: dict[object, Destination] = {}
    for destination in destinations:
        identities = {
            identity for path in (destination.path, *destination.beside) for identity in _identities(path, sys.stdout)
        }
        for identity in identities:
            if identity in read:
                raise UserError(f"{destination}: {_name(read[identity])} would be overwritten; give another name")
            if identity in written:
                raise UserError(f"{destination}: is also written by {written[identity]}; give another name")
        written |= dict.fromkeys(identities, destination)


def require_writable(destination: Destination) -> None:
    """Refuses a path that cannot be written, as far as can be told without writing to it."""
    path = destination.path
    if path == STANDARD_STREAM:
        if sys.stdout is None:
            raise UserError("standard output: is closed; name a file to write to")
        return
    with explain_write_errors(destination):
        if path.is_dir():
            raise IsADirectoryError("is a directory; give a file inside it")
        if is_written_directly(path):
            return
        target = replaced_file(path)
        if target.is_symlink():
            raise OSError("its symbolic links form a loop")
        if target.exists() and not os.access(target, os.W_OK):
            raise PermissionError("it is read-only")
        nearest_folder = next(parent for parent in target.absolute().parents if os.path.lexists(parent))
        with tempfile.TemporaryFile(dir=nearest_folder):
            pass


@contextmanager
def writing(destination: Destination) -> Iterator[Callable[[str], None]]:
    """Yields a function that accepts the text, which is written when the block ends without an exception.

    Before that, a path that cannot be written is refused, and a device or pipe is opened.
    """
    require_writable(destination)
    texts: list[str] = []
    if destination.path != STANDARD_STREAM and not is_written_directly(destination.path):
        yield texts.append
        with explain_write_errors(destination):
            target = replaced_file(destination.path)
            target.parent.mkdir(parents=True, exist_ok=True)
            write_text(target, "".join(texts))
        return
    with opened_directly(destination) as file:
        yield texts.append
        write_directly(file, "".join(texts), destination)


@contextmanager
def opened_directly(destination: Destination) -> Iterator[BinaryIO]:
    """A device, pipe or descriptor, or the standard output, open for writing."""
    if destination.path == STANDARD_STREAM:
        sys.stdout.flush()
        yield sys.stdout.buffer
        return
    with explain_write_errors(destination):
        # Appending, since a descriptor may be that of a file with something in it. Without a buffer there is nothing
        # that could fail again when the file is closed.
        file = destination.path.open("ab", buffering=0)
    with file:
        yield file


def write_directly(file: BinaryIO, text: str, destination: Destination) -> None:
    with explain_write_errors(destination):
        remaining = memoryview(text.encode("utf-8", "replace"))
        while remaining:
            remaining = remaining[file.write(remaining) :]
        file.flush()


def _identities(path: Path, standard_stream: object) -> set[object]:
    """Identifies a file, whatever name it is given by; empty for devices, pipes and folders."""
    names: set[object] = set() if path == STANDARD_STREAM else {os.path.realpath(path)}
    try:
        status = path.stat() if names else os.fstat(standard_stream.fileno())  # type: ignore[attr-defined]
    except (AttributeError, OSError, ValueError):  # does not exist yet, or a stream that is closed or not a real file
        return names
    return names | {(status.st_dev, status.st_ino)} if stat.S_ISREG(status.st_mode) else set()


def _name(path: Path) -> str:
    return "the standard input" if path == STANDARD_STREAM else str(path)
