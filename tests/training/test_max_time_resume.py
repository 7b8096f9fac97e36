"""Resuming a run with `max_time`: what was left out is made up for, and time already used counts."""

from pathlib import Path
from typing import Any

from support.timed_training import LIMIT, FakeTime, finish, slower_when_training_ends, timed_trainer
from support.training_toys import ToyModel


def test_resuming_makes_up_for_what_was_left_out(tmp_path: Path) -> None:
    clock = FakeTime(8.0)
    trainer = timed_trainer(tmp_path, clock, max_seconds=LIMIT, average="best")
    slower_when_training_ends(trainer, clock, 10.0)
    result, is_tested = finish(trainer, clock)
    assert not is_tested
    later = FakeTime(80.0)
    again = timed_trainer(tmp_path, later, max_seconds=LIMIT, average="best", started=later.now - 5)
    again.resume()
    made_up, is_tested = finish(again, later)
    assert is_tested
    assert again.deadline.left_out == []
    assert made_up.progress.update == result.progress.update
    assert made_up.progress.validated_at == made_up.progress.update
    assert later.taken > 3 * 80


def test_a_resumed_run_with_little_time_left_makes_up_for_its_end(tmp_path: Path) -> None:
    """It was stopped in its final validation, and starting again has taken the time that was left for that."""
    clock = FakeTime(8.0)
    trainer = timed_trainer(tmp_path, clock, max_seconds=LIMIT)
    stop_at = LIMIT - 12.0

    def stopped_validation(model: ToyModel) -> Any:
        if clock.taken + clock.validation > stop_at:
            clock.work(4.0)
            clock.interruption._signals.received = 15
        return validator(model)

    validator, trainer.validator = trainer.validator, stopped_validation
    assert trainer.fit().stopped_by == "signal"
    later = FakeTime(8.0)
    again = timed_trainer(tmp_path, later, max_seconds=LIMIT, started=later.now - 8)
    again.resume()
    result, is_tested = finish(again, later)
    assert is_tested
    assert again.deadline.left_out == []
    assert result.progress.validated_at == result.progress.update


def test_a_resumed_run_with_time_to_train_is_bound_by_it(tmp_path: Path) -> None:
    """According to the earlier process a validation takes so long that there is no time; an estimate knows better."""
    clock = FakeTime(30.0)
    timed_trainer(tmp_path, clock, max_seconds=100.0, max_updates=40).fit()
    later = FakeTime(4.0)
    again = timed_trainer(tmp_path, later, max_seconds=130.0)
    again.estimate_validation = lambda model: 4.0
    again.resume()
    slower_when_training_ends(again, later, 10.0)
    result, _ = finish(again, later)
    assert result.progress.seconds + 4.0 <= 130
    assert again.time.seconds <= 130


def test_a_longer_limit_trains_on_from_weights_that_were_not_validated(tmp_path: Path) -> None:
    clock = FakeTime(10_000.0)
    trainer = timed_trainer(tmp_path, clock, max_seconds=50.0, validate_every=10_000)
    trainer.estimate_validation = lambda model: 10_000.0
    result, _ = finish(trainer, clock)
    assert result.progress.history == []
    later = FakeTime(5.0)
    again = timed_trainer(tmp_path, later, max_seconds=LIMIT)
    again.estimate_validation = lambda model: 5.0
    assert again.resume() == result.progress.update
    continued, is_tested = finish(again, later)
    assert is_tested
    assert continued.progress.update > result.progress.update + 100
    assert 0.9 * (LIMIT - 50) <= later.taken <= LIMIT - 40


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
