"""Files and folders that are there as a whole or not at all: written under another name, flushed, then renamed."""

import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

LOCK_SECONDS = 60.0  # after which a folder without a lock has been abandoned


def _read_umask() -> int:
    """The permissions that new files do not get. The only way to read the mask is to set it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


_UMASK = _read_umask()  # once, before there are threads


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """A temporary name to write to; the file takes the name `path` when the block ends without an exception.

    What was at `path` stays until then, and a power failure afterwards does not lose the new file. It gets ordinary
    permissions, whatever the block's library gave it: others may read what is written here.
    """
    temporary = path.with_name(f".{path.name}.tmp-{os.getpid()}")
    try:
        yield temporary
        temporary.chmod(0o666 & ~_UMASK)
        _sync(temporary, os.O_RDWR)
        temporary.replace(path)
        sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A temporary folder that takes the name `folder` when the block ends without an exception.

    Its files are on the disk by then. A killed process leaves at most a folder `.tmp-*` behind, which the next process
    that makes the same folder removes. Of two processes that make it at the same time the first one wins, and both
    find it there.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(folder)
    temporary = Path(tempfile.mkdtemp(prefix=f".tmp-{folder.name}-", dir=folder.parent))
    try:
        with locked_folder(temporary):
            yield temporary
            temporary.chmod(0o777 & ~_UMASK)  # mkdtemp's folders are private; a cache may be shared
            for path in temporary.iterdir():
                _sync(path, os.O_RDONLY)
            sync_folder(temporary)
            try:
                temporary.replace(folder)
            except OSError:
                if not folder.is_dir():
                    raise
            sync_folder(folder.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _remove_abandoned(folder: Path) -> None:
    """Removes what killed processes left of earlier attempts to make the folder."""
    for left_behind in folder.parent.glob(f".tmp-{folder.name}-*"):
        with suppress(OSError):  # somebody else removed it, or is writing it
            # A folder that was made this very moment may not have its lock yet.
            if left_behind.stat().st_mtime < time.time() - LOCK_SECONDS:
                with locked_folder(left_behind):
                    shutil.rmtree(left_behind, ignore_errors=True)


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Holds a lock on the folder, which the system releases when the process dies; BlockingIOError if it is taken.

    Without locks (Windows) nothing is held.
    """
    if fcntl is None:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def sync_folder(path: Path) -> None:
    """Makes renames inside the folder survive a power failure."""
    if os.name == "posix":
        _sync(path, os.O_RDONLY)


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
