"""What is shown while a model trains: a progress bar or plain lines, TensorBoard, and a summary at the end."""

import math
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from tqdm import tqdm

from translator.evaluation.metrics import describe_scores
from translator.training.board import Board, Views
from translator.training.updater import UpdateOutcome
from translator.training.validation_result import ValidationResult, perplexity

_BAR_SECONDS = 0.5  # between two redraws
_BAR_FORMAT = "{percentage:3.0f}%|{bar:10}| {desc}"  # the bar is cut off at the right edge of the terminal


@dataclass(frozen=True)
class UpdateReport:
    """One update, as it is shown."""

    update: int
    outcome: UpdateOutcome
    learning_rate: float
    progress: float  # 0 … 1
    seconds_left: float


class Monitor:
    """Shows the progress of a run. Ranks other than the first only report problems."""

    def __init__(
        self,
        tensorboard: Path | None,
        *,
        log_every: int,
        texts: Mapping[str, str] | None = None,  # shown in TensorBoard: configuration, summary of the model …
        views: Views | None = None,  # shown in TensorBoard: pictures of the model and the corpus
        rank: int = 0,
        stream: TextIO | None = None,
    ) -> None:
        self.log_every = log_every
        self._rank = rank
        self._stream = stream or sys.stderr
        self._board: Board | None = None
        if tensorboard is not None and rank == 0:
            self._board = Board(tensorboard, self.notify, texts=texts or {}, views=views)
        self._bar: Any = None
        self._drawn = 0.0
        self._last = 0
        self.start_window()

    def start(self, update: int) -> None:
        """`update` is where the run begins."""
        self._last = update
        if self._board is not None:
            self._board.start(update)
        if self._rank == 0 and self._stream.isatty():
            self._bar = tqdm(total=100.0, file=self._stream, bar_format=_BAR_FORMAT, leave=False, dynamic_ncols=True)
        self.start_window()

    def will_log(self, update: int) -> bool:
        """Whether this update is one whose figures go to TensorBoard."""
        return self._board is not None and update % self.log_every == 0

    def notify(self, text: str) -> None:
        text = text if self._rank == 0 else f"rank {self._rank}: {text}"
        if self._bar is not None:
            self._bar.write(text, file=self._stream)
        else:
            print(text, file=self._stream, flush=True)

    def update(self, report: UpdateReport) -> None:
        if self._rank:
            return
        self._window.append(report)
        if self._bar is not None and time.monotonic() - self._drawn >= _BAR_SECONDS:
            self._draw(report)
        if report.update % self.log_every == 0:
            self._log()

    def validation(self, update: int, result: ValidationResult, *, is_best: bool) -> None:
        if self._rank:
            return
        if self._board is not None:
            self._board.validation(update, result)
        ending = [f"in {format_seconds(result.seconds)}", *(["(best so far)"] if is_best else [])]
        self.notify("  ".join([f"update {update}: validation {_describe_result(result)}", *ending]))
        for direction, part in result.by_direction.items():
            self.notify(f"  {direction}: {_describe_result(part)}")
        for prefix, part in ((f"{name}: ", part) for name, part in (result.by_direction or {"": result}).items()):
            for warning in part.warnings():
                self.notify(f"  warning: {prefix.removeprefix(': ')}{warning}")

    def before_checkpoint(self) -> None:
        """Flushes everything logged so far: a run resumed from the checkpoint logs only what comes after it."""
        if self._board is not None:
            self._board.flush()

    def finish(
        self, hyper_parameters: Mapping[str, Any], metrics: Mapping[str, float], table: Mapping[str, str]
    ) -> None:
        """Final metrics beside the hyper-parameters in TensorBoard, and the summary on the terminal."""
        self.close_bar()
        if self._board is not None:
            self._board.finish(hyper_parameters, metrics, self._last)
        if self._rank == 0:
            width = max(map(len, table), default=0)
            rows = ((name, value.replace("\n", "\n" + " " * (width + 2))) for name, value in table.items())
            self.notify("\n".join(f"{name:<{width}}  {value}" for name, value in rows))

    def close_bar(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def close(self) -> None:
        self.close_bar()
        if self._board is not None:
            self._board.close()

    def start_window(self) -> None:
        """Restarts the measurement of speed and averages; called after work that is not training."""
        self._window: list[UpdateReport] = []
        self._window_started = time.monotonic()

    def _averages(self) -> dict[str, float]:
        """Over the updates since the last logged point."""
        outcomes = [report.outcome for report in self._window]
        tokens = sum(outcome.num_tokens for outcome in outcomes)
        # A float16 gradient that overflowed was not applied; its norm is infinite and says nothing about training.
        norms = [outcome.gradient_norm for outcome in outcomes if math.isfinite(outcome.gradient_norm)]
        parts = {name: self._average_part(name) for name in outcomes[-1].parts}
        return {
            "loss": sum(outcome.loss_sum for outcome in outcomes) / tokens,
            **parts,
            "perplexity": perplexity(parts["nll"]),
            **({"gradient_norm": sum(norms) / len(norms)} if norms else {}),
            "learning_rate": self._window[-1].learning_rate,
            "padding_share": sum(outcome.padding_share for outcome in outcomes) / len(outcomes),
            "tokens_per_second": tokens / max(1e-9, time.monotonic() - self._window_started),
        }

    def _average_part(self, name: str) -> float:
        """Over the updates that have this part: a loss may change in the course of a run."""
        outcomes = [report.outcome for report in self._window if name in report.outcome.parts]
        return sum(outcome.parts[name] for outcome in outcomes) / sum(outcome.num_tokens for outcome in outcomes)

    def _describe(self, averages: dict[str, float], report: UpdateReport) -> str:
        return (
            f"loss {averages['loss']:.3f}  {averages['tokens_per_second']:,.0f} tokens/s"
            f"  lr {report.learning_rate:.2e}  {format_seconds(report.seconds_left)} left"
        )

    def _draw(self, report: UpdateReport) -> None:
        self._drawn = time.monotonic()
        self._bar.n = round(100 * report.progress, 1)
        averages = self._averages()
        # The most important figures first: 80 columns show all but the learning rate.
        self._bar.set_description_str(
            f"update {report.update}  {format_seconds(report.seconds_left)} left  loss {averages['loss']:.3f}"
            f"  {averages['tokens_per_second']:,.0f} tokens/s  lr {report.learning_rate:.2e}"
        )

    def _log(self) -> None:
        averages, report = self._averages(), self._window[-1]
        self._last = report.update
        if self._board is not None:
            self._board.train(report.update, averages, report.outcome.part_norms)
        if self._bar is None:
            self.notify(f"update {report.update}  {report.progress:.0%}  {self._describe(averages, report)}")
        self.start_window()


def _describe_result(result: ValidationResult) -> str:
    scores = [describe_scores(result.scores.values)] if result.scores is not None else []
    return "  ".join([f"loss {result.loss:.3f}", f"perplexity {result.perplexity:.2f}", *scores])


def format_seconds(seconds: float) -> str:
    """1h02m, 3m20s, 45s or 0.8s."""
    if seconds < 10:
        return f"{max(0.0, seconds):.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m" if hours else f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"


def model_summary(model: Any) -> str:
    """The parts of a model with their parameters, and the total."""
    rows = [(name, sum(p.numel() for p in part.parameters())) for name, part in model.named_children()]
    total = sum(p.numel() for p in model.parameters())
    lines = [f"{name:<24}{count:>14,}" for name, count in rows]
    return "\n".join([*lines, f"{'all (shared ones once)':<24}{total:>14,}", "", str(model)])
