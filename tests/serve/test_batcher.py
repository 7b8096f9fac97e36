"""Requests translated together: the same results as alone, with no request delayed or broken by another."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from support.recorded_batches import Recorder, collected, run_batcher, until
from support.servers import RunningServer, running
from translator import Translator
from translator.errors import OptionError
from translator.serve.batcher import Batcher, QueueFullError
from translator.serve.jobs import Job, Task
from translator.serve.refusals import Refusal
from translator.serve.torch_model import load_models

TEXTS = [
    "A man reads a book.", "", "Two dogs run through the snow.", "猫", "The house is red.\n\nAnna has 12 cats.",
    "Anna " * 9, "x", "The red house reads 12 books through the snow. A dog runs.", "Ünïcödé & <b>",
]  # fmt: skip
OPTIONS: list[dict[str, Any]] = [
    {}, {"beam_size": 1}, {"beam_size": 4, "alpha": 0.5}, {"sample": True, "seed": 7}, {"no_repeat_ngram": 2},
]  # fmt: skip
ENGINES = [("torch", False), ("ctranslate2", False), ("ctranslate2", True), ("auto", False)]


@pytest.fixture(scope="module", params=ENGINES, ids=lambda engine: f"{engine[0]}{'-int8' * engine[1]}")
def engine(request: pytest.FixtureRequest) -> dict[str, Any]:
    name, int8 = request.param
    if name != "torch":
        pytest.importorskip("ctranslate2", reason="ctranslate2 is not installed")
    return {"engine": name, "int8": int8}


@pytest.fixture(scope="module")
def engine_server(small_run: Path, engine: dict[str, Any]) -> Iterator[RunningServer]:
    (model,) = load_models(small_run, "cpu", **engine, options={})
    assert engine["engine"] == "torch" or "ctranslate2" in model.description
    with running([model]) as started:
        yield started


def body_of(text: str, options: dict[str, Any]) -> dict[str, Any]:
    return {"text": text, "target": "de", "source": "en", "split_sentences": False, "options": options}


def test_every_client_gets_what_translate_gives_whatever_its_neighbours(
    engine_server: RunningServer, engine: dict[str, Any], small_run: Path
) -> None:
    expected: dict[tuple[int, str], str] = {}
    refused: dict[int, OptionError] = {}
    for number, options in enumerate(OPTIONS):
        try:
            translator = Translator.load(small_run, "cpu", **engine, **options)
        except OptionError as error:
            refused[number] = error
            continue
        expected |= {(number, text): "\n".join(translator.translate(text.split("\n"))) for text in TEXTS}

    def ask(case: tuple[int, str]) -> str:
        number, text = case
        if number:
            return str(engine_server.post("/v1/translate", body_of(text, OPTIONS[number])).json["text"])
        return str(engine_server.post("/translate", {"q": text, "source": "en", "target": "de"}).json["translatedText"])

    cases = list(expected)
    assert len(cases) >= 3 * len(TEXTS)
    before = engine_server.metric("batch_requests_count")
    with ThreadPoolExecutor(16) as clients:
        answers = list(clients.map(ask, cases))
    assert answers == [expected[case] for case in cases]
    assert engine_server.metric("batch_requests_count") - before < len(cases), "some were translated together"
    for number, mistake in refused.items():  # the server refuses what `translate` refuses
        answer = engine_server.post("/v1/translate", body_of("a", OPTIONS[number]))
        assert (answer.status, answer.json["error"]) == (400, f"options.{mistake.option}: {mistake.remedy}")


def test_lines_of_several_requests_share_a_batch_and_a_long_text_does_not_hold_up_a_short_one() -> None:
    async def work(batcher: Batcher, model: Recorder) -> None:
        task = Task(model, model.options)
        first = Job(task, ["first"])
        batcher.submit([first])
        await until(lambda: len(model.calls) == 1)
        long, short = Job(task, [f"line {i}" for i in range(25)]), Job(task, ["short", "shorter"])
        other = Job(Task(model, model.options.changed(beam_size=2)), ["other options"])
        batcher.submit([long])
        batcher.submit([other])
        batcher.submit([short])
        model.gate.set()
        assert await collected(long) == [f"LINE {i}" for i in range(25)]
        assert (await collected(short), await collected(other)) == (["SHORT", "SHORTER"], ["OTHER OPTIONS"])
        assert model.calls[1] == ["line 0", *(f"line {i}" for i in range(1, 8)), "short", "shorter"]
        assert model.calls[2] == ["other options"], "it had waited longer than what is left of the long text"
        assert [len(call) for call in model.calls[3:]] == [10, 7]

    run_batcher(work)


def test_a_failing_request_fails_alone() -> None:
    async def work(batcher: Batcher, model: Recorder) -> None:
        task = Task(model, model.options)
        batcher.submit([Job(task, ["first"])])
        await until(lambda: len(model.calls) == 1)
        jobs = [Job(task, lines) for lines in (["good"], ["fine", "bad"], ["well"])]
        for job in jobs:
            batcher.submit([job])
        model.gate.set()
        assert (await collected(jobs[0]), await collected(jobs[2])) == (["GOOD"], ["WELL"])
        with pytest.raises(RuntimeError):
            await collected(jobs[1])
        last = Job(task, ["after"])
        batcher.submit([last])
        assert await collected(last) == ["AFTER"]

    run_batcher(work)


def test_cancelled_work_leaves_the_queue_and_a_search_for_nobody_is_abandoned() -> None:
    async def work(batcher: Batcher, model: Recorder) -> None:
        task = Task(model, model.options)
        running, waiting, wanted = Job(task, ["running"]), Job(task, ["waiting"]), Job(task, ["wanted"])
        batcher.submit([running])
        await until(lambda: len(model.calls) == 1)
        batcher.submit([waiting])
        batcher.submit([wanted])
        batcher.cancel(waiting)
        batcher.cancel(running)
        await until(lambda: model.interrupted)
        model.gate.set()
        assert await collected(wanted) == ["WANTED"]
        assert model.calls == [["running"], ["wanted"]]

    run_batcher(work)


def test_the_queue_is_bounded() -> None:
    async def work(batcher: Batcher, model: Recorder) -> None:
        task = Task(model, model.options)
        batcher.submit([Job(task, ["running"])])
        await until(lambda: len(model.calls) == 1)
        waiting = [Job(task, ["waiting"]) for _ in range(2)]
        batcher.submit(waiting)
        with pytest.raises(QueueFullError) as full:
            batcher.submit([Job(task, ["too many"])])
        assert 1 <= full.value.retry_after <= 60
        batcher.cancel(waiting[0])
        batcher.submit([Job(task, ["again"])])

    run_batcher(work, max_queue=2)


def test_a_streamed_text_is_translated_in_growing_parts() -> None:
    async def work(batcher: Batcher, model: Recorder) -> None:
        model.gate.set()
        job = Job(Task(model, model.options), [str(i) for i in range(10)], is_streamed=True)
        batcher.submit([job])
        assert await collected(job) == [str(i) for i in range(10)]
        assert [len(call) for call in model.calls] == [1, 2, 4, 3]

    run_batcher(work)


def test_an_empty_job_has_no_results_and_takes_no_slot() -> None:
    async def work(batcher: Batcher, model: Recorder) -> None:
        job = Job(Task(model, model.options), [])
        batcher.submit([job])
        assert await collected(job) == []
        assert model.calls == []

    run_batcher(work)


def test_refusals_carry_what_the_client_needs() -> None:
    assert Refusal(429, "later", 3).headers == {"Retry-After": "3"}
    assert Refusal(400, "never").headers == {}
