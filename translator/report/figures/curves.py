"""Learning curves, as TensorBoard has them or, where its files are gone, as metrics.json has them."""

import logging
import math
from pathlib import Path
from typing import Any

from tensorboard.backend.event_processing.event_accumulator import (
    COMPRESSED_HISTOGRAMS,
    HISTOGRAMS,
    IMAGES,
    SCALARS,
    TENSORS,
    EventAccumulator,
)

from translator.report.reading import read_metrics
from translator.runs.directory import RunDirectory

MOST_POINTS = 400  # of one curve
NAMES = (
    "train/loss",
    "validation/loss",
    "validation/bleu",
    "validation/chrf",
    "train/learning_rate",
    "train/gradient_norm",
    "train/tokens_per_second",
)
Curve = list[tuple[int, float]]  # (update, value)


def learning_curves(run: RunDirectory, direction: str | None = None) -> dict[str, Curve]:
    """The curves that there are, by name; validations come from metrics.json once training has finished.

    Of a run with both directions, those of one `direction` (en-de) are taken from there; otherwise their mean.
    """
    curves = _logged(run.tensorboard)
    history: list[dict[str, Any]] = read_metrics(run).get("history", [])
    for name in ("loss", "bleu", "chrf"):
        entries = [(entry["update"], entry.get("directions", {}).get(direction, entry)) for entry in history]
        points = [(update, float(entry[name])) for update, entry in entries if name in entry]
        if points:
            curves[f"validation/{name}"] = points
    finite = {name: [(step, value) for step, value in curves.get(name, []) if math.isfinite(value)] for name in NAMES}
    return {name: thin(points) for name, points in finite.items() if points}


def _logged(folder: Path) -> dict[str, Curve]:
    if not folder.is_dir():
        return {}
    logging.getLogger("tensorboard").setLevel(logging.ERROR)  # it would report every resume
    kept = {SCALARS: 0, IMAGES: 1, HISTOGRAMS: 1, COMPRESSED_HISTOGRAMS: 1, TENSORS: 1}
    events = EventAccumulator(str(folder), size_guidance=kept)
    events.Reload()
    known = set(events.Tags()[SCALARS]) & set(NAMES)
    # A run killed between a validation and its checkpoint draws the same points again: the last ones count.
    return {name: sorted({event.step: event.value for event in events.Scalars(name)}.items()) for name in known}


def thin(points: Curve) -> Curve:
    """At most `MOST_POINTS` of the points, spread evenly, the first and the last among them."""
    if len(points) <= MOST_POINTS:
        return points
    last = len(points) - 1
    return [points[round(number * last / (MOST_POINTS - 1))] for number in range(MOST_POINTS)]
