"""The folder that an export is written to: it never replaces other files, and it is either complete or absent."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from translator.data.tokenizer import Tokenizer
from translator.errors import UserError
from translator.files.atomic import flush_folder, read_json, sync_folder, temporary_folder, write_json
from translator.files.explain import explain_write_errors
from translator.schema.decode import Stop

if TYPE_CHECKING:
    from translator.config import Config

DESCRIPTION = "export.json"  # what was exported, and the files that belong to it
SENTENCEPIECE_FILES = ("source.spm", "target.spm")
TRANSLATION = "translation.json"  # what the run's configuration says about translating, for `translate-serve`


def check_free(folder: Path) -> None:
    """Refuses a path that holds anything but an earlier export, which is replaced."""
    with explain_write_errors(f"-o {folder}"):
        if not folder.exists() and not folder.is_symlink():
            return
        if folder.is_symlink() or not folder.is_dir():
            raise UserError(f"-o {folder}: is a file or a link; give a new folder")
        _require_export(folder, folder)


@contextmanager
def export_folder(folder: Path, details: dict[str, Any]) -> Iterator[Path]:
    """Yields a temporary folder to write to, which becomes `folder` if the block ends without an exception.

    An earlier export is deleted once the new one has its name.
    """
    check_free(folder)
    place = folder.resolve()  # "." has no name of its own
    with explain_write_errors(f"-o {folder}"), temporary_folder(place) as temporary:
        yield temporary
        write_json(temporary / DESCRIPTION, details | {"files": sorted(_files(temporary) | {DESCRIPTION})})
        flush_folder(temporary)
        check_free(folder)  # other files may have appeared there in the meantime
        earlier = place.with_name(f".tmp-{place.name}-replaced-{os.getpid()}")
        if Path.cwd().is_relative_to(place):  # the folder that the user's shell is in must not be replaced
            _exchange_contents(place, temporary, earlier)
        else:
            _exchange(folder, place, temporary, earlier)
        sync_folder(place.parent)
        shutil.rmtree(earlier, ignore_errors=True)


def _exchange(folder: Path, place: Path, temporary: Path, earlier: Path) -> None:
    """Renames the folder at `place`, if there is one, to `earlier`, and the temporary folder to `place`.

    The old folder is checked under its new name, where nobody else writes, and moved back if it is not an export.
    """
    if place.exists():
        place.rename(earlier)
    try:
        if earlier.exists():
            _require_export(earlier, folder)
        temporary.rename(place)
    except BaseException as error:
        if earlier.exists() and not place.exists():
            earlier.rename(place)
        elif place.exists() and isinstance(error, OSError):
            kept = f"; the earlier export is in {earlier}" if earlier.exists() else ""
            raise UserError(f"-o {folder}: another process has just written there{kept}; give a new folder") from None
        raise


def _exchange_contents(place: Path, temporary: Path, earlier: Path) -> None:
    """Like `_exchange`, but file by file; the description, which makes the folder an export, comes last."""
    earlier.mkdir()
    for path in list(place.iterdir()):
        path.rename(earlier / path.name)
    for path in sorted(temporary.iterdir(), key=lambda path: path.name == DESCRIPTION):
        path.rename(place / path.name)


def translation_settings(config: "Config") -> dict[str, Any]:
    return {
        "format": 1,
        "source": config.data.source,
        "target": config.data.target,
        "normalize": config.data.cleaning.normalize,
        "max_pieces": config.data.max_pieces,
        "options": asdict(config.decode.changed(stop=Stop.first)),  # what other libraries have
    }


def save_sentencepiece(tokenizer: Tokenizer, folder: Path) -> None:
    """Writes a SentencePiece model for each language; with a joint vocabulary they are the same."""
    for name, model in zip(SENTENCEPIECE_FILES, (tokenizer.source_model, tokenizer.target_model), strict=True):
        (folder / name).write_bytes(model)


def _require_export(found: Path, folder: Path) -> None:
    """Refuses a folder with files that do not belong to an export; messages name it `folder`."""
    foreign = _files(found) - _exported_files(found)
    if foreign:
        raise UserError(f"-o {folder}: has files that do not belong to an export ({min(foreign)}); give a new folder")


def _files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


def _exported_files(folder: Path) -> set[str]:
    try:
        return {str(name) for name in read_json(folder / DESCRIPTION)["files"]}
    except (OSError, ValueError, KeyError, TypeError):
        return set()
