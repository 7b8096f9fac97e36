"""Batches side by side give what they give one after the other."""

import random
import threading
from collections.abc import Iterator

import pytest
import torch

from support.fake_models import ByteTokenizer, TableModel
from translator.decoding.line_translator import LineTranslator
from translator.decoding.search import SearchOptions
from translator.decoding.workers import for_each

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def three_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def test_each_item_is_done_once_in_one_thread_and_the_threads_come_back() -> None:
    together = threading.Barrier(3, timeout=20)  # passed only if three items are at work at the same time
    done = []

    def work(item: int) -> None:
        together.wait()
        done.append((item, torch.get_num_threads()))

    for_each(work, range(6), CPU)
    assert sorted(done) == [(item, 1) for item in range(6)]
    assert torch.get_num_threads() == 3


def test_a_single_item_has_all_threads() -> None:
    seen = []
    for_each(lambda _: seen.append(torch.get_num_threads()), [0], CPU)
    assert seen == [3]


def test_an_error_ends_the_work_and_arrives_while_others_are_busy() -> None:
    go_on = threading.Event()
    begun = []

    def work(item: int) -> None:
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
