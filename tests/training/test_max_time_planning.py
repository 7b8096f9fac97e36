"""`max_time` is planned for: training stops early enough, and the learning rate comes down in time."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from support.timed_training import LIMIT, FakeTime, finish, timed_trainer
from support.training_toys import ToyLoader, ToyModel
from translator.training.deadline import VALIDATION
from translator.training.monitor import UpdateReport


def test_nothing_is_left_out_on_a_steady_machine(tmp_path: Path) -> None:
    clock = FakeTime(5.0, tail=0.5)
    trainer = timed_trainer(tmp_path, clock, max_seconds=LIMIT, average="best")
    result, is_tested = finish(trainer, clock)
    assert is_tested
    assert trainer.deadline.left_out == []
    assert result.progress.validated_at == result.progress.update
    assert 0.9 * LIMIT <= clock.taken <= LIMIT


def test_a_validation_that_may_just_fit_is_tried(tmp_path: Path) -> None:
    """Estimates from a few sentences are often too high. Training on would certainly leave the weights unvalidated."""
    clock = FakeTime(8.0)
    trainer = timed_trainer(tmp_path, clock, max_seconds=40.0, validate_every=10_000)
    trainer.estimate_validation = lambda model: 6.0 if trainer.progress.update < 8 else 14.0
    result, _ = finish(trainer, clock)
    assert result.progress.history[-1]["update"] == result.progress.update
    assert VALIDATION not in trainer.deadline.left_out
    assert clock.taken <= 40


def test_the_only_validation_is_tried_whatever_an_old_estimate_says(tmp_path: Path) -> None:
    """A model that has just begun to learn never ends its sentences; a little later its validation takes seconds."""
    clock = FakeTime(2.0, update=5.0)
    trainer = timed_trainer(tmp_path, clock, max_seconds=LIMIT, validate_every=10_000)
    trainer.estimate_validation = lambda model: 10_000.0
    result, _ = finish(trainer, clock)
    assert result.progress.history[-1]["update"] == result.progress.update
    assert VALIDATION not in trainer.deadline.left_out
    assert clock.taken <= LIMIT


def test_an_estimate_that_leaves_no_hope_is_repeated_in_the_second_half(tmp_path: Path) -> None:
    """Otherwise nearly all of the time is used for updates, and what is then left is too short for any validation."""
    clock, estimated_at = FakeTime(20.0), []
    trainer = timed_trainer(tmp_path, clock, max_seconds=LIMIT, validate_every=10_000)

    def estimate(model: ToyModel) -> float:
        estimated_at.append(clock.taken)
        return 20.0 if clock.taken > 0.6 * LIMIT else 10_000.0

    trainer.estimate_validation = estimate
    result, is_tested = finish(trainer, clock)
    assert is_tested
    assert result.progress.validated_at == result.progress.update
    assert trainer.deadline.left_out == []
    assert len(estimated_at) <= 6
    assert clock.taken <= LIMIT


def test_a_validation_once_an_epoch_that_was_given_up_is_repeated_before_the_epoch_is_over(tmp_path: Path) -> None:
    clock, attempts = FakeTime(5.0), []
    loader = ToyLoader(num_batches=300, rows=2)
    trainer = timed_trainer(tmp_path, clock, max_seconds=3 * LIMIT, validate_every=0, loader=loader)
    trainer.estimate_validation = lambda model: 5.0
    validator = trainer.validator

    def slow_once(model: ToyModel) -> Any:
        attempts.append(trainer.progress.update)
        clock.validation = 10_000.0 if len(attempts) == 1 else 5.0
        return validator(model)

    trainer.validator = slow_once
    result, is_tested = finish(trainer, clock)
    assert attempts[0] == 300
    assert result.progress.history[0]["update"] == attempts[1] < result.progress.update < 600
    assert is_tested
    assert clock.taken <= 3 * LIMIT


def test_time_left_over_by_a_pessimistic_estimate_is_used_for_training(tmp_path: Path) -> None:
    clock = FakeTime(10.0)
    trainer = timed_trainer(tmp_path, clock, max_seconds=LIMIT, validate_every=10_000)
    trainer.estimate_validation = lambda model: 35.0
    result, is_tested = finish(trainer, clock)
    assert len(result.progress.history) == 2
    assert result.progress.validated_at == result.progress.update
    assert is_tested
    assert trainer.deadline.left_out == []
    assert 0.9 * LIMIT <= clock.taken <= LIMIT


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
    assert clock.now - 1000 + validation >= 190, "and little time is wasted"
    assert max(rates) > 0.99
    assert rates[-1] < 0.01, "the cosine has come down"
    steps = [later - earlier for earlier, later in pairwise(rates[30:])]
    assert max(steps) < 0.01, "and it came down without jumping up"
    assert result.progress.history[-1]["update"] == result.progress.update


def test_start_up_and_exit_count_towards_the_limit(tmp_path: Path) -> None:
    clock, rates = FakeTime(8.0), []
    trainer = timed_trainer(tmp_path, clock, rates, max_seconds=200.0, started=960.0, average="best")
    result = trainer.fit()
    leaving = 0.5 + 0.1 * 40
    assert clock.now - 960 + 8 + leaving <= 200, "the test set and the report still fit"
    assert clock.now - 960 + 8 + leaving >= 180, "and not much time is wasted"
    assert result.progress.seconds > 140
    assert rates[-1] < 0.01, "the schedule is fitted to what is left"


@pytest.mark.parametrize("average", ["none", "best"])
def test_a_machine_that_becomes_slower_is_given_more_time_at_the_end(tmp_path: Path, average: str) -> None:
    """Another program makes everything take twice as long, and no validation has shown it yet."""
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


def test_the_time_left_does_not_count_the_start_up_again(tmp_path: Path) -> None:
    clock, left = FakeTime(1.0), []
    trainer = timed_trainer(tmp_path, clock, [], max_seconds=200.0, started=960.0)
    show = trainer.monitor.update

    def watched(report: UpdateReport) -> None:
        left.append((clock.now, report.seconds_left))
        show(report)

    trainer.monitor.update = watched
    trainer.fit()
    later = left[2:]  # before that the pace is not known
    assert all(seconds <= 960 + 200 - now + 2 for now, seconds in later), "never more than the limit leaves"
    assert later[-1][1] < 15
