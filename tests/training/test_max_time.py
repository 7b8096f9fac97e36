"""What a run with `max_time` leaves out when the machine becomes too slow for the plan."""

from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from support.timed_training import LIMIT, FakeTime, finish, slower_when_training_ends, timed_trainer
from support.training_toys import ToyModel, make_model, same
from translator.errors import Interrupted
from translator.runs.weights import collect_weights
from translator.training.deadline import AVERAGE, TEST, VALIDATION
from translator.training.ema import ExponentialMovingAverage
from translator.training.trainer import TrainingResult


@pytest.mark.parametrize("average", ["none", "best"])
@pytest.mark.parametrize("factor", [1.5, 2.0, 3.0, 10.0])
def test_a_machine_that_becomes_slower_right_before_the_end_does_not_delay_it(
    tmp_path: Path, factor: float, average: str
) -> None:
    clock = FakeTime(8.0, tail=0.5)
    trainer = timed_trainer(tmp_path, clock, max_seconds=LIMIT, average=average)
    slower_when_training_ends(trainer, clock, factor)
    result, is_tested = finish(trainer, clock)
    left_out = trainer.deadline.left_out
    assert clock.taken <= LIMIT
    assert left_out, "not everything could fit"
    assert (AVERAGE in left_out) or average == "none", "the average is the first thing to be left out"
    assert (TEST in left_out) is not is_tested
    assert result.stopped_by == "max_time"
    assert result.exit_code == 0
    assert result.final_weights.endswith("the best by loss")
    assert result.final in result.progress.history
    assert same(load_file(tmp_path / "model.safetensors"), collect_weights(trainer.model))


def test_the_test_set_is_preferred_to_a_second_validation(tmp_path: Path) -> None:
    clock = FakeTime(8.0)
    trainer = timed_trainer(tmp_path, clock, max_seconds=LIMIT)
    slower_when_training_ends(trainer, clock, 3.0)
    fit = trainer.fit

    def fit_and_recover() -> TrainingResult:
        result: TrainingResult = fit()
        clock.validation = 8.0
        return result

    trainer.fit = fit_and_recover
    result, is_tested = finish(trainer, clock)
    assert is_tested
    assert trainer.deadline.left_out == [VALIDATION]
    assert result.progress.validated_at < result.progress.update
    assert clock.taken <= LIMIT


def test_without_a_test_set_the_validation_may_use_its_time(tmp_path: Path) -> None:
    clock = FakeTime(8.0)
    trainer = timed_trainer(tmp_path, clock, max_seconds=LIMIT, work_after_fit=0.0, average="best")
    slower_when_training_ends(trainer, clock, 1.8)
    result, _ = finish(trainer, clock, test=False)
    assert result.progress.validated_at == result.progress.update
    assert trainer.deadline.left_out == [AVERAGE]
    assert clock.taken <= LIMIT


@pytest.mark.parametrize("validate_every", [30, 10_000])
def test_validations_that_would_never_end_leave_the_time_to_training(tmp_path: Path, validate_every: int) -> None:
    clock = FakeTime(10_000.0)
    trainer = timed_trainer(tmp_path, clock, max_seconds=LIMIT, validate_every=validate_every)
    trainer.estimate_validation = lambda model: clock.work(500.0)
    result, is_tested = finish(trainer, clock)
    assert clock.taken <= LIMIT
    assert result.progress.update > 0.7 * LIMIT
    assert not is_tested
    assert trainer.deadline.left_out == [VALIDATION, TEST]
    assert result.final_weights == f"update {result.progress.update}, not validated"
    assert result.final == {}
    published = load_file(tmp_path / "model.safetensors")
    assert same(published, collect_weights(trainer.model))
    last = tmp_path / "checkpoints" / f"step-{result.progress.update:08d}" / "model.safetensors"
    assert same(published, load_file(last)), "training can be continued"


def test_a_single_validation_of_unknown_length_does_not_use_up_the_time(tmp_path: Path) -> None:
    """Without an estimate there is nothing to compare its time with."""
    clock = FakeTime(10_000.0)
    trainer = timed_trainer(tmp_path, clock, max_seconds=LIMIT)
    result, _ = finish(trainer, clock)
    assert clock.taken <= LIMIT
    assert result.progress.update > 60, "training went on after a quarter of the time"


