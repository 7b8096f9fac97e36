"""The folder that an export is written to: never one with somebody's files, and complete or not there at all."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from translator.data.tokenizer import Tokenizer
from translator.errors import UserError
from translator.files.atomic import new_folder, read_json, write_json
from translator.files.explain import explain_write_errors

DESCRIPTION = "export.json"  # what was exported, and the files that belong to it
SENTENCEPIECE_FILES = ("source.spm", "target.spm")


def check_free(folder: Path) -> None:
    """Refuses a path that holds anything but an earlier export, which is replaced."""
    with explain_write_errors(f"-o {folder}"):
        if not folder.exists() and not folder.is_symlink():
            return
        if folder.is_symlink() or not folder.is_dir():
            raise UserError(f"-o {folder}: is a file or a link; give a new folder")
        found = _files(folder)
        foreign = found - _exported_files(folder)
    if found and foreign:
        raise UserError(f"-o {folder}: has files that are no earlier export ({min(foreign)}); give a new folder")


@contextmanager
def export_folder(folder: Path, details: dict[str, Any]) -> Iterator[Path]:
    """Yields a temporary folder to write to, which becomes `folder` if the block ends without an exception.

    An earlier export is replaced then and not before.
    """
    check_free(folder)
    with explain_write_errors(f"-o {folder}"), new_folder(folder) as temporary:
        yield temporary
        write_json(temporary / DESCRIPTION, details | {"files": sorted(_files(temporary) | {DESCRIPTION})})
        check_free(folder)  # somebody may have put files there in the meantime
        if folder.exists():
            doomed = folder.with_name(f".tmp-{folder.name}-replaced")
            shutil.rmtree(doomed, ignore_errors=True)
            folder.rename(doomed)
            shutil.rmtree(doomed, ignore_errors=True)


def save_sentencepiece(tokenizer: Tokenizer, folder: Path) -> None:
    """Writes a SentencePiece model for each language; they are the same where the vocabulary is."""
    for name, model in zip(SENTENCEPIECE_FILES, (tokenizer.source_model, tokenizer.target_model), strict=True):
        (folder / name).write_bytes(model)


def _files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


def _exported_files(folder: Path) -> set[str]:
    try:
        return {str(name) for name in read_json(folder / DESCRIPTION)["files"]}
    except (OSError, ValueError, KeyError, TypeError):
        return set()
