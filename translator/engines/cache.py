"""Converted models, made once and kept beside the run, or elsewhere if the run cannot be written to."""

import json
import logging
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import ctranslate2

from translator.errors import UserError
from translator.files.cache import made_folder
from translator.files.fingerprints import combined_fingerprint
from translator.runs.directory import RunDirectory
from translator.runs.loading import LoadedRun

logger = logging.getLogger(__name__)

FORMAT = 1  # of the converted models; raise it to convert them again
REQUIRED = "model.bin"


@dataclass(frozen=True)
class ConvertedModel:
    path: Path
    temporary: "tempfile.TemporaryDirectory[str] | None" = None  # removed when nothing refers to it any longer


def fingerprint(run: LoadedRun) -> str:
    """Of everything that a converted model depends on: weights, options of the model, tokenizer and the library."""
    options = json.dumps(asdict(run.config.model), sort_keys=True)
    return combined_fingerprint(
        FORMAT, ctranslate2.__version__, run.weights_checksum, options, run.tokenizer.fingerprint
    )[:16]


def converted(directory: RunDirectory, run: LoadedRun, kind: str, convert: Callable[[Path], None]) -> ConvertedModel:
    """The folder of the converted model; `convert` fills it, unless that was done before and nothing has changed."""
    prefix = f"ctranslate2-{kind}-"
    name = prefix + fingerprint(run)
    beside, of_user = directory.path / "engines", _user_cache()
    for parent in (beside, of_user):
        is_new = not (parent / name).exists()
        try:
            made_folder(parent / name, convert, REQUIRED)
        except UserError:  # it cannot be written to
            continue
        if parent == of_user and is_new:
            logger.warning("%s cannot be written; the converted model is kept in %s", beside, of_user)
        if parent == beside and is_new:
            _remove_outdated(beside, prefix, name)
        return ConvertedModel(parent / name)
    temporary = tempfile.TemporaryDirectory(prefix=prefix)
    logger.warning("neither %s nor %s can be written; the model is converted each time", beside, of_user)
    convert(Path(temporary.name))
    return ConvertedModel(Path(temporary.name), temporary)


def _user_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "translator" / "engines"


def _remove_outdated(folder: Path, prefix: str, newest: str) -> None:
    """Removes what was converted from earlier weights of the run; a process that uses it has it in memory."""
    for path in folder.glob(f"{prefix}*"):
        if path.name != newest:
            shutil.rmtree(path, ignore_errors=True)
