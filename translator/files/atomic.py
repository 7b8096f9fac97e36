"""Atomic writes: files and folders are written under a temporary name, flushed to disk and then renamed."""

import glob
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

LOCK_SECONDS = 60.0  # an unlocked folder older than this has been abandoned


def _read_umask() -> int:
    """The umask of the process, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


_UMASK = _read_umask()  # read once, before any threads start


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yields a temporary path to write to, which is renamed to `path` if the block ends without an exception.

    Until then, an existing file at `path` is left alone; afterwards, the new file survives a power failure. It gets the
    default permissions, so that others can read it, even if the library that wrote it made it private. A killed process
    leaves its temporary file behind, which may be large; the next one that writes the same file removes it.
    """
    temporary = path.with_name(f".{path.name}.tmp-{os.getpid()}")
    remove_abandoned_files(path.parent, path.name)
    try:
        temporary.unlink(missing_ok=True)  # left behind by a process that was killed and had the same number
        yield temporary
        publish(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def publish(complete: Path, path: Path) -> None:
    """Flushes a complete file in the same folder to disk and renames it to `path`."""
    complete.chmod(0o666 & ~_UMASK)
    _sync(complete, os.O_RDWR)
    complete.replace(path)
    sync_folder(path.parent)


def write_text(path: Path, text: str) -> None:
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Yields a temporary folder, which is renamed to `folder` if the block ends without an exception.

    Its files are flushed to disk first. A killed process leaves at most a `.tmp-*` folder behind, which later calls for
    the same folder remove. If two processes create `folder` at the same time, the first one wins and both can use it.
    """
    with temporary_folder(folder) as temporary:
        yield temporary
        flush_folder(temporary)
        try:
            temporary.replace(folder)
        except OSError:
            if not folder.is_dir():
                raise
        sync_folder(folder.parent)


@contextmanager
def temporary_folder(folder: Path) -> Iterator[Path]:
    """Yields a new folder beside `folder` that is removed at the end, unless it has been renamed."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(folder)
    temporary = Path(tempfile.mkdtemp(prefix=f".tmp-{folder.name}-", dir=folder.parent))
    try:
        with locked_folder(temporary):
            yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def flush_folder(temporary: Path) -> None:
    """Gives a complete temporary folder and all that is in it the default permissions, and flushes it to disk.

    `mkdtemp` creates private folders and safetensors private files, but others may need them.
    """
    for path in (temporary, *temporary.rglob("*")):
        if path.is_dir():
            path.chmod(0o777 & ~_UMASK)
            sync_folder(path)
        else:
            path.chmod(0o666 & ~_UMASK)
            _sync(path, os.O_RDONLY)


def remove_abandoned_files(folder: Path, name: str | None = None) -> None:
    """Removes the temporary files that killed processes have left in a folder: those of one file, or all."""
    for left_behind in folder.glob(f".{'*' if name is None else glob.escape(name)}.tmp-*"):
        with suppress(OSError):  # another process has renamed or removed it
            if left_behind.lstat().st_mtime < time.time() - LOCK_SECONDS and not _is_running(left_behind):
                left_behind.unlink()


def _is_running(temporary: Path) -> bool:
    """Whether the process that the temporary file is named after is still there, as far as this machine knows."""
    if os.name != "posix":  # elsewhere, asking would end it
        return True
    try:
        os.kill(int(temporary.name.rpartition("-")[2]), 0)
    except (ProcessLookupError, OverflowError, ValueError):
        return False
    except OSError:  # somebody else's
        return True
    return True


def _remove_abandoned(folder: Path) -> None:
    """Removes temporary folders left behind by killed processes."""
    for left_behind in folder.parent.glob(f".tmp-{folder.name}-*"):
        with suppress(OSError):  # another process has removed it or is writing it
            # A folder that was only just created may not be locked yet.
            if left_behind.stat().st_mtime < time.time() - LOCK_SECONDS:
                with locked_folder(left_behind):
                    shutil.rmtree(left_behind, ignore_errors=True)


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Holds a lock on the folder, which the system releases if the process dies; BlockingIOError if it is taken.

    Does nothing on Windows, which has no such locks.
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
    """Flushes the folder to disk, so that renames inside it survive a power failure."""
    if os.name == "posix":
        _sync(path, os.O_RDONLY)


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
