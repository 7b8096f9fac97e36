"""SHA-256 fingerprints of the training data of a run and of the inputs of a cached file."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from translator.files.lines import explain_read_errors, require_file


@dataclass(frozen=True)
class FileFingerprint:
    """Identifies the bytes of a training file. A remote file that is only streamed has neither size nor hash."""

    path: str
    size: int | None
    sha256: str | None


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fingerprint_file(path: Path) -> FileFingerprint:
    require_file(path)
    with explain_read_errors(str(path)):
        return FileFingerprint(str(path), path.stat().st_size, sha256(path))


def combined_fingerprint(*parts: object) -> str:
    """One SHA-256 of several values, each prefixed with its length so that ("ab", "c") and ("a", "bc") differ."""
    digest = hashlib.sha256()
    for part in parts:
        text = str(part).encode()
        digest.update(b"%d:" % len(text) + text)
    return digest.hexdigest()
