"""Whose lines are translated next: turns of requests with details, and waiting for others to join a batch."""

import asyncio

import pytest

from support.recorded_batches import Recorder, collected, run_batcher, until
from translator.serve.batcher import Batcher
from translator.serve.jobs import Job, Task
from translator.serve.models import Details


def test_lines_with_details_are_turns_of_their_own() -> None:
    async def work(batcher: Batcher, model: Recorder) -> None:
        plain, detailed = Task(model, model.options), Task(model, model.options, details=Details())
        batcher.submit([Job(plain, ["first"])])
        await until(lambda: len(model.calls) == 1)
        jobs = [
            Job(detailed, ["a", "b", "c", "d"]),
            Job(plain, ["short", "shorter"]),
            Job(detailed, ["e", "f"], is_streamed=True),
        ]
        for job in jobs:
            batcher.submit([job])
        model.gate.set()
        assert [await collected(job) for job in jobs] == [["A", "B", "C", "D"], ["SHORT", "SHORTER"], ["E", "F"]]
        assert model.calls[1:] == [["a"], ["short", "shorter"], ["e"], ["b"], ["f"], ["c"], ["d"]]

    run_batcher(work)


async def occupy_two(batcher: Batcher, model: Recorder) -> Task:
    """Has the lines of two clients translated together, after which further clients are expected."""
    task = Task(model, model.options)
    batcher.submit([Job(task, ["first"])])
    await until(lambda: len(model.calls) == 1)
    both = [Job(task, ["line"] * (model.options.batch_tokens // 2)) for _ in range(2)]
    for job in both:
        batcher.submit([job])
    model.gate.set()
    for job in both:
        await collected(job)
    assert [len(call) for call in model.calls] == [1, model.options.batch_tokens]
    return task


def test_while_several_clients_are_active_a_request_is_joined_by_a_later_one() -> None:
    async def work(batcher: Batcher, model: Recorder) -> None:
        task = await occupy_two(batcher, model)
        early, late = Job(task, ["early"]), Job(task, ["late"])
        batcher.submit([early])
        await asyncio.sleep(0.2)
        assert len(model.calls) == 2, "it waits"
        batcher.submit([late])
        assert (await collected(early), await collected(late)) == (["EARLY"], ["LATE"])
        assert model.calls[2:] == [["early", "late"]]

    run_batcher(work, wait_seconds=3.0)


def test_a_full_batch_waits_for_nobody() -> None:
    async def work(batcher: Batcher, model: Recorder) -> None:
        task = await occupy_two(batcher, model)
        early = Job(task, ["early"])
        batcher.submit([early])
        await asyncio.sleep(0.2)
        assert len(model.calls) == 2, "it waits"
        batcher.submit([Job(task, ["late"] * (model.options.batch_tokens - 1))])
        assert await collected(early) == ["EARLY"]

    run_batcher(work, wait_seconds=3_600.0)


@pytest.mark.parametrize("kind", ["details", "samples"])
def test_a_request_that_nobody_can_join_does_not_wait(kind: str) -> None:
    async def work(batcher: Batcher, model: Recorder) -> None:
        await occupy_two(batcher, model)
        sampled = model.options.changed(sample=True)
        task = Task(model, model.options, details=Details()) if kind == "details" else Task(model, sampled)
        job = Job(task, ["alone"])
        batcher.submit([job])
        assert await collected(job) == ["ALONE"]

    run_batcher(work, wait_seconds=3_600.0)


def test_a_lone_client_does_not_wait() -> None:
    async def work(batcher: Batcher, model: Recorder) -> None:
        model.gate.set()
        for line in ("one", "two", "three"):
            job = Job(Task(model, model.options), [line])
            batcher.submit([job])
            assert await collected(job) == [line.upper()]

    run_batcher(work, wait_seconds=3_600.0)
