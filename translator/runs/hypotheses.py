"""A run's translations of a held-out set, kept in its folder so that nobody has to make them again.

SPLIT.hypotheses.txt has one translation in each line. SPLIT.hypotheses.json says which weights, sources and search
options they come from; if any of these has changed, the file is not used.
"""

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from translator.decoding.output import one_line
from translator.files.atomic import read_json, write_json, write_text
from translator.files.lines import read_lines
from translator.runs.directory import RunDirectory
from translator.schema.decode import SearchOptions


def store_hypotheses(
    run: RunDirectory, split: str, hypotheses: Sequence[str], sources: Sequence[str], options: SearchOptions
) -> None:
    """Raises OSError where they cannot be written."""
    lines = [one_line(text) for text in hypotheses]
    path = run.hypotheses(split)
    path.with_suffix(".json").unlink(missing_ok=True)  # it must never describe another text
    write_text(path, "".join(f"{line}\n" for line in lines))
    write_json(path.with_suffix(".json"), _origin(run, sources, options) | {"text": _digest(lines)})


def stored_hypotheses(
    run: RunDirectory, split: str, sources: Sequence[str], options: SearchOptions
) -> list[str] | None:
    """The translations of these sources by the run's present weights with these options, if they are there."""
    path = run.hypotheses(split)
    if not (path.is_file() and path.with_suffix(".json").is_file()):
        return None
    with suppress(OSError, ValueError):
        lines = list(read_lines(path))
        if read_json(path.with_suffix(".json")) == _origin(run, sources, options) | {"text": _digest(lines)}:
            return lines
    return None


def _origin(run: RunDirectory, sources: Sequence[str], options: SearchOptions) -> dict[str, Any]:
    search = {name: str(value) for name, value in asdict(options).items() if name != "batch_tokens"}  # no influence
    return {"weights": _checksum(run.weights), "sources": _digest(sources), "search": search}


def _checksum(weights: Path) -> str:
    """The checksum that the weights carry; the weights themselves are not read."""
    try:
        with safe_open(weights, "pt") as file:
            return str((file.metadata() or {})["sha256"])
    except (SafetensorError, KeyError) as error:
        raise ValueError(f"{weights}: has no checksum") from error


def _digest(lines: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps(list(lines)).encode()).hexdigest()
