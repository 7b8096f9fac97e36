"""The state that a run resumes from: saved to checkpoints, restored from the newest intact one."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

import torch

from translator.errors import Interrupted, UserError
from translator.models.base import Seq2Seq
from translator.runs.weights import collect_weights, restore_weights
from translator.training.checkpoint import Checkpoint, CheckpointStore
from translator.training.distributed import Ranks
from translator.training.ema import ExponentialMovingAverage
from translator.training.interfaces import Loader, Notify
from translator.training.monitor import Monitor
from translator.training.optimizer import optimizer_tensors, restore_optimizer
from translator.training.progress import Progress
from translator.training.random_state import RandomState, random_state, restore_random_state
from translator.training.updater import Updater

_STATE_FORMAT = 1


@dataclass
class Snapshots:
    """Saves and restores the state of the objects that a trainer works with."""

    model: Seq2Seq
    optimizer: torch.optim.Optimizer
    ema: ExponentialMovingAverage | None
    updater: Updater
    loader: Loader
    checkpoints: CheckpointStore
    monitor: Monitor
    ranks: Ranks
    _saved: tuple[int, int] | None = None  # progress.update and .validated_at of the newest checkpoint

    def save(self, progress: Progress, seconds: float, *, required: bool = False) -> None:
        """Writes a checkpoint unless the newest one is the same; `seconds` is how long the run has taken by now.

        A checkpoint that cannot be written stops the run where it is `required`; otherwise training continues.
        """
        place = (progress.update, progress.validated_at)
        if self._saved == place:
            return
        own = {
            "memory_limit": self.updater.memory.limit,
            "loader": self.loader.state_dict(),
            "random": random_state(self.updater.execution.device),
        }
        state = {
            "format_version": _STATE_FORMAT,
            "progress": asdict(progress) | {"seconds": seconds},
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
                problem = f"could not write a checkpoint to {self.checkpoints.folder}: {error}"
                report_failed_write(problem, required, self.monitor.notify)
        if any(self.ranks.gather(is_saved)):  # all ranks must agree on what is still to be saved
            self._saved = place

    def restore(self) -> Progress | None:
        """Restores everything from the newest intact checkpoint; None if none was written yet."""
        checkpoint = self._newest_on_all_ranks()
        if checkpoint is None:
            return None
        state = checkpoint.state
        if state["format_version"] > _STATE_FORMAT:
            raise UserError(
                f"{checkpoint.path}: written by a newer version of translator (format {state['format_version']}, this"
                f" one knows {_STATE_FORMAT}); update translator"
            )
        if len(state["ranks"]) != self.ranks.count:
            raise UserError(
                f"{checkpoint.path}: written by {len(state['ranks'])} processes, now there are {self.ranks.count};"
                f" start it with torchrun --nproc-per-node so that there are as many"
            )
        restore_weights(self.model, checkpoint.tensors("model"), str(checkpoint.path))
        restore_optimizer(self.optimizer, checkpoint.tensors("optimizer"))
        if self.ema is not None:
            self.ema.load(checkpoint.evaluated_weights())
        if state["scaler"]:  # empty if the run had none, for example on another device
            self.updater.scaler.load_state_dict(state["scaler"])
        own = state["ranks"][self.ranks.rank]
        self.updater.memory.limit = own["memory_limit"]
        self.loader.load_state_dict(own["loader"])
        restore_random_state(own["random"], self.updater.execution.device)
        progress = Progress(**state["progress"])
        self._saved = (progress.update, progress.validated_at)
        return progress

    @contextmanager
    def abandonable(self) -> Iterator[None]:
        """The update inside may raise `Interrupted` between two micro-batches; its effects are then undone."""
        device = self.updater.execution.device
        place, numbers = self.loader.state_dict(), RandomState.now(device)
        try:
            yield
        except Interrupted:
            self.optimizer.zero_grad(set_to_none=True)
            self.loader.load_state_dict(place)
            numbers.restore(device)
            raise

    def _newest_on_all_ranks(self) -> Checkpoint | None:
        """The first rank looks for it, and all read the same one."""
        checkpoint = None
        if self.ranks.is_main:
            self.checkpoints.open()
            checkpoint = self.checkpoints.newest(self.monitor.notify)
            if checkpoint is None and self.checkpoints.has_any():
                raise UserError(f"{self.checkpoints.folder}: every checkpoint is damaged; start a new run")
        name = self.ranks.gather(checkpoint.path.name if checkpoint else None)[0]
        return checkpoint or (self.checkpoints.read(name) if name else None)


def report_failed_write(problem: str, required: bool, notify: Notify) -> None:
    """A full disk stops a run only if it could not continue afterwards."""
    if required:
        raise UserError(f"{problem}. What was written before is untouched; make room and resume")
    notify(f"{problem}. What was written before is untouched; training goes on and will try again")
