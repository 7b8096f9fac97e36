"""Training within a given time: when it ends, and how the schedule is fitted to it."""

import io
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from support.training_toys import ToyModel, make_trainer
from translator.data.batching import Batch
from translator.training.interfaces import LossOutput
from translator.training.objectives.cross_entropy import CrossEntropy
from translator.training.schedule import LearningRate


class FakeTime:
    """An update takes one second, a validation as long as specified."""

    def __init__(self, validation: float, update: float = 1.0) -> None:
        self.now, self.validation, self.update = 1000.0, validation, update

    def __call__(self) -> float:
        return self.now

    def slow_loss(self, model: ToyModel, batch: Batch, *, teacher_forcing: float = 1.0) -> LossOutput:
        if model.training:
            self.now += self.update
        return CrossEntropy()(model, batch)


def timed_trainer(folder: Path, clock: FakeTime, rates: list[float], **changes: Any) -> Any:
    schedule = LearningRate("cosine", 1.0, 10)

    def learning_rate(update: int, total: float) -> float:
        rates.append(schedule(update, total))
        return rates[-1] / 1000

    options: dict[str, Any] = {"max_updates": 10_000, "update_tokens": 0, "validate_every": 30, "ema": None}
    trainer = make_trainer(
        folder, clock=clock, loss=clock.slow_loss, learning_rate=learning_rate, **(options | changes)
    )
    validator = trainer.validator

    def slow_validator(model: ToyModel) -> Any:
        clock.now += clock.validation
        return validator(model)

    trainer.validator = slow_validator
    return trainer


@pytest.mark.parametrize("validate_every", [30, 10_000])
@pytest.mark.parametrize("validation", [0.5, 8.0])
def test_a_deadline_is_kept_and_the_schedule_ends_with_it(
    tmp_path: Path, validation: float, validate_every: int
) -> None:
    clock, rates = FakeTime(validation), []
    trainer = timed_trainer(tmp_path, clock, rates, max_seconds=200.0, validate_every=validate_every)
    result = trainer.fit()
    assert result.stopped_by == "max_time"
    assert clock.now - 1000 + validation <= 200 + 1.5, "one more validation, for the test set, still fits"
    assert clock.now - 1000 + validation >= 190, "and little is given away"
    assert max(rates) > 0.99
    assert rates[-1] < 0.01, "the cosine has come down"
    steps = [later - earlier for earlier, later in pairwise(rates[30:])]
    assert max(steps) < 0.01, "and it came down without jumping up"
    assert result.progress.history[-1]["update"] == result.progress.update


def test_the_time_before_training_and_the_time_for_leaving_count(tmp_path: Path) -> None:
    clock, rates = FakeTime(8.0), []
    trainer = timed_trainer(tmp_path, clock, rates, max_seconds=200.0, started=960.0, average="best")
    result = trainer.fit()
    leaving = 0.5 + 0.15 * 40
    assert clock.now - 960 + 8 + 5 <= 200, "the test set and the report still fit"
    assert clock.now - 960 + 8 + leaving >= 180, "and not much is given away"
    assert result.progress.seconds > 140
    assert rates[-1] < 0.01, "the schedule is fitted to what is left"


@pytest.mark.parametrize("average", ["none", "best"])
def test_a_machine_that_becomes_slower_is_given_more_time_at_the_end(tmp_path: Path, average: str) -> None:
    """Alongside another program everything takes twice as long, which was not known for the last validation."""
    clock, rates = FakeTime(5.0), []
    trainer = timed_trainer(tmp_path, clock, rates, max_seconds=200.0, validate_every=10_000, average=average)
    update = trainer.updater.collect

    def slower_after_half_the_time(*arguments: Any, **options: Any) -> Any:
        if clock.now > 1100:
            clock.update, clock.validation = 2.0, 10.0
        return update(*arguments, **options)

    trainer.updater.collect = slower_after_half_the_time
    trainer.fit()
    assert clock.now - 1000 + clock.validation <= 200


def test_a_limit_without_time_for_the_validations_is_said_to_be_too_short(tmp_path: Path) -> None:
    lines = io.StringIO()
    clock = FakeTime(30.0)
    result = timed_trainer(tmp_path, clock, [], max_seconds=40.0, stream=lines).fit()
    assert result.progress.update == 11, "after a quarter of the time"
    assert "max_time=40s is too short: 41s are over" in lines.getvalue()
    assert "a validation takes 30s" in lines.getvalue()
    assert "it will be about 32s late" in lines.getvalue()

    lines = io.StringIO()
    timed_trainer(tmp_path / "enough", FakeTime(5.0), [], max_seconds=40.0, stream=lines).fit()
    assert "too short" not in lines.getvalue()


def test_a_start_that_took_all_the_time_is_followed_by_one_update(tmp_path: Path) -> None:
    result = timed_trainer(tmp_path, FakeTime(1.0), [], max_seconds=200.0, started=700.0).fit()
    assert result.stopped_by == "max_time"
    assert result.progress.update == 1
    assert len(result.progress.history) == 1


def test_a_run_with_little_time_trains_on_while_that_makes_validations_quicker(tmp_path: Path) -> None:
    """Untrained models never end their sentences: stopping at once would take longer than a little more training."""
    clock, rates = FakeTime(0.0, update=0.1), []
    trainer = timed_trainer(tmp_path, clock, rates, max_seconds=30.0, validate_every=10_000)
    validation_at = lambda update: 2.0 + 400.0 / update  # noqa: E731

    def estimate(model: ToyModel) -> float:
        clock.now += 0.1
        clock.validation = validation_at(trainer.progress.update)
        return clock.validation

    validator = trainer.validator
    trainer.validator = lambda model: (estimate(model), validator(model))[1]
    trainer.estimate_validation = estimate
    result = trainer.fit()
    end = clock.now - 1000 + validation_at(result.progress.update)
    assert result.progress.update > 60, "at the first estimate the end would have been at 29 s at the earliest"
    assert 20 < end <= 30


def test_max_updates_may_come_before_the_deadline(tmp_path: Path) -> None:
    result = timed_trainer(tmp_path, FakeTime(1.0), [], max_seconds=200.0, max_updates=50).fit()
    assert result.stopped_by == "max_updates"
    assert result.progress.update == 50


def test_elapsed_time_goes_on_after_resuming(tmp_path: Path) -> None:
    clock, rates = FakeTime(2.0), []
    timed_trainer(tmp_path, clock, rates, max_updates=60, max_seconds=200.0).fit()
    later = FakeTime(2.0)
    later.now = 50_000.0
    trainer = timed_trainer(tmp_path, later, rates, max_seconds=200.0)
    trainer.resume()
    result = trainer.fit()
    assert result.stopped_by == "max_time"
    assert 190 <= result.progress.seconds <= 200
    assert later.now - 50_000 < 140
