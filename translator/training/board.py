"""What TensorBoard shows of a run.

TensorBoard sorts by name and opens the first two groups, so the groups are named to come in this order: `train` and
`validation` (curves), `view` (pictures and histograms), `weights` (curves of single parts), `with_final_weights`.
"""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from torch.utils.tensorboard import SummaryWriter

from translator.evaluation.metrics import METRICS
from translator.training.event_log import EventLog
from translator.training.interfaces import Notify
from translator.training.validation_result import ValidationResult

GRADIENT_NORM = "weights/gradient_norm"  # of single parts of the model
FINAL = "with_final_weights"
_OUTPUTS = "outputs_"
_VALIDATION = "validation(_[^/]+)?"  # of the run, and of each direction where there are two: validation_en-de
# Everything under train/ and validation/ that is not a part of the loss.
_NO_PARTS = (
    *("loss", "perplexity", "gradient_norm", "learning_rate", "padding_share", "tokens_per_second"),
    *METRICS,
    f"{_OUTPUTS}.*",
)


def _lines(*tags: str) -> list[str | list[str]]:
    """A chart with a line for each tag that matches one of these expressions."""
    return ["Multiline", [f"{tag}$" for tag in tags]]


# The page CUSTOM SCALARS: charts by category. It is the same for all runs, since TensorBoard merges only equal charts.
LAYOUT = {
    "overview": {
        "loss": _lines("train/loss", "validation/loss"),
        "BLEU and chrF of the validation set": _lines(f"{_VALIDATION}/bleu", f"{_VALIDATION}/chrf"),
        "learning rate": _lines("train/learning_rate"),
        "gradient norm": _lines("train/gradient_norm"),
        "target tokens per second": _lines("train/tokens_per_second"),
        "parts of the loss": _lines(f"(train|validation)/(?!({'|'.join(_NO_PARTS)})$).*"),
        "perplexity": _lines("(train|validation)/perplexity"),
    },
    "gradient norm of each part of the model": {
        "encoder": _lines(f"{GRADIENT_NORM}/encoder.*"),
        "decoder": _lines(f"{GRADIENT_NORM}/decoder.*"),
        "embeddings, positions, output": _lines(f"{GRADIENT_NORM}/(?!encoder|decoder).*"),
    },
    "translations of the validation set": {
        "all metrics": _lines(f"validation/({'|'.join(METRICS)})"),
        "share of translations that are empty, copied or repeating": _lines(f"validation/{_OUTPUTS}.*"),
    },
}


class Histogram(NamedTuple):
    """How many values lie between neighbouring edges."""

    edges: np.ndarray  # (N + 1,)
    counts: np.ndarray  # (N,)


View = np.ndarray | Histogram  # a picture (height, width, 3) of bytes, or a histogram


class Views(Protocol):
    """Pictures and histograms by name: those drawn once at the start, and those worth redrawing."""

    def at_start(self) -> Mapping[str, View]: ...

    def at_validation(self) -> Mapping[str, View]: ...


class Board:
    """Names and writes the events of a run."""

    def __init__(self, folder: Path, notify: Notify, *, texts: Mapping[str, str], views: Views | None = None) -> None:
        self._folder = folder
        self._notify = notify
        self._texts = texts
        self._views = views
        self._events: EventLog | None = None

    def start(self, update: int) -> None:
        """`update` is where the run begins; TensorBoard hides later points of a run that was interrupted."""
        goes_on = update > 0 or any(self._folder.glob("events.*"))
        purge_step = (update + 1 if update else 0) if goes_on else None
        self._events = EventLog(self._folder, self._notify, purge_step=purge_step)
        self._write(lambda writer: writer.add_custom_scalars(LAYOUT))
        for name, text in self._texts.items():
            self._text(name, f"```\n{text}\n```", update)
        if update == 0 and self._views is not None:
            self._show(self._views.at_start, update)

    def train(self, update: int, averages: Mapping[str, float], gradient_norms: Mapping[str, float]) -> None:
        """Averages since the last call, and the gradient norms of the parts of the model in this update."""
        finite = {name: norm for name, norm in gradient_norms.items() if math.isfinite(norm)}
        self._scalars(update, {f"train/{name}": value for name, value in averages.items()})
        self._scalars(update, {f"{GRADIENT_NORM}/{name}": norm for name, norm in finite.items()})

    def validation(self, update: int, result: ValidationResult) -> None:
        self._scalars(update, _validation_scalars("validation", result))
        for direction, part in result.by_direction.items():
            self._scalars(update, _validation_scalars(f"validation_{direction}", part))
        for number, sample in enumerate(result.samples, 1):
            rows = (("source", sample.source), ("reference", sample.reference), ("hypothesis", sample.hypothesis))
            text = "\n".join(f"    {name:<10} {line}" for name, line in rows)  # indented as Markdown code
            self._text(f"samples/{number}", text, update)
        self._show(lambda: {f"attention/{number}": image for number, image in enumerate(result.images, 1)}, update)
        if self._views is not None:
            self._show(self._views.at_validation, update)

    def finish(self, hyper_parameters: Mapping[str, Any], metrics: Mapping[str, float], update: int) -> None:
        """The final metrics beside the hyper-parameters."""
        plain = {k: v if isinstance(v, bool | int | float | str) else str(v) for k, v in hyper_parameters.items()}
        self._write(lambda writer: writer.add_hparams(plain, dict(metrics), run_name=".", global_step=update))

    def flush(self) -> None:
        if self._events is not None:
            self._events.flush()

    def close(self) -> None:
        if self._events is not None:
            self._events.close()
            self._events = None

    def _write(self, action: Callable[[SummaryWriter], object]) -> None:
        if self._events is not None:
            self._events.write(action)

    def _scalars(self, update: int, values: Mapping[str, float]) -> None:
        def add(writer: SummaryWriter) -> None:
            for name, value in values.items():
                writer.add_scalar(name, value, update)

        self._write(add)

    def _text(self, name: str, text: str, update: int) -> None:
        self._write(lambda writer: writer.add_text(name, text, update))

    def _show(self, draw: Callable[[], Mapping[str, View]], update: int) -> None:
        """Draws only if there is a log to show it in."""

        def add(writer: SummaryWriter) -> None:
            for name, view in draw().items():
                if isinstance(view, Histogram):
                    _add_histogram(writer, f"view/{name}", view, update)
                else:
                    writer.add_image(f"view/{name}", view, update, dataformats="HWC")

        self._write(add)


def _validation_scalars(group: str, result: ValidationResult) -> dict[str, float]:
    values = {"loss": result.loss, **result.parts, "perplexity": result.perplexity}
    if result.scores is not None:
        values |= result.scores.values
        values |= {f"{_OUTPUTS}{kind}": rate for kind, rate in result.scores.rates.items()}
    return {f"{group}/{name}": value for name, value in values.items()}


def _add_histogram(writer: SummaryWriter, tag: str, histogram: Histogram, update: int) -> None:
    edges, counts = (np.asarray(values, np.float64) for values in histogram)
    middles = (edges[1:] + edges[:-1]) / 2
    writer.add_histogram_raw(
        tag,
        min=edges[0],
        max=edges[-1],
        num=counts.sum(),
        sum=counts @ middles,
        sum_squares=counts @ middles**2,
        bucket_limits=edges[1:],
        bucket_counts=counts,
        global_step=update,
    )
