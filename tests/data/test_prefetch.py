"""Prefetching in a thread: the same items, errors raised in order, and a clean end."""

import threading
from collections.abc import Iterator

import pytest

from translator.data.prefetch import Prefetcher


def prefetch_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "prefetch"]


def test_items_come_in_order_and_end() -> None:
    assert list(Prefetcher(lambda: iter(range(1, 50)), depth=3)) == list(range(1, 50))
    assert prefetch_threads() == []


def test_an_error_is_raised_after_the_items_before_it() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise OSError("the disk is gone")

    prefetcher = Prefetcher(items, depth=5)
    assert next(prefetcher) == 1
    with pytest.raises(OSError, match="the disk is gone"):
        next(prefetcher)
    with pytest.raises(StopIteration):  # exhausted after the error
        next(prefetcher)


def test_closing_ends_a_thread_blocked_on_a_full_queue() -> None:
    asked = threading.Semaphore(0)

    def items() -> Iterator[int]:
        while True:
            asked.release()
            yield 1

    prefetcher = Prefetcher(items, depth=1)
    assert asked.acquire(timeout=10)
    assert asked.acquire(timeout=10)  # one item is queued, the next is blocked
    prefetcher.close()
    assert prefetch_threads() == []
    assert list(prefetcher) == []
