"""Batches processed in parallel give the same results as one after another."""

import random
import threading
import time
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from support.fake_models import ByteTokenizer, TableModel
from translator.decoding.line_translator import LineTranslator
from translator.decoding.search import SearchOptions
from translator.decoding.workers import for_each
from translator.models.base import State, Step

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def three_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def test_each_item_is_done_once_in_one_thread_and_the_threads_come_back() -> None:
    together = threading.Barrier(3, timeout=20)  # passed only if three items are being processed at the same time
    done = []

    def work(item: int, abandoned: Callable[[], bool]) -> None:
        together.wait()
        done.append((item, torch.get_num_threads()))

    for_each(work, range(6), CPU)
    assert sorted(done) == [(item, 1) for item in range(6)]
    assert torch.get_num_threads() == 3


def test_a_single_item_has_all_threads() -> None:
    seen = []
    for_each(lambda item, abandoned: seen.append(torch.get_num_threads()), [0], CPU)
    assert seen == [3]


def test_a_single_item_outside_the_main_thread_has_one() -> None:
    seen = []

    def work() -> None:
        torch.set_num_threads(3)
        for_each(lambda item, abandoned: seen.append(torch.get_num_threads()), [0], CPU)
        seen.append(torch.get_num_threads())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [1, 3]


def test_an_error_ends_the_work_and_arrives_while_others_are_busy() -> None:
    go_on = threading.Event()
    begun = []

    def work(item: int, abandoned: Callable[[], bool]) -> None:
        begun.append(item)
        if item == 0:
            raise RuntimeError(f"item {item}")
        go_on.wait(20)

    with pytest.raises(RuntimeError, match="item 0"):
        for_each(work, range(1_000), CPU)
    assert torch.get_num_threads() == 3
    assert not go_on.is_set()
    go_on.set()
    assert len(begun) <= 4  # three at first, and one in place of the one that failed


def test_at_most_the_given_number_of_items_is_processed_at_once() -> None:
    at_work: list[int] = []
    most = 0

    def work(item: int, abandoned: Callable[[], bool]) -> None:
        nonlocal most
        at_work.append(item)
        most = max(most, len(at_work))
        time.sleep(0.01)
        at_work.remove(item)

    for_each(work, range(10), CPU, at_most=2)
    assert most == 2


class EndlessModel(TableModel):
    """Its searches take minutes, except the one in the first thread, which fails."""

    def step(self, tokens: Tensor, state: State, *, need_weights: bool = False) -> Step:
        if self.num_steps > 20 and threading.current_thread().name.endswith("_0"):
            raise RuntimeError("failed")
        return super().step(tokens, state)


def test_running_searches_end_soon_after_another_has_failed() -> None:
    tokenizer = ByteTokenizer()
    model = EndlessModel(TableModel.random(1, vocab_size=tokenizer.target_vocab_size).table)
    options = SearchOptions(beam_size=2, batch_tokens=1, min_length=90_000, max_length_extra=100_000)
    translator = LineTranslator(model, tokenizer, options=options)
    before = set(threading.enumerate())
    with pytest.raises(RuntimeError, match="failed"):
        translator.translate(["a", "ab", "abc"])
    deadline = time.monotonic() + 10
    while set(threading.enumerate()) - before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert set(threading.enumerate()) <= before


def test_translations_do_not_depend_on_the_number_of_threads() -> None:
    tokenizer = ByteTokenizer()
    model = TableModel.random(9, vocab_size=tokenizer.target_vocab_size, end=3)
    rng = random.Random(4)
    lines = ["".join(rng.choices("abc ", k=rng.randrange(14))) for _ in range(60)]
    translator = LineTranslator(model, tokenizer, options=SearchOptions(beam_size=3, batch_tokens=30))
    side_by_side = translator.translate(lines)
    torch.set_num_threads(1)
    assert translator.translate(lines) == side_by_side
    assert len(set(side_by_side)) > 10
