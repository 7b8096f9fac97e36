"""A trainer on a clock that only moves when updates and validations take their time."""

from pathlib import Path
from typing import Any

from support.training_toys import ToyModel, make_trainer
from translator.data.batching import Batch
from translator.errors import Interrupted
from translator.training.interfaces import NO_MOMENT, LossOutput, Moment
from translator.training.objectives.cross_entropy import CrossEntropy
from translator.training.schedule import LearningRate
from translator.training.signals import Interruption
from translator.training.trainer import TrainingResult

POLL_SECONDS = 0.1
LIMIT = 200.0  # seconds, in most tests of max_time


class FakeTime:
    """An update takes one second, a validation as long as specified; its `tail` cannot be interrupted."""

    def __init__(self, validation: float, update: float = 1.0, tail: float = 0.0) -> None:
        self.now, self.validation, self.update, self.tail = 1000.0, validation, update, tail
        self.interruption = Interruption(clock=self)

    def __call__(self) -> float:
        return self.now

    @property
    def taken(self) -> float:
        return self.now - 1000

    def slow_loss(self, model: ToyModel, batch: Batch, moment: Moment = NO_MOMENT) -> LossOutput:
        if model.training:
            self.now += self.update
        return CrossEntropy()(model, batch)

    def work(self, seconds: float) -> None:
        """Takes that long, and can be interrupted like a search."""
        end = self.now + seconds - self.tail
        while self.now < end:
            if self.interruption.requested():
                raise Interrupted
            self.now = min(end, self.now + POLL_SECONDS)
        self.now += self.tail


def timed_trainer(folder: Path, clock: FakeTime, rates: list[float] | None = None, **changes: Any) -> Any:
    """`rates` receives the learning rates."""
    schedule = LearningRate("cosine", 1.0, 10)
    seen = [] if rates is None else rates

    def learning_rate(update: int, total: float) -> float:
        seen.append(schedule(update, total))
        return seen[-1] / 1000

    options: dict[str, Any] = {"max_updates": 10_000, "update_tokens": 0, "validate_every": 30, "ema": None}
    trainer = make_trainer(
        folder,
        clock=clock,
        interruption=clock.interruption,
        loss=clock.slow_loss,
        learning_rate=learning_rate,
        **(options | changes),
    )
    validator = trainer.validator

    def slow_validator(model: ToyModel) -> Any:
        clock.work(clock.validation)
        return validator(model)

    trainer.validator = slow_validator  # type: ignore[assignment]
    return trainer


def finish(trainer: Any, clock: FakeTime, *, test: bool = True) -> tuple[TrainingResult, bool]:
    """Trains and scores a test set as `translator.train` does; returns whether there was time for the test set."""
    result = trainer.fit()
    is_tested = test and trainer.deadline.test(lambda: clock.work(clock.validation) or True) is True
    clock.now += trainer.time.exit_seconds
    return result, is_tested


def slower_when_training_ends(trainer: Any, clock: FakeTime, factor: float) -> None:
    """Makes validations slower by this factor from the moment at which the plan ends training."""
    reason_to_stop, usual = trainer.plan.reason_to_stop, clock.validation

    def watching(progress: Any) -> str | None:
        reason: str | None = reason_to_stop(progress)
        clock.validation = factor * usual if reason else usual
        return reason

    object.__setattr__(trainer.plan, "reason_to_stop", watching)
