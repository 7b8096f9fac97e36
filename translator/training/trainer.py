"""The training loop. It receives finished objects and does nothing but run them in the right order."""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from translator.data.batching import Batch
from translator.errors import Interrupted, UserError
from translator.models.base import Seq2Seq
from translator.training.checkpoint import CheckpointStore
from translator.training.deadline import Deadline
from translator.training.distributed import Ranks
from translator.training.ema import ExponentialMovingAverage
from translator.training.final_weights import FinalWeights
from translator.training.interfaces import Loader, Loss, Moment
from translator.training.monitor import Monitor, UpdateReport
from translator.training.not_finite import describe_update
from translator.training.precision import Execution
from translator.training.progress import Plan, Progress, TrainerSettings
from translator.training.random_state import untouched_random_state
from translator.training.run_time import RunTime
from translator.training.signals import Interruption, stop_message
from translator.training.snapshots import Snapshots
from translator.training.updater import UpdateOutcome, Updater
from translator.training.validation_result import ValidationResult


@dataclass(frozen=True)
class TrainingResult:
    """How a call of `fit` ended."""

    stopped_by: str  # max_updates, max_epochs, max_time, patience or signal
    signal: int  # its number, or 0
    final_weights: str  # where the weights that the model now has come from, in words
    final: dict[str, Any]  # the final model's metrics on the validation set
    progress: Progress  # of all calls together

    @property
    def exit_code(self) -> int:
        return 128 + self.signal if self.signal else 0


