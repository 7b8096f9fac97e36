"""What trained models have learned about positions: learned vectors and relative biases, read from runs."""

import argparse
from pathlib import Path
from typing import Any

import torch

from translator.atlas.figures.positions import trained_positions
from translator.config import load_file
from translator.errors import UserError
from translator.models.transformer import Transformer
from translator.runs.directory import RunDirectory
from translator.runs.latest import resolve_run
from translator.runs.loading import load_run


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--run",
        type=Path,
        action="append",
        required=True,
        metavar="RUN",
        help="a run with model.positions=learned or relative; can be given several times",
    )


def measure(options: argparse.Namespace) -> dict[str, Any]:
    return {"runs": [_read(path) for path in options.run]}


def _read(path: Path) -> dict[str, Any]:
    try:
        folder = resolve_run(path)
        loaded = load_run(folder, torch.device("cpu"))
    except UserError as error:
        raise UserError(f"--run {error}") from error
    found = trained_positions(loaded.model) if isinstance(loaded.model, Transformer) else {}
    if not found:
        raise UserError(f"--run {path}: has no learned positions; train one with model.positions=learned or relative")
    config = load_file(RunDirectory(folder).config)
    command = RunDirectory(folder).read_manifest().get("command")
    assert loaded.config.model.kind == "transformer"
    return {"what": f"model.positions={getattr(config.model, 'positions', '')}", "trained_by": command, **found}
