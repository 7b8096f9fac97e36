"""Folders that appear whole or not at all."""

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SECONDS_A_DAY = 86_400


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A temporary folder that takes the name `folder` when the block ends without an exception.

    A process that is killed leaves at most a folder `.tmp-*` behind, which the next one that makes the folder removes
    after a day. Of two processes that make it at the same time the first one wins, and both find it there.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    for left_behind in folder.parent.glob(f".tmp-{folder.name}-*"):
        if left_behind.stat().st_mtime < time.time() - SECONDS_A_DAY:
            shutil.rmtree(left_behind, ignore_errors=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".tmp-{folder.name}-", dir=folder.parent))
    try:
        yield temporary
        temporary.chmod(0o755)  # mkdtemp's folders are private; a cache may be shared
        try:
            temporary.replace(folder)
        except OSError:
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
