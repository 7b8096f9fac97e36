"""Time and memory of self-attention, recurrence and convolution over many sizes: a minute on an idle machine."""

import argparse
from typing import Any

import torch

from translator.atlas.figures.complexity import LONG, SHORT, measure_sizes


def add_options(parser: argparse.ArgumentParser) -> None:
    """No options besides the common ones."""


def measure(options: argparse.Namespace) -> dict[str, Any]:
    torch.set_num_threads(1)  # CPU time is measured, which adds up over threads
    return measure_sizes(SHORT if options.quick else LONG)
