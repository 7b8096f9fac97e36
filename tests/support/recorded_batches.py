"""A batcher whose model records what it is given, for tests of who waits for whom."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from translator.errors import Interrupted
from translator.schema.decode import SearchOptions
from translator.serve.batcher import Batcher
from translator.serve.jobs import Job
from translator.serve.metrics import Metrics
from translator.serve.models import Candidate, Details, Prefix, Result


class Recorder:
    """A model that records its input and can be paused."""

    source, target, description, joiner = "en", "de", "recorder", " "

    def __init__(self) -> None:
        self.options = SearchOptions(batch_tokens=10)
        self.calls: list[list[str]] = []
        self.gate = threading.Event()
        self.interrupted = False

    def check_options(self, options: SearchOptions) -> None: ...

    def count_pieces(self, lines: Sequence[str]) -> list[int]:
        return [1] * len(lines)

    def split_sentences(self, line: str) -> list[str]:
        return [line]

    def translate(
        self,
        lines: Sequence[str],
        options: SearchOptions,
        *,
        prefixes: Sequence[Prefix] | None = None,
        split_sentences: bool = False,
        details: Details | None = None,
        need_links: bool = False,
        first_line: int = 0,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> list[Result]:
        self.calls.append(list(lines))
        while not self.gate.wait(0.005):
            if interrupted():
                self.interrupted = True
                raise Interrupted
        if "bad" in lines:
            raise RuntimeError("a secret")
        return [Result([Candidate(line.upper(), 0.0)]) for line in lines]


def run_batcher(work: Callable[[Batcher, Recorder], Coroutine[Any, Any, None]], **options: Any) -> None:
    async def main() -> None:
        model = Recorder()
        batcher = Batcher(Metrics(), **({"max_queue": 100, "wait_seconds": 0.0} | options))
        batcher.start()
        try:
            await asyncio.wait_for(work(batcher, model), 60)
        finally:
            model.gate.set()
            batcher.close(10)

    asyncio.run(main())


async def collected(job: Job) -> list[str]:
    return [result.text() async for result in job.results()]


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.002)
