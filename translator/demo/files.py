"""The demo corpus on disk: generated once, again if request or grammar change; foreign files are never overwritten.

A small stamp file records the request and the SHA-256 of every file written. Translation directions with the same seed
and sizes share a folder: train.en is the same whether the other language is German or Chinese.
"""

import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

from translator.demo.generator import LANGUAGES, write
from translator.errors import UserError
from translator.files.atomic import write_json
from translator.files.explain import ANOTHER_FOLDER, explain_write_errors, require_folder
from translator.files.fingerprints import fingerprint_file

STAMP = "demo.json"


def prepare(
    folder: Path, *, source: str, target: str, seed: int, num_train: int, num_valid: int, num_test: int
) -> None:
    """Makes sure that the folder contains train, valid and test for this direction."""
    for option, language in (("source", source), ("target", target)):
        if language not in LANGUAGES:
            raise UserError(f"data.{option}={language}: the demo corpus has {', '.join(LANGUAGES)}")
    if source == target:
        raise UserError(f"data.target={target}: must differ from data.source")
    request = {
        "seed": seed,
        "num_train": num_train,
        "num_valid": num_valid,
        "num_test": num_test,
        "generator": _generator_version(Path(__file__).parent),
    }
    direction = f"{source}-{target}"
    stamp = _read_stamp(folder)
    if stamp["request"] == request and direction in stamp["directions"] and _is_complete(folder, stamp, direction):
        return
    with explain_write_errors(f"data.folder={folder}", ANOTHER_FOLDER):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".writing-") as scratch:
            try:
                sizes = {"seed": seed, "num_train": num_train, "num_valid": num_valid, "num_test": num_test}
                write(Path(scratch), source, target, **sizes)
            except ValueError as error:  # more sentences than the grammar can generate
                raise UserError(f"data=demo: {error}") from error
            _move_in(Path(scratch), folder, stamp, request, direction)


def _generator_version(package: Path) -> str:
    """A hash of the grammar's source code, so that nobody has to remember to bump a version number."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _read_stamp(folder: Path) -> dict[str, Any]:
    require_folder("data.folder", folder)
    path = folder / STAMP
    if not path.exists():
        return {"request": None, "directions": {}, "files": {}}
    try:
        stamp = json.loads(path.read_text(encoding="utf-8"))
        return {key: stamp[key] for key in ("request", "directions", "files")}
    except (ValueError, KeyError, TypeError):
        raise UserError(
            f"{path}: is not a valid stamp of the demo corpus; remove it or choose another data.folder"
        ) from None


def _is_complete(folder: Path, stamp: dict[str, Any], direction: str) -> bool:
    """Whether all files exist. An edited file is an error: its recorded seed and sizes would no longer describe it."""
    present = [name for name in stamp["directions"][direction] if (folder / name).exists()]
    for name in present:
        _require_ours(folder, stamp, name)
    return len(present) == len(stamp["directions"][direction])


def _require_ours(folder: Path, stamp: dict[str, Any], name: str) -> None:
    path = folder / name
    if name not in stamp["files"]:
        raise UserError(
            f"{path}: exists, but was not written by the demo corpus; move it or choose another data.folder"
        )
    if fingerprint_file(path).sha256 != stamp["files"][name]:
        raise UserError(
            f"{path}: was changed after the demo corpus wrote it; remove it to regenerate it, or use data=text "
            "for a corpus of your own"
        )


def _move_in(scratch: Path, folder: Path, stamp: dict[str, Any], request: dict[str, Any], direction: str) -> None:
    """Moves the new files into place such that, if interrupted at any point, the next call completes the folder."""
    new = {path.name: fingerprint_file(path).sha256 for path in sorted(scratch.iterdir())}
    old = stamp["files"]
    # Keep another direction if the request and every file it shares with this one are unchanged.
    directions = {
        other: names
        for other, names in stamp["directions"].items()
        if stamp["request"] == request and all(new.get(name, old[name]) == old[name] for name in names)
    }
    kept = {name for names in directions.values() for name in names}
    missing = [name for name, sha256 in new.items() if not _holds(folder / name, sha256)]
    outdated = [name for name in old if name not in kept and name not in new]
    in_the_way = [name for name in (*missing, *outdated) if (folder / name).exists()]
    for name in in_the_way:
        _require_ours(folder, stamp, name)
    for name in in_the_way:
        (folder / name).unlink()
    written = {
        "request": request,
        "directions": {**directions, direction: sorted(new)},
        "files": dict(sorted({**{name: old[name] for name in kept}, **new}.items())),
    }
    write_json(folder / STAMP, written)
    for name in missing:
        (scratch / name).replace(folder / name)


def _holds(path: Path, sha256: str | None) -> bool:
    return path.is_file() and fingerprint_file(path).sha256 == sha256
