"""Files that are there as a whole or not at all: written under another name, flushed to the disk, then renamed."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor


def write_json(path: Path, value: Any) -> None:
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        temporary.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        _replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        # Metadata as other safetensors readers expect it.
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, temporary, {"format": "pt"})
        _replace(temporary, path)
    except SafetensorError as error:  # safetensors reports a full disk in its own way
        raise OSError(f"{path}: {error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync_folder(path: Path) -> None:
    """Makes renames inside the folder survive a power failure."""
    if os.name == "posix":
        _sync(path, os.O_RDONLY)


def _replace(temporary: Path, path: Path) -> None:
    _sync(temporary, os.O_RDWR)
    temporary.replace(path)
    sync_folder(path.parent)


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
