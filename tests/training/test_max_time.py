"""`max_time` is kept: by planning, and where the machine becomes too slow for that, by leaving work out."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from support.timed_training import FakeTime, timed_trainer
from support.training_toys import ToyLoader, ToyModel, make_model, same
from translator.errors import Interrupted
from translator.runs.weights import collect_weights
from translator.training.deadline import AVERAGE, TEST, VALIDATION
from translator.training.ema import ExponentialMovingAverage
from translator.training.monitor import UpdateReport
from translator.training.trainer import TrainingResult

LIMIT = 200.0


def finish(trainer: Any, clock: FakeTime, *, test: bool = True) -> tuple[TrainingResult, bool]:
    """Trains and scores a test set as `translator.train` does; returns whether there was time for the test set."""
    result = trainer.fit()
    is_tested = test and trainer.deadline.test(lambda: clock.work(clock.validation) or True) is True
    clock.now += trainer.time.exit_seconds
    return result, is_tested


def slower_when_training_ends(trainer: Any, clock: FakeTime, factor: float) -> None:
    """The machine is as before until the plan says that the time for training is over."""
    reason_to_stop, usual = trainer.plan.reason_to_stop, clock.validation

    def watching(progress: Any) -> str | None:
        reason: str | None = reason_to_stop(progress)
        clock.validation = factor * usual if reason else usual
        return reason

    object.__setattr__(trainer.plan, "reason_to_stop", watching)


def test_nothing_is_left_out_on_a_steady_machine(tmp_path: Path) -> None:
    clock = FakeTime(5.0, tail=0.5)
    trainer = timed_trainer(tmp_path, clock, max_seconds=LIMIT, average="best")
    result, is_tested = finish(trainer, clock)
    assert is_tested
    assert trainer.deadline.left_out == []
    assert result.progress.validated_at == result.progress.update
    assert 0.9 * LIMIT <= clock.taken <= LIMIT


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


def test_a_single_validation_of_unknown_length_does_not_eat_the_time(tmp_path: Path) -> None:
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


def test_a_validation_that_may_just_fit_is_tried(tmp_path: Path) -> None:
    """Estimates from a few sentences are often too high. Training on would leave the weights unvalidated for sure."""
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


def test_time_that_a_pessimistic_estimate_has_left_over_is_used_for_training(tmp_path: Path) -> None:
    clock = FakeTime(10.0)
    trainer = timed_trainer(tmp_path, clock, max_seconds=LIMIT, validate_every=10_000)
    trainer.estimate_validation = lambda model: 35.0
    result, is_tested = finish(trainer, clock)
    assert len(result.progress.history) == 2
    assert result.progress.validated_at == result.progress.update
    assert is_tested
    assert trainer.deadline.left_out == []
    assert 0.9 * LIMIT <= clock.taken <= LIMIT


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
    assert clock.taken == 1.0, "nothing else is begun"
    assert trainer.deadline.left_out == [VALIDATION]
    assert (tmp_path / "model.safetensors").exists()


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
    leaving = 0.5 + 0.1 * 40
    assert clock.now - 960 + 8 + leaving <= 200, "the test set and the report still fit"
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


def test_the_time_left_is_that_of_training_not_of_starting_again_and_again(tmp_path: Path) -> None:
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