def test_a_validation_that_takes_much_longer_than_others_is_given_up(tmp_path: Path) -> None:
    clock = FakeTime(4.0)
    trainer = timed_trainer(tmp_path, clock, max_seconds=LIMIT)
    validator = trainer.validator

    def slow_once(model: ToyModel) -> Any:
        clock.validation = 10_000.0 if trainer.progress.update == 60 else 4.0
        return validator(model)

    trainer.validator = slow_once
    result, is_tested = finish(trainer, clock)
    validated = [figures["update"] for figures in result.progress.history]
    assert 30 in validated
    assert 60 not in validated
    assert validated[-1] == result.progress.update > 90
    assert is_tested
    assert clock.taken <= LIMIT


def test_the_validation_is_given_up_at_the_end_of_the_time_where_it_is_the_only_one(tmp_path: Path) -> None:
    clock = FakeTime(5.0)
    trainer = timed_trainer(tmp_path, clock, max_seconds=LIMIT, validate_every=10_000)
    trainer.estimate_validation = lambda model: 5.0
    slower_when_training_ends(trainer, clock, 10.0)
    result, is_tested = finish(trainer, clock)
    assert clock.taken <= LIMIT
    assert result.progress.history == []
    assert trainer.deadline.left_out == [VALIDATION, TEST]
    assert not is_tested
    assert result.final_weights == f"update {result.progress.update}, not validated"


def test_the_weights_are_the_moving_average_where_nothing_was_validated(tmp_path: Path) -> None:
    clock, model = FakeTime(10_000.0), make_model()
    ema = ExponentialMovingAverage(model, 0.9)
    trainer = timed_trainer(tmp_path, clock, model=model, ema=ema, max_seconds=20.0, validate_every=10_000)
    trainer.estimate_validation = lambda model: 10_000.0
    result, _ = finish(trainer, clock)
    assert result.final == {}
    published = load_file(tmp_path / "model.safetensors")
    assert same({name: published[name] for name in ema.weights}, ema.weights)


def test_a_test_set_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    clock = FakeTime(5.0)
    trainer = timed_trainer(tmp_path, clock, max_seconds=LIMIT)
    trainer.fit()
    assert trainer.deadline.test(lambda: clock.work(10_000.0)) is None
    assert trainer.deadline.left_out == [TEST]
    assert clock.taken <= LIMIT
    assert same(load_file(tmp_path / "model.safetensors"), collect_weights(trainer.model))


def test_an_average_that_takes_too_long_leaves_the_best_weights_and_time_for_the_test(tmp_path: Path) -> None:
    clock = FakeTime(5.0)
    trainer = timed_trainer(tmp_path, clock, max_seconds=LIMIT, average="best")
    choose = trainer.final_weights.choose

    def slow_average(*arguments: Any) -> Any:
        clock.validation = 10_000.0
        chosen = choose(*arguments)
        clock.validation = 5.0
        return chosen

    trainer.final_weights.choose = slow_average
    result, is_tested = finish(trainer, clock)
    assert is_tested
    assert trainer.deadline.left_out == [AVERAGE]
    assert result.final_weights.endswith("the best by loss")
    best = tmp_path / "checkpoints" / f"step-{result.progress.best_update:08d}" / "model.safetensors"
    assert same(collect_weights(trainer.model), load_file(best))
    assert clock.taken <= LIMIT


@pytest.mark.parametrize("work_after_fit", [0.0, 1.0])
def test_a_start_that_took_all_the_time_is_followed_by_one_update(tmp_path: Path, work_after_fit: float) -> None:
    clock = FakeTime(1.0)
    trainer = timed_trainer(tmp_path, clock, max_seconds=LIMIT, started=700.0, work_after_fit=work_after_fit)
    result = trainer.fit()
    assert result.stopped_by == "max_time"
    assert result.progress.update == 1
    assert clock.taken == 1.0, "nothing else is started"
    assert trainer.deadline.left_out == [VALIDATION]
    assert (tmp_path / "model.safetensors").exists()


def test_a_signal_is_not_taken_for_the_end_of_the_time(tmp_path: Path) -> None:
    clock = FakeTime(5.0)
    trainer = timed_trainer(tmp_path, clock, max_seconds=LIMIT)
    trainer.fit()

    def interrupted() -> None:
        clock.interruption._signals.received = 15
        clock.work(1.0)

    with pytest.raises(Interrupted):
        trainer.deadline.test(interrupted)
    assert trainer.deadline.left_out == []


def test_without_a_limit_nothing_is_given_up(tmp_path: Path) -> None:
    clock = FakeTime(10_000.0)
    trainer = timed_trainer(tmp_path, clock, max_updates=60, average="best")
    result, is_tested = finish(trainer, clock)
    assert is_tested
    assert trainer.deadline.left_out == []
    assert len(result.progress.history) == 2
