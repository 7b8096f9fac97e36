"""SHA-256 checksums of all files in a folder, so that damaged files are detected before they are used."""

from pathlib import Path

from translator.files.atomic import read_json, write_json
from translator.files.fingerprints import sha256

CHECKSUMS = "checksums.json"


class DamagedFolderError(Exception):
    """A file is missing, truncated or altered."""


def write_checksums(folder: Path) -> None:
    write_json(folder / CHECKSUMS, {path.name: sha256(path) for path in sorted(folder.iterdir())})


def verify_checksums(folder: Path, *required: str) -> None:
    """Raises DamagedFolderError unless every listed file is unchanged and every required file is listed."""
    try:
        checksums = read_json(folder / CHECKSUMS)
    except FileNotFoundError:
        raise DamagedFolderError(f"{CHECKSUMS} is missing") from None
    except (OSError, ValueError, RecursionError) as error:
        raise DamagedFolderError(f"{CHECKSUMS} cannot be read ({error})") from error
    if not isinstance(checksums, dict) or not all(isinstance(value, str) for value in checksums.values()):
        raise DamagedFolderError(f"{CHECKSUMS} is not a list of checksums")
    for name in required:
        if name not in checksums:
            raise DamagedFolderError(f"{CHECKSUMS} does not list {name}")
    for name, expected in checksums.items():
        try:
            found = sha256(folder / Path(name).name)
        except OSError as error:
            raise DamagedFolderError(f"{name} cannot be read ({error.strerror or error})") from error
        if found != expected:
            raise DamagedFolderError(f"{name} does not match its checksum")
