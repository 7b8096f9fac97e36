"""How long the end of a run is expected to take, on machines that behave differently."""

import pytest

from translator.training.progress import Plan, Progress, TrainerSettings
from translator.training.run_time import Pace, RunTime


def pace_of(*seconds: float) -> Pace:
    pace = Pace()
    for value in seconds:
        pace.record_update(value)
    return pace


def test_a_steady_machine_has_no_noise() -> None:
    assert pace_of(*[2.0] * 30).noise == 1.0
    assert pace_of().noise == pace_of(5.0).noise == 1.0


def test_short_hiccups_are_averaged_over_a_second() -> None:
    one_second = [0.05] * 18 + [0.1]
    assert pace_of(*(one_second * 20)).noise == pytest.approx(1.0, abs=0.05)


def test_noise_is_how_much_slower_the_slow_moments_are() -> None:
    assert pace_of(*[1.0, 1.0, 1.0, 1.8, 1.0, 1.0, 1.8, 1.0, 1.0, 1.8]).noise == pytest.approx(1.8)
    assert pace_of(*[1.0, 1.0, 50.0, 50.0]).noise <= 3.0


def test_a_machine_may_have_become_slower_but_is_not_trusted_to_be_quicker() -> None:
    assert pace_of(2.0, 2.0, 2.0).slowdown(since=1.0) == 2.0
    assert pace_of(2.0, 2.0, 2.0).slowdown(since=4.0) == 1.0
    assert pace_of(2.0, 2.0, 2.0).slowdown(since=None) == pace_of().slowdown(since=1.0) == 1.0


def test_the_reserve_counts_every_validation_at_the_end() -> None:
    now = 0.0
    reserves = {}
    for average in ("none", "best"):
        settings = TrainerSettings(max_updates=9, max_seconds=100.0, average=average, work_after_fit=0.5)
        run_time = RunTime(Plan(settings), lambda: now)
        progress = Progress()
        run_time.begin(progress)
        assert run_time.reserve(progress) == 5.0, "a twentieth of the time as long as nothing is known"
        run_time.note_validation(progress, 10.0, is_over=True)
        reserves[average] = run_time.reserve(progress)
    assert 15.0 < reserves["none"] < 20.0
    assert 25.0 < reserves["best"] < 32.0


def test_the_slower_of_the_latest_two_validations_counts() -> None:
    run_time = RunTime(Plan(TrainerSettings(max_updates=9, max_seconds=100.0)))
    progress = Progress(validation_seconds=7.0)  # resumed
    run_time.begin(progress)
    expected = {9.0: 9.0, 3.0: 9.0, 4.0: 4.0, 2.0: 4.0}
    for seconds, slower in expected.items():
        run_time.note_validation(progress, seconds - 0.5)  # before the checkpoint is written
        run_time.note_validation(progress, seconds, is_over=True)
        assert progress.validation_seconds == slower


def test_the_time_of_earlier_processes_counts() -> None:
    run_time = RunTime(Plan(TrainerSettings(max_updates=9)), lambda: 130.0, started=100.0)
    progress = Progress(seconds=1000.0, startup_seconds=5.0)
    run_time.begin(progress)
    assert run_time.seconds == 1030.0
    assert progress.startup_seconds == 35.0
