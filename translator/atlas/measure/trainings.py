"""Learning curves of small Transformers: both orders of normalisation, and the five scores."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from translator.atlas.measure.plans import norm_runs, score_runs
from translator.atlas.measure.small_runs import SmallRun, add_work_option, command, prepare_corpus, train
from translator.report.figures.curves import learning_curves


def add_options(parser: argparse.ArgumentParser) -> None:
    add_work_option(parser)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    prepare_corpus(options.work)
    norms = {
        f"{order}-norm, {'with' if warmup else 'without'} warm-up": run
        for (order, warmup), run in norm_runs(options.quick).items()
    }
    return {"norms": _curves(options.work, norms), "scores": _curves(options.work, score_runs(options.quick))}


def _curves(work: Path, runs: Mapping[str, SmallRun]) -> list[dict[str, Any]]:
    result = []
    for name, run in runs.items():
        found = learning_curves(train(work, run))
        result.append(
            {
                "name": name,
                "command": command(run),
                "train": [(update, round(loss, 4)) for update, loss in found["train/loss"]],
                "validation": found["validation/loss"][-1],
            }
        )
    return result
