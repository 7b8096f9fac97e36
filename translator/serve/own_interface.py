"""Our own interface, /v1/translate: sentences with scores, n-best lists, forced prefixes, details, and streams."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from translator.errors import OptionError, UserError
from translator.schema.decode import SearchOptions
from translator.serve.bodies import Parameters
from translator.serve.detection import Detected
from translator.serve.jobs import Job, Task
from translator.serve.models import Details, Model, Prefix, Result
from translator.serve.refusals import Refusal
from translator.serve.service import AUTO, Service
from translator.serve.text import TextLines, text_lines

# Length limits and batch size are set by the server.
OPTIONS = (
    "beam_size", "length_penalty", "alpha", "stop", "no_repeat_ngram", "repetition_penalty", "forbid", "sample",
    "temperature", "top_k", "top_p", "epsilon", "mbr", "mbr_utility", "seed",
)  # fmt: skip
NAMES = (
    "text", "source", "target", "prefix", "nbest", "options", "split_sentences", "details", "stream", "api_key",
)  # fmt: skip
MOST_RUNNERS_UP = 20
MOST_FORBIDDEN = 100  # words …
LONGEST_FORBIDDEN = 1_000  # … and characters of all together, since a word is spelled in all ways


@dataclass(frozen=True)
class _Asked:
    """A request, split into the units that are translated: sentences or lines."""

    model: Model
    detected: Detected | None
    text: TextLines
    units: list[str]
    line_of: list[int]  # of each unit
    job: Job

    def heading(self) -> dict[str, Any]:
        found: dict[str, Any] = {"source": self.model.source, "target": self.model.target}
        if self.detected is not None:
            found["detected"] = {"language": self.detected.language, "confidence": self.detected.confidence}
        return found

    def describe(self, number: int, result: Result) -> dict[str, Any]:
        found: dict[str, Any] = {
            "line": self.line_of[number],
            "source": self.units[number],
            "text": result.text(),
            "score": result.candidates[0].score,
        }
        if self.job.task.options.num_hypotheses > 1:
            found["nbest"] = [{"text": candidate.text, "score": candidate.score} for candidate in result.candidates]
        if result.details is not None:
            found["details"] = result.details
        return found

    def whole(self, results: list[Result]) -> str:
        lines: list[list[str]] = [[] for _ in self.text.lines]
        for line, result in zip(self.line_of, results, strict=True):
            lines[line].append(result.text())
        return self.text.joined([self.model.joiner.join(filter(None, texts)) for texts in lines])


class OwnInterface:
    def __init__(self, service: Service) -> None:
        self.service = service

    @property
    def routes(self) -> list[Route]:
        return [Route("/v1/translate", self.translate, methods=["POST"])]

    async def translate(self, request: Request) -> Response:
        parameters = await self.service.parameters(request)
        is_streamed = parameters.flag("stream")
        asked = self._asked(parameters, is_streamed)
        if is_streamed:
            return await self._stream(asked)
        async with self.service.queued([asked.job], asked.units) as deadline, asyncio.timeout_at(deadline):
            results = await self.service.wait(request, _collect(asked.job))
        sentences = [asked.describe(number, result) for number, result in enumerate(results)]
        return JSONResponse(asked.heading() | {"text": asked.whole(results), "sentences": sentences})

    def _asked(self, parameters: Parameters, is_streamed: bool) -> _Asked:
        unknown = sorted(set(parameters.values) - set(NAMES))
        if unknown:
            raise Refusal(400, f"{unknown[0][:50]}: unknown parameter; the parameters are {', '.join(NAMES)}")
        text = parameters.text("text", remedy="give the text to translate")
        target = parameters.text("target", self.service.catalogue.models[0].target)
        model, detected = self.service.choose(text, parameters.text("source", AUTO), target)
        details = _details(parameters, self.service.options.max_alternatives)
        prefix = _prefix(parameters, has_details=details is not None)
        self.service.check_texts([text + "".join(prefix)])
        split = parameters.flag("split_sentences", True)
        lines = text_lines(text)
        # With details a line is one unit, and its sentences are segments of the details.
        cut = [model.split_sentences(line) if split and details is None else [line] for line in lines.lines]
        units = [unit for own in cut for unit in own]
        line_of = [line for line, own in enumerate(cut) for _ in own]
        prefixes: list[Prefix] = [prefix, *[""] * (len(units) - 1)]
        task = Task(model, self._options(model, parameters), split and details is not None, details)
        return _Asked(
            model, detected, lines, units, line_of, Job(task, units, prefixes[: len(units)], is_streamed=is_streamed)
        )

    def _options(self, model: Model, parameters: Parameters) -> SearchOptions:
        """The model's search options, overridden by those of the request within the limits of the server."""
        limits, changes = self.service.options, dict(parameters.group("options"))
        for name in changes:
            if name not in OPTIONS:
                raise Refusal(400, f"options.{name[:50]}: unknown option; the options are {', '.join(OPTIONS)}")
        for name in ("beam_size", "mbr"):
            if isinstance(changes.get(name), int) and changes[name] > max(
                limits.max_beam, getattr(model.options, name)
            ):
                raise Refusal(400, f"options.{name}: must be at most {limits.max_beam} on this server")
        forbidden = [str(word) for word in changes["forbid"]] if isinstance(changes.get("forbid"), list) else []
        if len(forbidden) > MOST_FORBIDDEN or sum(map(len, forbidden)) > LONGEST_FORBIDDEN:
            raise Refusal(
                400, f"options.forbid: at most {MOST_FORBIDDEN} words with {LONGEST_FORBIDDEN:,} characters in all"
            )
        num_best = parameters.number("nbest", model.options.num_hypotheses, 1 + limits.max_alternatives, minimum=1)
        try:
            options = model.options.changed(**changes, num_hypotheses=num_best)
            model.check_options(options)
        except OptionError as error:
            raise Refusal(400, f"options.{error.option}: {error.remedy}") from None
        except UserError as error:
            raise Refusal(400, f"options: {error}") from None
        return options

    async def _stream(self, asked: _Asked) -> Response:
        """Server-sent events: `start`, a `sentence` for each, and `end` with the whole text, or `error`.

        If the queue is full, the request is refused before the stream begins, with status 429.
        """
        events = self._events(asked)
        first = await anext(events)

        async def body() -> AsyncIterator[bytes]:
            yield first
            async for event in events:
                yield event

        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(body(), media_type="text/event-stream", headers=headers)

    async def _events(self, asked: _Asked) -> AsyncIterator[bytes]:
        results: list[Result] = []
        has_begun = False
        try:
            async with self.service.queued([asked.job], asked.units) as deadline:
                yield _event("start", asked.heading())
                has_begun = True
                coming = asked.job.results()
                while len(results) < len(asked.units):
                    async with asyncio.timeout_at(deadline):
                        results.append(await anext(coming))
                    yield _event("sentence", asked.describe(len(results) - 1, results[-1]))
            yield _event("end", {"text": asked.whole(results)})
        except (asyncio.CancelledError, GeneratorExit):
            self.service.metrics.cancelled.inc()
            raise
        except Refusal as refusal:
            if not has_begun:
                raise
            yield _event("error", {"error": refusal.message, "status": refusal.status})


def _prefix(parameters: Parameters, *, has_details: bool) -> Prefix:
    if "prefix" not in parameters:
        return ""
    texts, is_list = parameters.texts("prefix", "")
    if is_list and not has_details:
        raise Refusal(400, "prefix: a list, with one for each segment, needs details")
    return tuple(texts) if is_list else texts[0]


def _details(parameters: Parameters, max_alternatives: int) -> Details | None:
    """true, or an object that says what to show."""
    value = parameters.values.get("details")
    if not isinstance(value, dict):
        return Details() if parameters.flag("details") else None
    wanted = Parameters(value)
    unknown = sorted(set(value) - {"heads", "heads_rank", "beam", "runners_up"})
    if unknown:
        raise Refusal(400, f"details.{unknown[0][:50]}: unknown; details can have heads, heads_rank, beam, runners_up")
    return Details(
        wanted.number("runners_up", 5, MOST_RUNNERS_UP),
        wanted.flag("heads"),
        wanted.number("heads_rank", 0, max_alternatives),
        wanted.flag("beam"),
    )


async def _collect(job: Job) -> list[Result]:
    return [result async for result in job.results()]


def _event(name: str, data: dict[str, Any]) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()
