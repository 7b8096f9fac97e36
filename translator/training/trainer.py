"""The training loop. It receives finished objects and does nothing but run them in the right order."""

import contextlib
import math
import signal as signal_module
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from translator.data.batching import Batch
from translator.errors import UserError
from translator.models.base import Seq2Seq
from translator.runs.weights import average_weights, collect_weights, restore_weights, write_tensors
from translator.training.checkpoint import CheckpointStore
from translator.training.distributed import Ranks
from translator.training.ema import ExponentialMovingAverage
from translator.training.interfaces import Loader, Loss
from translator.training.monitor import Monitor, UpdateReport
from translator.training.optimizer import optimizer_tensors, restore_optimizer
from translator.training.precision import Execution
from translator.training.progress import Plan, Progress, TrainerSettings
from translator.training.random_state import random_state, restore_random_state, untouched_random_state
from translator.training.signals import Interrupted, StopSignals
from translator.training.updater import UpdateOutcome, Updater
from translator.training.validation import ValidationResult

_STATE_FORMAT = 1


@dataclass(frozen=True)
class TrainingResult:
    """How a call of `fit` ended."""

    stopped_by: str  # max_updates, max_epochs, max_time, patience or signal
    signal: int  # its number, or 0
    update: int
    epoch: int  # finished ones
    seconds: float  # of all calls together
    num_tokens: int
    num_skipped: int
    final_weights: str  # where the weights that the model now has come from, in words
    final: dict[str, Any]  # the final model's figures on the validation set
    history: list[dict[str, Any]]  # the figures of all validations

    @property
    def exit_code(self) -> int:
        return 128 + self.signal if self.signal else 0


