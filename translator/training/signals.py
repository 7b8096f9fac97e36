"""Stop signals are only recorded by their handlers; the loops poll for them and act.

A handler runs between any two instructions, in a destructor or a weakref callback as well, where Python swallows every
exception. So none is raised there: whatever takes long polls `Interruption.requested` and raises `Interrupted` itself.
"""

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Self

from translator.training.distributed import Ranks

# SIGHUP comes when a terminal is closed; SIGUSR1 is the warning that SLURM sends with --signal=USR1@SECONDS.
STOP_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1") if hasattr(signal, name)]
SAME_CTRL_C = 1.0  # seconds: torchrun passes on the SIGINT that the terminal has already sent to its processes
_LOOK_SECONDS = 1.0  # between two checks of what the other ranks have received


class StopSignals:
    """Inside the `with` block, stop signals are only recorded in `received`; a second Ctrl-C aborts at once."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.received = 0  # the number of the first one
        self._clock = clock
        self._received_at = 0.0
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in STOP_SIGNALS:
                if number != signal.SIGINT and signal.getsignal(number) == signal.SIG_IGN:
                    continue  # as nohup does for SIGHUP
                self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous.clear()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if not self.received:
            self.received, self._received_at = number, self._clock()
        elif number == signal.SIGINT and self._clock() - self._received_at > SAME_CTRL_C:
            # Should the exception be swallowed, a third Ctrl-C still ends the process.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            raise KeyboardInterrupt


class Interruption:
    """Whether this process or another rank was asked to stop, or work with a time limit has used it up."""

    def __init__(
        self,
        signals: StopSignals | None = None,
        ranks: Ranks | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._signals = signals or StopSignals()
        self._ranks = ranks or Ranks()
        self._clock = clock
        self._has_told = self._was_told = False
        self._next_look = 0.0
        self._time_limit = math.inf
        self.polled_at = -math.inf  # when `requested` was called last

    @property
    def received(self) -> int:
        """The number of the signal that this process has received, or 0."""
        return self._signals.received

    def requested(self) -> bool:
        """Cheap enough to be called at every step of a search, by any thread.

        The ranks notice it at different times: before they meet again they must agree (`Ranks.gather_work`).
        """
        self.polled_at = now = self._clock()
        if self.received:
            if not self._has_told:
                self._has_told = True
                self._ranks.tell_to_stop()
            return True
        if not self._was_told and self._ranks.count > 1 and now >= self._next_look:
            self._next_look = now + _LOOK_SECONDS
            self._was_told = self._ranks.were_told_to_stop()
        return self._was_told or now >= self._time_limit

    @contextmanager
    def time_limit(self, until: float) -> Iterator[None]:
        """Within it, `requested` is also True once the clock has reached that time."""
        self._time_limit = until
        try:
            yield
        finally:
            self._time_limit = math.inf

    def agreed(self) -> int:
        """The number of a signal that any rank has received, or 0; all ranks must ask at the same time."""
        return int(self._ranks.maximum(self.received)[0])


def stop_message(number: int, moment: str, run: object) -> str:
    """The last line of a run that a signal has stopped."""
    return f"stopped by {signal.Signals(number).name} {moment}; continue with resume={run}"
