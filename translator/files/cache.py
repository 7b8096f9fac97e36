"""Cached folders: created once and verified on every use; a damaged one is reported and created again."""

import logging
import shutil
from collections.abc import Callable
from pathlib import Path

from translator.files.atomic import new_folder
from translator.files.checksums import DamagedFolderError, verify_checksums, write_checksums
from translator.files.explain import ANOTHER_FOLDER, explain_write_errors

logger = logging.getLogger(__name__)


def made_folder(folder: Path, make: Callable[[Path], None], *required: str) -> None:
    """Makes sure that the folder exists and is intact; `make` creates it, and it must contain the `required` files."""
    with explain_write_errors(f"data.cache_dir={folder.parent}", ANOTHER_FOLDER):
        if folder.exists():
            try:
                verify_checksums(folder, *required)
                return
            except DamagedFolderError as error:
                logger.warning("%s: damaged (%s); it is made again", folder, error)
                _remove(folder)
        with new_folder(folder) as temporary:
            make(temporary)
            write_checksums(temporary)


def _remove(folder: Path) -> None:
    """Renames the folder before deleting it, so that an interruption leaves no half-deleted folder under its name."""
    if not folder.is_dir():
        folder.unlink()
        return
    doomed = folder.with_name(f".tmp-{folder.name}-damaged")
    shutil.rmtree(doomed, ignore_errors=True)
    folder.rename(doomed)
    shutil.rmtree(doomed, ignore_errors=True)
