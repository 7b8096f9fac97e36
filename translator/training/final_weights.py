"""The weights file of a run: the best weights so far and, at the end, the final ones."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from translator.models.base import Seq2Seq
from translator.runs.weights import average_weights, collect_weights, restore_weights, write_tensors
from translator.training.checkpoint import CheckpointStore
from translator.training.distributed import Ranks
from translator.training.ema import ExponentialMovingAverage
from translator.training.interfaces import Notify
from translator.training.progress import Progress, TrainerSettings
from translator.training.snapshots import report_failed_write
from translator.training.validation import ValidationResult


@dataclass(frozen=True)
class FinalWeights:
    """Chooses among the checkpoints, the averages of checkpoints and the model's own weights."""

    file: Path
    model: Seq2Seq
    ema: ExponentialMovingAverage | None
    checkpoints: CheckpointStore
    ranks: Ranks
    notify: Notify

    def publish_best(self) -> None:
        """The model as it is now is the best so far, so that `translate` works while training goes on."""
        if self.ranks.is_main:
            self._write(self._evaluated())

    def choose(
        self, progress: Progress, settings: TrainerSettings, validate: Callable[[], ValidationResult]
    ) -> tuple[str, dict[str, Any]]:
        """Gives the model the best checkpoint's weights, or an average where that is wanted and not worse.

        Returns where the weights come from, in words, and their figures on the validation set.
        """
        best = self.checkpoints.best(self.notify) if self.ranks.is_main else []
        if best:
            step, weights = best[0].step, best[0].evaluated_weights()
            origin = f"update {step}, the best by {settings.best_metric}"
        else:  # not the first rank, or the disk was full all the time
            step, origin = progress.update, f"update {progress.update}, the last"
            weights = {name: tensor.clone() for name, tensor in self._evaluated().items()}
        figures = next(figures for figures in progress.history if figures["update"] == step)
        self._take_over(weights)
        if settings.average != "none":
            chosen = best if settings.average == "best" else self.checkpoints.newest_first(self.notify)
            self._take_over(average_weights(checkpoint.evaluated_weights() for checkpoint in chosen) or weights)
            result = validate()
            average = f"average of {len(chosen)} checkpoints ({settings.average})"
            score = result.score(settings.best_metric)
            if progress.best_score is not None and score < progress.best_score:
                self.notify(f"{average}: {score:.2f}, worse than {progress.best_score:.2f} of {origin}")
                self._take_over(weights)
            else:
                origin, figures = average, result.figures()
        if self.ranks.is_main:
            self._write(collect_weights(self.model), required=True)
        return origin, figures

    def _evaluated(self) -> dict[str, Tensor]:
        """The weights that validation sees: the moving average where there is one."""
        return collect_weights(self.model) | (self.ema.weights if self.ema is not None else {})

    def _take_over(self, weights: dict[str, Tensor]) -> None:
        """The first rank's weights become the model's, on all ranks."""
        if self.ranks.is_main:
            restore_weights(self.model, weights, str(self.checkpoints.folder))
        self.ranks.broadcast_weights(self.model)

    def _write(self, weights: dict[str, Tensor], required: bool = False) -> None:
        try:
            write_tensors(self.file, weights)
        except OSError as error:
            report_failed_write(f"could not write {self.file}: {error}", required, self.notify)
