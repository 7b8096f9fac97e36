"""The weights file of a run: the best weights so far and, at the end, the final ones."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from translator.errors import UserError
from translator.models.base import Seq2Seq
from translator.runs.weights import (
    average_weights,
    collect_weights,
    read_tensors_and_details,
    restore_weights,
    write_tensors,
)
from translator.training.checkpoint import CheckpointStore
from translator.training.distributed import Ranks
from translator.training.ema import ExponentialMovingAverage
from translator.training.interfaces import Notify
from translator.training.progress import Progress, TrainerSettings
from translator.training.snapshots import report_failed_write
from translator.training.validation_result import ValidationResult


@dataclass(frozen=True)
class Candidate:
    """Weights that may become the final ones."""

    step: int
    score: float  # higher is better
    weights: Callable[[], dict[str, Tensor]]
    is_published: bool = False  # they are in the weights file already

    @property
    def rank(self) -> tuple[float, int, bool]:
        """Sorts best first, then earliest; published weights need not be written again."""
        return -self.score, self.step, not self.is_published


@dataclass
class FinalWeights:
    """Chooses among the checkpoints, the averages of checkpoints, the published weights and the model's own.

    The best weights stay in memory until a checkpoint has them, so that a full disk does not lose them.
    """

    file: Path
    model: Seq2Seq
    ema: ExponentialMovingAverage | None
    checkpoints: CheckpointStore
    ranks: Ranks
    notify: Notify
    _in_memory: Candidate | None = field(default=None, init=False)

    def publish_best(self, progress: Progress) -> None:
        """Publishes the current model, the best so far, so that `translate` works while training continues."""
        if not self.ranks.is_main:
            return
        assert progress.best_score is not None
        step, score, weights = progress.best_update, progress.best_score, self._evaluated()
        self._in_memory = None
        if not self.checkpoints.holds(step):
            copies = {name: tensor.detach().cpu().clone() for name, tensor in weights.items()}
            self._in_memory = Candidate(step, score, lambda: copies)
        self._write(weights, update=str(step), score=repr(score))

    def choose(
        self, progress: Progress, settings: TrainerSettings, validate: Callable[[], ValidationResult | None]
    ) -> tuple[str, dict[str, Any]]:
        """Gives the model the best weights that were kept, or an average if that is requested and not worse.

        `validate` returns None if there was no time for it. Without any validation the weights remain the latest.
        Returns where the weights come from, in words, and their metrics on the validation set.
        """
        candidates = self._candidates(progress) if self.ranks.is_main else []
        best = candidates[0] if candidates else self._current(progress)
        weights, origin = best.weights(), _describe(best, progress, settings.best_metric)
        # Only the first rank knows the candidates, and all ranks must make the same decision.
        step, best_score, origin = self.ranks.gather((best.step, best.score, origin))[0]
        figures = next((figures for figures in progress.history if figures["update"] == step), {})
        is_published = best.is_published
        self._take_over(weights)
        if settings.average != "none":
            chosen = self._averaged(settings.average, candidates)
            self._take_over(average_weights(part() for part in chosen) or weights)
            result = validate()
            average = f"average of {self.ranks.gather(len(chosen))[0]} checkpoints ({settings.average})"
            score = result.score(settings.best_metric) if result is not None else None
            if score is not None and score < best_score and self.ranks.is_main:
                self.notify(f"{average}: {score:.2f}, worse than {best_score:.2f} of {origin}")
            if result is None or score is None or score < best_score:
                self._take_over(weights)
            else:
                origin, figures, is_published = average, result.figures(), False
        if self.ranks.is_main and not is_published:
            self._write(collect_weights(self.model), required=True)
        return origin, figures

    def _candidates(self, progress: Progress) -> list[Candidate]:
        """The best intact checkpoints, the weights kept in memory and the published ones, best first."""
        stored = [
            Candidate(checkpoint.step, checkpoint.score, checkpoint.evaluated_weights)
            for checkpoint in self.checkpoints.best(self.notify)
            if checkpoint.score is not None
        ]
        is_new = progress.validated_at == progress.update and not self.checkpoints.holds(progress.update)
        current = self._current(progress) if is_new else None
        others = (current, self._in_memory, self._published(progress))
        found = {candidate.step: candidate for candidate in (*stored, *others) if candidate is not None}
        return sorted(found.values(), key=lambda candidate: candidate.rank)[: self.checkpoints.keep_best]

    def _published(self, progress: Progress) -> Candidate | None:
        """The weights file, if it is intact and holds weights that this run has validated."""
        if not self.file.exists():
            return None
        try:
            weights, details = read_tensors_and_details(self.file, needs_checksum=True)
            step, score = int(details["update"]), float(details["score"])
        except (UserError, KeyError, ValueError):  # damaged, of an earlier version, or an average
            return None
        is_ours = any(figures["update"] == step for figures in progress.history)
        return Candidate(step, score, lambda: weights, is_published=True) if is_ours else None

    def _current(self, progress: Progress) -> Candidate:
        """The model as it is now. If there was no time to validate it, anything else is better."""
        score = progress.last_score if progress.validated_at == progress.update else None
        weights = {name: tensor.clone() for name, tensor in self._evaluated().items()}
        return Candidate(progress.update, -math.inf if score is None else score, lambda: weights)

    def _averaged(self, which: str, best: list[Candidate]) -> list[Callable[[], dict[str, Tensor]]]:
        if which == "best":
            return [candidate.weights for candidate in best]
        newest = self.checkpoints.newest_first(self.notify) if self.ranks.is_main else []
        return [checkpoint.evaluated_weights for checkpoint in newest]

    def _evaluated(self) -> dict[str, Tensor]:
        """The weights that validation sees: the moving average if there is one."""
        return collect_weights(self.model) | (self.ema.weights if self.ema is not None else {})

    def _take_over(self, weights: dict[str, Tensor]) -> None:
        """The first rank's weights become the model's, on all ranks."""
        if self.ranks.is_main:
            restore_weights(self.model, weights, str(self.checkpoints.folder))
        self.ranks.broadcast_weights(self.model)

    def _write(self, weights: dict[str, Tensor], required: bool = False, **details: str) -> None:
        try:
            write_tensors(self.file, weights, **details)
        except OSError as error:
            report_failed_write(f"could not write {self.file}: {error}", required, self.notify)


def _describe(chosen: Candidate, progress: Progress, metric: str) -> str:
    if all(figures["update"] != chosen.step for figures in progress.history):
        return f"update {chosen.step}, not validated"
    is_best = progress.best_score is None or chosen.score >= progress.best_score
    kept = "" if is_best else f" of those kept (update {progress.best_update} was better but is lost)"
    return f"update {chosen.step}, the best by {metric}{kept}"
