"""What all interfaces share: keys and limits, the choice of the model, the queue and timeouts."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from starlette.requests import Request

from translator.errors import OptionError, UserError
from translator.schema.decode import SearchOptions
from translator.schema.serve import ServerOptions
from translator.serve.batcher import Batcher, QueueFullError, describe
from translator.serve.bodies import Parameters, read_parameters
from translator.serve.detection import Detected, Detector
from translator.serve.html_text import HtmlText
from translator.serve.jobs import Job, Task
from translator.serve.keys import ApiKeys
from translator.serve.metrics import Metrics
from translator.serve.models import Catalogue, Model, Result
from translator.serve.refusals import Refusal
from translator.serve.text import TextLines, text_lines

logger = logging.getLogger(__name__)
AUTO = "auto"
CLIENT_GONE = 499  # for the metrics; no client receives it

Value = TypeVar("Value")


@dataclass(frozen=True)
class Answer:
    """The translations of a text: the best and, where asked for, alternatives; the language if it was detected."""

    text: str
    alternatives: list[str]
    model: Model
    detected: Detected | None


class Service:
    def __init__(
        self,
        catalogue: Catalogue,
        options: ServerOptions,
        *,
        keys: ApiKeys | None = None,
        split_sentences: bool = False,
    ) -> None:
        self.catalogue, self.options, self.split_sentences = catalogue, options, split_sentences
        self.keys = keys or ApiKeys([])
        self.metrics = Metrics()
        self.detector = Detector(catalogue.sources)
        wait_seconds = options.batch_wait / 1_000
        self.batcher = Batcher(self.metrics, max_queue=options.max_queue, wait_seconds=wait_seconds)

    # ------------------------------------------------------------------------------------------------ before the queue

    async def parameters(self, request: Request) -> Parameters:
        """The parameters of a request, which must not be too large or too slow, and needs a key if there are keys."""
        try:
            async with asyncio.timeout(self.options.timeout):
                parameters = await read_parameters(request, self.options.max_body)
        except TimeoutError:
            raise Refusal(408, f"the body did not arrive within {self.options.timeout:g} s") from None
        scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
        given = credentials.strip() if scheme.lower() in ("bearer", "deepl-auth-key") else None
        if given is None and "api_key" in parameters:
            given = parameters.text("api_key")
        if not self.keys.accept(given):
            raise Refusal(403, "this server needs an API key; give a valid one")
        return parameters

    def check_texts(self, texts: Sequence[str]) -> None:
        if len(texts) > self.options.max_texts:
            raise Refusal(400, f"{len(texts)} texts are more than the {self.options.max_texts} allowed in a request")
        num_characters = sum(map(len, texts))
        if num_characters > self.options.max_characters:
            raise Refusal(
                400,
                f"{num_characters:,} characters are more than the {self.options.max_characters:,} allowed in a request",
            )

    def choose(
        self, text: str, source: str, target: str, *, target_name: str = "target"
    ) -> tuple[Model, Detected | None]:
        """The model for a text; with the source `auto`, chosen among all that translate into the target.

        `target_name` is what the request calls its target.
        """
        if source.lower() != AUTO:
            return self.catalogue.find(source, target), None
        detected = self.detector.rank(text, self.catalogue.sources_of(target, target_name))[0]
        return self.catalogue.find(detected.language, target), detected

    def largest_nbest(self, model: Model) -> int:
        """The most translations of a line that can be asked for without another search, whose best one may differ."""
        options = model.options
        fitting = options.mbr or (options.num_hypotheses if options.sample else options.beam_size)
        return min(fitting, 1 + self.options.max_alternatives)

    # ------------------------------------------------------------------------------------------------- in the queue

    async def translate(
        self,
        request: Request,
        texts: Sequence[str],
        source: str,
        target: str,
        *,
        num_alternatives: int = 0,
        is_html: bool = False,
        split_sentences: bool | None = None,
        target_name: str = "target",
    ) -> list[Answer]:
        """The translations of texts; lines and tags stay where they were."""
        self.check_texts(texts)
        documents = [HtmlText(text) if is_html else None for text in texts]
        # Addresses and names of tags and attributes say nothing about the language of a document.
        plain = [document.plain if document else text for document, text in zip(documents, texts, strict=True)]
        choices = [self.choose(text, source, target, target_name=target_name) for text in plain]
        cut = [
            TextLines(document.texts, []) if document else text_lines(text)
            for document, text in zip(documents, texts, strict=True)
        ]
        lines: dict[Model, list[str]] = {}
        for (model, _), part in zip(choices, cut, strict=True):
            lines.setdefault(model, []).extend(part.lines)
        split = self.split_sentences if split_sentences is None else split_sentences
        need_links = any(document is not None and document.needs_links for document in documents)
        jobs = {
            model: Job(Task(model, self._with_alternatives(model, num_alternatives), split, need_links=need_links), own)
            for model, own in lines.items()
        }
        async with self.queued(list(jobs.values()), texts) as deadline, asyncio.timeout_at(deadline):
            collected = {model: iter(await self.wait(request, _collect(job))) for model, job in jobs.items()}
        answers = []
        for (model, detected), part, document in zip(choices, cut, documents, strict=True):
            results = list(islice(collected[model], len(part.lines)))
            ranks = [[result.candidate(rank) for result in results] for rank in range(1 + num_alternatives)]
            whole = [
                document.joined(rank, model.joiner) if document else part.joined([found.text for found in rank])
                for rank in ranks
            ]
            others = [text for text in dict.fromkeys(whole[1:]) if text != whole[0]]
            answers.append(Answer(whole[0], others, model, detected))
        return answers

    def _with_alternatives(self, model: Model, num_alternatives: int) -> SearchOptions:
        if not num_alternatives:
            return model.options
        try:
            return model.options.changed(num_hypotheses=1 + num_alternatives)
        except OptionError as error:
            raise Refusal(400, f"alternatives: {error.remedy}") from None

    @asynccontextmanager
    async def queued(self, jobs: Sequence[Job], texts: Sequence[str]) -> AsyncIterator[float]:
        """Queues jobs during the block. What is unfinished at its end is cancelled; failures become refusals.

        Gives the time of the event loop until which the block may wait. It has to see to that itself, since only the
        task that is waiting can, and a stream begins in one task and goes on in another.
        """
        try:
            self.batcher.submit(jobs)
        except QueueFullError as error:
            raise Refusal(429, "too many requests are waiting; try again later", error.retry_after) from None
        self.metrics.accept(sum(map(len, texts)))
        try:
            yield asyncio.get_running_loop().time() + self.options.timeout
        except TimeoutError:
            raise Refusal(503, f"the translation took longer than the {self.options.timeout:g} s allowed", 5) from None
        except Refusal:
            raise
        except OptionError as error:
            raise Refusal(400, f"{error.option}: {error.remedy}") from None
        except UserError as error:
            raise Refusal(400, str(error)) from None
        except Exception as error:
            logger.error("a request failed: %s", describe(error))
            self.metrics.errors.labels(type(error).__name__).inc()
            raise Refusal(500, "the translation failed because of an internal error") from None
        finally:
            for job in jobs:
                self.batcher.cancel(job)

    async def wait(self, request: Request, work: Awaitable[Value]) -> Value:
        """Waits for the work, or until the client has disconnected."""
        working = asyncio.ensure_future(work)
        gone = asyncio.ensure_future(_disconnected(request))
        try:
            await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                self.metrics.cancelled.inc()
                raise Refusal(CLIENT_GONE, "the client has disconnected")
            return working.result()
        finally:
            working.cancel()
            gone.cancel()


async def _collect(job: Job) -> list[Result]:
    return [result async for result in job.results()]


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
