"""The attention of a trained LSTM and of all its checkpoints, on 200 sentences with gold alignments."""

import argparse
from pathlib import Path
from typing import Any

from translator.atlas.figures.bahdanau import measure_bahdanau
from translator.build.atlas_command import load_trained_run


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--lstm-run", type=Path, required=True, metavar="RUN", help="a trained LSTM with checkpoints")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    run = load_trained_run("--lstm-run", options.lstm_run, "lstm")
    assert run is not None
    return measure_bahdanau(run, quick=options.quick)
