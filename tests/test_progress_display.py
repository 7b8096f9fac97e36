"""Stages that take a long time show progress: a bar on a terminal, lines in a log, nothing on other ranks."""

import io
import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from translator import progress_display
from translator.progress_display import Watched, show_progress


class Clock:
    """Time that passes only when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress_display, "time", clock)
    return clock


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_lines_after_two_seconds_and_then_every_ten(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with show_progress("reading", 6_000, stream=io.StringIO()) as advance:
        for seconds in (1, 1.5, 3, 5, 4, 1):  # 101, 102.5, 105.5, 110.5, 114.5, 115.5
            clock.now += seconds
            advance(1_000)
    assert caplog.messages == ["reading: 2,000 of 6,000 pairs, 800/s", "reading: 5,000 of 6,000 pairs, 345/s"]


def test_a_short_stage_says_nothing(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    assert list(Watched(range(5), "reading")) == [0, 1, 2, 3, 4]
    assert caplog.messages == []


def test_a_bar_on_a_terminal_disappears_when_the_stage_ends(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    stream = Terminal()
    with show_progress("tokenising", 10, stream=stream) as advance:
        advance(5)
    assert stream.getvalue() == "", "shorter than two seconds"
    monkeypatch.setattr(progress_display, "QUIET_SECONDS", 1e-9)
    with show_progress("tokenising", 10, stream=stream) as advance:
        for _ in range(4):
            time.sleep(0.06)  # tqdm redraws at most ten times a second
            advance(1)
    assert "tokenising" in stream.getvalue()
    assert "\n" not in stream.getvalue()
    assert stream.getvalue().rstrip("\r").endswith(" "), "overwritten at the end"
    assert caplog.messages == []


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_stage_whose_first_step_is_long_shows_that_it_has_begun(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    shown = threading.Event()
    show_after = progress_display._after
    monkeypatch.setattr(progress_display, "QUIET_SECONDS", 1e-3)

    def after(seconds: float, show: Callable[[], object]) -> AbstractContextManager[None]:
        return show_after(seconds, lambda: (show(), shown.set()))

    monkeypatch.setattr(progress_display, "_after", after)
    stream = Terminal() if is_terminal else io.StringIO()
    with show_progress("attention", 4, "sentences", stream=stream):
        assert shown.wait(60)
    if is_terminal:
        assert "attention:   0%" in stream.getvalue()
    else:
        assert caplog.messages == ["attention: 0 of 4 sentences, 0/s"]


def test_other_ranks_are_silent(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    monkeypatch.setattr(progress_display, "QUIET_SECONDS", 0.0)
    for stream in (Terminal(), io.StringIO()):
        with show_progress("reading", stream=stream) as advance:
            advance(1)
        assert stream.getvalue() == ""
    assert caplog.messages == []


def test_watched_items_can_be_read_again() -> None:
    watched = Watched([1, 2, 3], "reading")
    assert list(watched) == list(watched) == [1, 2, 3]
