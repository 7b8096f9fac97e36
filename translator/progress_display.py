"""Shows how far a long stage is: a bar on a terminal, a line now and then elsewhere, nothing for short stages.

Lines go through `logging` at level INFO. A process that does not log at that level, such as all ranks but the first,
shows no bar either.
"""

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TextIO, TypeVar

from tqdm import tqdm

Item = TypeVar("Item")
Advance = Callable[[int], None]  # receives how many more are done

logger = logging.getLogger(__name__)

QUIET_SECONDS = 2.0  # a stage shorter than this shows nothing
LINE_SECONDS = 10.0  # between two lines of a log


@contextmanager
def show_progress(
    text: str, total: int | None = None, unit: str = "pairs", stream: TextIO | None = None
) -> Iterator[Advance]:
    """Inside the block, calling `advance(n)` from any thread reports that n more are done."""
    stream = stream or sys.stderr
    if not logger.isEnabledFor(logging.INFO):
        yield lambda count: None
    elif stream.isatty():
        with tqdm(
            desc=text, total=total, unit=f" {unit}", file=stream, delay=QUIET_SECONDS, leave=False, dynamic_ncols=True
        ) as bar:

            def advance(count: int) -> None:
                bar.update(count)

            with _after(QUIET_SECONDS, bar.refresh):
                yield advance
    else:
        lines = _Lines(text, total, unit)
        with _after(QUIET_SECONDS, lambda: lines.advance(0)):
            yield lines.advance


@contextmanager
def _after(seconds: float, show: Callable[[], object]) -> Iterator[None]:
    """Calls `show` if the block takes that long, even if nothing is done yet: the first step may be the longest."""
    timer = threading.Timer(seconds, show)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # it may be drawing


@dataclass(frozen=True)
class Watched(Generic[Item]):
    """An iterable whose items are counted as they pass, every time it is iterated over."""

    items: Iterable[Item]
    text: str
    total: int | None = None
    unit: str = "pairs"

    def __iter__(self) -> Iterator[Item]:
        with show_progress(self.text, self.total, self.unit) as advance:
            for item in self.items:
                yield item
                advance(1)


class _Lines:
    """Progress in a log: the first line when the stage turns out to be long, then one from time to time."""

    def __init__(self, text: str, total: int | None, unit: str) -> None:
        self.text, self.unit = text, unit
        self.total = "" if total is None else f" of {total:,}"
        self.done = 0
        self.started = time.monotonic()
        self.due = self.started + QUIET_SECONDS
        self.lock = threading.Lock()

    def advance(self, count: int) -> None:
        with self.lock:
            self.done += count
            now = time.monotonic()
            if now < self.due:
                return
            self.due = now + LINE_SECONDS
            speed = self.done / max(now - self.started, 1e-9)
            logger.info("%s: %s%s %s, %s/s", self.text, f"{self.done:,}", self.total, self.unit, f"{speed:,.0f}")