class Trainer:
    """Trains until one of the limits is reached; `resume` first continues from the newest whole checkpoint."""

    def __init__(
        self,
        *,
        model: Seq2Seq,
        loss: Loss,
        optimizer: torch.optim.Optimizer,
        learning_rate: Callable[[int, float], float],
        loader: Loader,
        validator: Callable[[Seq2Seq], ValidationResult],
        checkpoints: CheckpointStore,
        weights_file: Path,
        monitor: Monitor,
        settings: TrainerSettings,
        execution: Execution,
        ranks: Ranks | None = None,
        ema: ExponentialMovingAverage | None = None,
        teacher_forcing: Callable[[int], float] = lambda update: 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.model = model
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.loader = loader
        self.validator = validator
        self.checkpoints = checkpoints
        self.weights_file = weights_file
        self.monitor = monitor
        self.settings = settings
        self.execution = execution
        self.ranks = ranks or Ranks()
        self.ema = ema
        self.teacher_forcing = teacher_forcing
        self.clock = clock
        self.progress = Progress()
        self.plan = Plan(settings)
        self.updater = Updater(
            model=model,
            loss=loss,
            optimizer=optimizer,
            execution=execution,
            ranks=self.ranks,
            clip_norm=settings.clip_norm,
            notify=monitor.notify,
        )
        self._saved: tuple[int, int] | None = None  # progress.update and .validated_at of the newest checkpoint

    # ---- from start to end ----

    def fit(self) -> TrainingResult:
        """Unless a signal stopped it, the model then has the final weights, which are also in `weights_file`."""
        if self.ranks.is_main:
            self.checkpoints.open()
        self.ranks.broadcast_weights(self.model)
        if self.ema is not None and self.progress.update == 0:
            self.ema.load(dict(self.model.named_parameters()))  # on every rank the first rank's weights
        self.model.train()
        self.monitor.start(self.progress.update)
        self._clock_zero = self.clock() - self.progress.seconds
        with StopSignals() as signals:
            reason, number = self._run(signals)
            if reason == "signal":
                self._save(required=True)
            else:
                try:
                    return self._result(reason, 0, *self._choose_final_weights(signals))
                except Interrupted:
                    number = signals.received
        self._say_how_to_resume(number)
        return self._result("signal", number, "interrupted", {})

    def _run(self, signals: StopSignals) -> tuple[str, int]:
        batches = iter(self.loader)
        while True:
            # The ranks must decide alike, so they agree on the time and on whether anyone was asked to stop.
            self.progress.seconds, number = self.ranks.maximum(self.clock() - self._clock_zero, signals.received)
            if number:
                return "signal", int(number)
            reason = self.plan.reason_to_stop(self.progress)
            if reason and self.progress.validated_at == self.progress.update:
                return reason, 0
            if reason or self.plan.validation_is_due(self.progress):
                with contextlib.suppress(Interrupted):
                    self._validate(signals)
                continue
            self._update(batches)
            if self.settings.save_every and self.progress.update % self.settings.save_every == 0:
                self._save()

    def _update(self, batches: Iterator[Batch]) -> None:
        progress = self.progress
        total = max(progress.update + 1.0, self.plan.expected_updates(progress))
        rate = self.learning_rate(progress.update + 1, total)
        collected = self.updater.collect(
            batches, self.loader, update_tokens=self.settings.update_tokens, max_epochs=self.settings.max_epochs
        )
        outcome = self.updater(collected, learning_rate=rate, teacher_forcing=self.teacher_forcing(progress.update))
        progress.record_update(len(collected), outcome.num_tokens, self.loader.epoch)
        if not outcome.is_finite:
            self._skip_or_stop(outcome, rate)
            return
        if self.ema is not None:
            self.ema.update(progress.update)
        self.monitor.update(
            UpdateReport(
                update=progress.update,
                loss_sum=outcome.loss_sum,
                nll_sum=outcome.nll_sum,
                num_tokens=outcome.num_tokens,
                learning_rate=rate,
                gradient_norm=outcome.gradient_norm,
                padding_share=outcome.padding_share,
                progress=min(1.0, progress.update / total),
                seconds_left=progress.seconds * max(0.0, total / progress.update - 1),
            )
        )

    def _skip_or_stop(self, outcome: UpdateOutcome, learning_rate: float) -> None:
        progress = self.progress
        progress.num_skipped += 1
        rows = ", ".join(map(str, outcome.suspects[:16]))
        more = f" and {len(outcome.suspects) - 16} more" if len(outcome.suspects) > 16 else ""
        what = (
            f"update {progress.update}: loss {outcome.loss_sum / outcome.num_tokens:g}, gradient norm"
            f" {outcome.gradient_norm:g}, learning rate {learning_rate:.3g}, rows {rows}{more} of the training corpus"
        )
        if progress.num_skipped <= self.settings.max_skipped:
            self.monitor.notify(f"{what}: skipped ({progress.num_skipped} of at most {self.settings.max_skipped})")
            return
        newest = self.checkpoints.newest(self.monitor.notify) if self.ranks.is_main else None
        last_good = self.ranks.gather(str(newest.path) if newest else "none yet")[0]
        raise UserError(
            f"{what}: not finite, so the run stops before the weights are touched. Last good checkpoint:"
            f" {last_good}. Lower optim.learning_rate, look at the rows named, or"
            f" allow a few such updates (trainer.max_skipped={self.settings.max_skipped})"
        )

    # ---- validation and the final weights ----

    def _evaluated_weights(self) -> contextlib.AbstractContextManager[None]:
        return self.ema.in_place_of_weights() if self.ema is not None else contextlib.nullcontext()

    def _run_validator(self, signals: StopSignals) -> ValidationResult:
        # A single process can give up a validation and do it again after resuming; several would lose each other.
        with untouched_random_state(self.execution.device), signals.interruptible(self.ranks.count == 1):
            return self.validator(self.model)

    def _score(self, result: ValidationResult) -> float:
        score = result.score(self.settings.best_metric)
        return score if math.isfinite(score) else -math.inf

    def _validate(self, signals: StopSignals) -> None:
        started = self.clock()
        with self._evaluated_weights():
            result = self._run_validator(signals)
        score = self._score(result)
        is_best = self.progress.record_validation(score, result.figures())
        (self.progress.validation_seconds,) = self.ranks.maximum(self.clock() - started)
        self.monitor.validation(self.progress.update, result, is_best=is_best)  # a checkpoint says that this is done
        self._save()
        if is_best and self.ranks.is_main:
            self._publish(collect_weights(self.model) | self._ema_weights())
        (self.progress.validation_seconds,) = self.ranks.maximum(self.clock() - started)  # now with the writing
        self.monitor.start_window()

    def _choose_final_weights(self, signals: StopSignals) -> tuple[str, dict[str, Any]]:
        """Gives the model the best checkpoint's weights, or an average where that is wanted and not worse."""
        progress = self.progress
        best = self.checkpoints.best(self.monitor.notify) if self.ranks.is_main else []
        if best:
            step, weights = best[0].step, best[0].evaluated_weights()
            origin = f"update {step}, the best by {self.settings.best_metric}"
        else:  # not the first rank, or the disk was full all the time
            step, origin = progress.update, f"update {progress.update}, the last"
            own = collect_weights(self.model) | self._ema_weights()
            weights = {name: tensor.clone() for name, tensor in own.items()}
        figures = next(figures for figures in progress.history if figures["update"] == step)
        self._take_over(weights)
        if self.settings.average != "none":
            chosen = best if self.settings.average == "best" else self.checkpoints.newest_first(self.monitor.notify)
            self._take_over(average_weights(checkpoint.evaluated_weights() for checkpoint in chosen) or weights)
            result = self._run_validator(signals)
            average = f"average of {len(chosen)} checkpoints ({self.settings.average})"
            if progress.best_score is not None and self._score(result) < progress.best_score:
                self.monitor.notify(
                    f"{average}: {self._score(result):.2f}, worse than {progress.best_score:.2f} of {origin}"
                )
                self._take_over(weights)
            else:
                origin, figures = average, result.figures()
        if self.ranks.is_main:
            self._publish(collect_weights(self.model), required=True)
        return origin, figures

    def _take_over(self, weights: dict[str, Tensor]) -> None:
        """The first rank's weights become the model's, on all ranks."""
        if self.ranks.is_main:
            restore_weights(self.model, weights, str(self.checkpoints.folder))
        self.ranks.broadcast_weights(self.model)

    def _ema_weights(self) -> dict[str, Tensor]:
        return self.ema.weights if self.ema is not None else {}

    def _publish(self, weights: dict[str, Tensor], required: bool = False) -> None:
        """The run's own weights file: the best so far, so that `translate` works while training goes on."""
        try:
            write_tensors(self.weights_file, weights)
        except OSError as error:
            self._complain(f"could not write {self.weights_file}: {error}", required)

    # ---- checkpoints ----

    def resume(self) -> int:
        """Continues from the newest whole checkpoint; returns its update, or 0 where none was written yet."""
        checkpoint = None
        if self.ranks.is_main:
            self.checkpoints.open()
            checkpoint = self.checkpoints.newest(self.monitor.notify)
            if checkpoint is None and self.checkpoints.has_any():
                raise UserError(f"{self.checkpoints.folder}: every checkpoint is damaged; start a new run")
        name = self.ranks.gather(checkpoint.path.name if checkpoint else None)[0]
        if name is None:
            self.monitor.notify("no checkpoint was written yet: starting from the beginning")
            return 0
        checkpoint = checkpoint or self.checkpoints.read(name)
        state = checkpoint.state
        if len(state["ranks"]) != self.ranks.count:
            raise UserError(
                f"{checkpoint.path}: written by {len(state['ranks'])} processes, now there are {self.ranks.count};"
                f" start it with torchrun --nproc-per-node so that there are as many"
            )
        restore_weights(self.model, checkpoint.tensors("model"), str(checkpoint.path))
        restore_optimizer(self.optimizer, checkpoint.tensors("optimizer"))
        if self.ema is not None:
            has_average = (checkpoint.path / "ema.safetensors").exists()
            self.ema.load(checkpoint.tensors("ema" if has_average else "model"))
        self.progress = Progress(**state["progress"])
        if state["scaler"]:  # empty where the run had none, for example on another device
            self.updater.scaler.load_state_dict(state["scaler"])
        own = state["ranks"][self.ranks.rank]
        self.updater.memory.limit = own["memory_limit"]
        self.loader.load_state_dict(own["loader"])
        restore_random_state(own["random"], self.execution.device)
        self._saved = (self.progress.update, self.progress.validated_at)
        return self.progress.update

    def _save(self, required: bool = False) -> None:
        progress = self.progress
        if self._saved == (progress.update, progress.validated_at):
            return
        own = {
            "memory_limit": self.updater.memory.limit,
            "loader": self.loader.state_dict(),
            "random": random_state(self.execution.device),
        }
        state = {
            "format_version": _STATE_FORMAT,
            "progress": asdict(progress) | {"seconds": self.clock() - self._clock_zero},
            "scaler": self.updater.scaler.state_dict(),
            "ranks": self.ranks.gather(own),
        }
        is_saved = False
        if self.ranks.is_main:
            weights = collect_weights(self.model)
            tensors = {"model": weights, "optimizer": optimizer_tensors(self.optimizer)}
            if self.ema is not None:
                tensors["ema"] = weights | self.ema.weights
            score = progress.last_score if progress.validated_at == progress.update else None
            self.monitor.before_checkpoint()
            try:
                self.checkpoints.save(progress.update, tensors, state, score)
                is_saved = True
            except OSError as error:
                self._complain(f"could not write a checkpoint to {self.checkpoints.folder}: {error}", required)
        if any(self.ranks.gather(is_saved)):  # all ranks must agree on what is still to be saved
            self._saved = (progress.update, progress.validated_at)

    def _complain(self, problem: str, required: bool) -> None:
        if required:
            raise UserError(f"{problem}. Earlier checkpoints are untouched; make room and resume")
        self.monitor.notify(f"{problem}. Earlier checkpoints are untouched; training goes on and will try again")

    def _say_how_to_resume(self, number: int) -> None:
        run = self.weights_file.parent
        name = signal_module.Signals(number).name
        if self.ranks.is_main:
            self.monitor.notify(f"stopped by {name} after update {self.progress.update}; continue with resume={run}")

    def _result(self, reason: str, number: int, origin: str, figures: dict[str, Any]) -> TrainingResult:
        self.monitor.close_bar()
        progress = self.progress
        return TrainingResult(
            stopped_by=reason,
            signal=number,
            update=progress.update,
            epoch=progress.epoch,
            seconds=progress.seconds,
            num_tokens=progress.num_tokens,
            num_skipped=progress.num_skipped,
            final_weights=origin,
            final=figures,
            history=progress.history,
        )
