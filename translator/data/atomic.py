"""Folders that appear whole or not at all."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A temporary folder that takes the name `folder` when the block ends without an exception.

    A process that is killed leaves at most a folder `.tmp-*` behind. Of two processes that make the same folder at the
    same time the first one wins, and both find it there.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
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