@dataclass(kw_only=True)
class Trainer:
    """Trains until one of the limits is reached; `resume` first restores the newest intact checkpoint."""

    model: Seq2Seq
    loss: Loss
    optimizer: torch.optim.Optimizer
    learning_rate: Callable[[int, float], float]
    loader: Loader
    validator: Callable[[Seq2Seq], ValidationResult]
    estimate_validation: Callable[[Seq2Seq], float] | None = None  # its seconds, the same on all ranks
    checkpoints: CheckpointStore
    weights_file: Path
    monitor: Monitor
    settings: TrainerSettings
    execution: Execution
    ranks: Ranks = field(default_factory=Ranks)
    interruption: Interruption = field(default_factory=Interruption)
    ema: ExponentialMovingAverage | None = None
    teacher_forcing: Callable[[int], float] = lambda update: 1.0
    clock: Callable[[], float] = time.monotonic
    started: float | None = None  # when the run's time began, by the clock; None = when `fit` is called

    def __post_init__(self) -> None:
        model, ranks, notify, interrupted = self.model, self.ranks, self.monitor.notify, self.interruption.requested
        self.progress = Progress()
        self.plan = Plan(self.settings)
        self.time = RunTime(self.plan, self.clock, self.started, ranks)
        self.deadline = Deadline(self.time, self.interruption)
        self.updater = Updater(
            model, self.loss, self.optimizer, self.execution, ranks, notify, self.settings.clip_norm, interrupted
        )
        self.snapshots = Snapshots(
            model, self.optimizer, self.ema, self.updater, self.loader, self.checkpoints, self.monitor, ranks
        )
        self.final_weights = FinalWeights(self.weights_file, model, self.ema, self.checkpoints, ranks, notify)

    def resume(self) -> int:
        """Continues from the newest intact checkpoint; returns its update, or 0 if none was written yet."""
        restored = self.snapshots.restore()
        if restored is None:
            self.monitor.notify("no checkpoint was written yet: starting from the beginning")
            return 0
        self.progress = restored
        return restored.update

    def fit(self) -> TrainingResult:
        """Unless a signal stopped it, the model then has the final weights, which are also in `weights_file`."""
        if self.ranks.is_main:
            self.checkpoints.open()
        self.ranks.broadcast_weights(self.model)
        if self.ema is not None and self.progress.update == 0:
            self.ema.load(dict(self.model.named_parameters()))  # on every rank the first rank's weights
        self.model.train()
        self.monitor.start(self.progress.update)
        self.time.begin(self.progress)
        self.deadline.begin(self.progress)
        reason, number = self._run()
        chosen = None
        if number or self.progress.validated_at < self.progress.update:
            self.snapshots.save(self.progress, self.time.seconds, required=bool(number))
        if not number:
            # The last checkpoint has everything, so a stop from here on needs no other: resuming chooses again.
            with contextlib.suppress(Interrupted):
                chosen = self._choose_weights()
            number = self.interruption.agreed()
        if chosen is None or number:
            reason, chosen = "signal", ("interrupted", {})
            if self.ranks.is_main:
                moment, run = f"after update {self.progress.update}", self.weights_file.parent
                self.monitor.notify(stop_message(number, moment, run))
        self.monitor.close_bar()
        return TrainingResult(reason, number, *chosen, self.progress)

    def _run(self) -> tuple[str, int]:
        """Updates and validates until there is a reason to stop; a signal's number comes with it."""
        batches = iter(self.loader)
        while True:
            # All ranks must make the same decision, so they agree on the time and on whether anyone was asked to stop.
            self.progress.seconds, number, self.progress.reserve_seconds = self.ranks.maximum(
                self.time.seconds, self.interruption.received, self.time.reserve(self.progress)
            )
            if number:
                return "signal", int(number)
            if self.estimate_validation is not None and self.time.estimate_is_due(self.progress):
                with contextlib.suppress(Interrupted):
                    self._estimate(self.estimate_validation)
                continue
            reason = self.plan.reason_to_stop(self.progress)
            if reason and self.progress.validated_at == self.progress.update:
                return reason, 0
            if reason or self.plan.validation_is_due(self.progress):
                is_made = True
                with contextlib.suppress(Interrupted):
                    is_made = self._validate(is_last=reason is not None)
                if is_made:
                    continue
                if reason:
                    return reason, 0
            with contextlib.suppress(Interrupted), self.time.of_update(), self.snapshots.abandonable():
                self._update(batches)
            if self.settings.save_every and self.progress.update % self.settings.save_every == 0:
                self.snapshots.save(self.progress, self.time.seconds)

    def _update(self, batches: Iterator[Batch]) -> None:
        progress = self.progress
        total = max(progress.update + 1.0, self.plan.expected_updates(progress))
        rate = self.learning_rate(progress.update + 1, total)
        collected = self.updater.collect(
            batches, self.loader, update_tokens=self.settings.update_tokens, max_epochs=self.settings.max_epochs
        )
        moment = Moment(progress.update / total, self.teacher_forcing(progress.update))
        is_logged = self.monitor.will_log(progress.update + 1)
        outcome = self.updater(collected, learning_rate=rate, moment=moment, measure_parts=is_logged)
        progress.record_update(len(collected), outcome.num_tokens, self.loader.epoch)
        if not outcome.is_finite:
            self._skip_or_stop(outcome, rate)
            return
        if self.ema is not None:
            self.ema.update(progress.update)
        self.monitor.update(
            UpdateReport(
                update=progress.update,
                outcome=outcome,
                learning_rate=rate,
                progress=min(1.0, progress.update / total),
                seconds_left=(progress.seconds - progress.startup_seconds) * max(0.0, total / progress.update - 1),
            )
        )

    def _skip_or_stop(self, outcome: UpdateOutcome, learning_rate: float) -> None:
        progress, max_skipped = self.progress, self.settings.max_skipped
        progress.num_skipped += 1
        loss = outcome.loss_sum / outcome.num_tokens
        what = describe_update(progress.update, loss, outcome.gradient_norm, learning_rate, outcome.suspects)
        if progress.num_skipped <= max_skipped:
            self.monitor.notify(f"{what}: skipped ({progress.num_skipped} of at most {max_skipped})")
            return
        newest = self.checkpoints.newest(self.monitor.notify) if self.ranks.is_main else None
        last_good = self.ranks.gather(str(newest.path) if newest else "none yet")[0]
        raise UserError(
            f"{what}: not finite, so the run stops before the weights are touched. Last good checkpoint:"
            f" {last_good}. Lower optim.learning_rate, look at the rows named, or"
            f" allow a few such updates (trainer.max_skipped={max_skipped})"
        )

    def _validate(self, *, is_last: bool) -> bool:
        """Returns False if there was no time for it."""
        started = self.time.seconds
        with self._evaluated_weights():
            result = self.deadline.validation(self._run_validator, is_last=is_last)
        if result is None:
            self.monitor.start_window()
            return False
        is_best = self.progress.record_validation(result.score(self.settings.best_metric), result.figures())
        self.time.note_validation(self.progress, self.ranks.maximum(self.time.seconds - started)[0])
        self.monitor.validation(self.progress.update, result, is_best=is_best)  # a checkpoint says that this is done
        self.snapshots.save(self.progress, self.time.seconds)
        if is_best:
            self.final_weights.publish_best(self.progress)
        self.time.note_validation(self.progress, self.ranks.maximum(self.time.seconds - started)[0], is_over=True)
        self.monitor.start_window()
        return True

    def _estimate(self, estimate_validation: Callable[[Seq2Seq], float]) -> None:
        with self._evaluated_weights(), untouched_random_state(self.execution.device):
            seconds = self.deadline.estimate(lambda: estimate_validation(self.model))
        self.time.note_estimate(self.progress, seconds)
        self.monitor.start_window()

    def _choose_weights(self) -> tuple[str, dict[str, Any]]:
        settings = self.settings
        if settings.average != "none" and not self.deadline.has_time_for_average():
            settings = replace(settings, average="none")
        return self.final_weights.choose(self.progress, settings, lambda: self.deadline.average(self._run_validator))

    def _evaluated_weights(self) -> contextlib.AbstractContextManager[None]:
        return self.ema.in_place_of_weights() if self.ema is not None else contextlib.nullcontext()

    def _run_validator(self) -> ValidationResult:
        """Raises `Interrupted`, on all ranks at once, when a signal comes: it can be made up for after resuming."""
        with untouched_random_state(self.execution.device):
            return self.validator(self.model)
