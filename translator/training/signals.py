"""Ctrl-C and SIGTERM ask the loop to stop at a good moment instead of tearing it down."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Self


class Interrupted(Exception):  # noqa: N818 - a request, not an error
    """Raised inside `StopSignals.interruptible` when a signal arrives there."""


class StopSignals:
    """Within its `with`, the first SIGINT or SIGTERM is only noted in `received`; a second SIGINT aborts at once."""

    def __init__(self) -> None:
        self.received = 0
        self._interruptible = False
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    @contextmanager
    def interruptible(self, allowed: bool = True) -> Iterator[None]:
        """Work that can be given up and done again later, such as a validation: a signal raises `Interrupted`."""
        self._interruptible = allowed
        try:
            if allowed and self.received:
                raise Interrupted
            yield
        finally:
            self._interruptible = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.received and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.received = self.received or number
        if self._interruptible:
            self._interruptible = False
            raise Interrupted
