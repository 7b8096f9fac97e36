"""The heads of a trained Transformer, on 200 sentences: roles, maps, and BLEU without each of them."""

import argparse
from pathlib import Path
from typing import Any

from translator.atlas.figures.heads import measure_heads
from translator.build.atlas_command import load_trained_run


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--run", type=Path, required=True, metavar="RUN", help="a trained Transformer")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    run = load_trained_run("--run", options.run, "transformer")
    assert run is not None
    return measure_heads(run, quick=options.quick)
