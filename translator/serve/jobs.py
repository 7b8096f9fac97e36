"""A request's lines on their way through the queue, and their results on the way back to the request's coroutine."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from translator.schema.decode import SearchOptions
from translator.serve.models import Details, Model, Prefix, Result


@dataclass(frozen=True)
class Task:
    """What lines must have in common to be translated together."""

    model: Model
    options: SearchOptions
    split_sentences: bool = False
    details: Details | None = None
    need_links: bool = False

    @property
    def can_share(self) -> bool:
        """Whether lines of several jobs can be translated together.

        Samples depend on the number of a line, and details are found line by line, so together they only take longer.
        """
        return not self.options.sample and self.details is None


class Job:
    """Lines of one request with one task. Created, awaited and cancelled in the event loop; filled by the worker."""

    def __init__(
        self, task: Task, lines: Sequence[str], prefixes: Sequence[Prefix] | None = None, *, is_streamed: bool = False
    ) -> None:
        self.task = task
        self.lines = list(lines)
        self.prefixes: list[Prefix] = list(prefixes) if prefixes is not None else [""] * len(self.lines)
        self.sizes = task.model.count_pieces(self.lines)
        self.arrived = time.monotonic()
        self.num_taken = 0  # lines that have been given to the worker
        # Lines taken at once. For a stream it grows; lines with details take as long together as one after another.
        self.largest_share = 1 if is_streamed or task.details is not None else len(self.lines)
        self.cancelled = False
        self._loop = asyncio.get_running_loop()
        self._events: asyncio.Queue[list[Result] | Exception] = asyncio.Queue()

    @property
    def num_left(self) -> int:
        return len(self.lines) - self.num_taken

    def can_join(self, other: "Job") -> bool:
        """Whether lines of both can be translated together."""
        return self is other or (self.task == other.task and self.task.can_share)

    def end_turn(self) -> None:
        """The first lines of a stream come soon, and the later ones in larger batches."""
        if self.task.details is None:
            self.largest_share *= 2

    def deliver(self, event: list[Result] | Exception) -> None:
        """Passes the results of the next lines to the event loop, from any thread."""
        with suppress(RuntimeError):  # the loop has ended, and nobody is waiting any more
            self._loop.call_soon_threadsafe(self._events.put_nowait, event)

    async def results(self) -> AsyncIterator[Result]:
        """The results in the order of the lines, as they come; raises what the worker failed with."""
        num_received = 0
        while num_received < len(self.lines):
            event = await self._events.get()
            if isinstance(event, Exception):
                raise event
            for result in event:
                num_received += 1
                yield result
