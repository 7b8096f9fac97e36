"""Batches in parallel: the steps of a search are too small to be divided among threads, but batches are independent."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from typing import TypeVar

import torch

Item = TypeVar("Item")


def num_workers(device: torch.device) -> int:
    """The number of batches computed at a time: on a CPU, the number of threads that torch may use."""
    return torch.get_num_threads() if device.type == "cpu" else 1


def for_each(
    function: Callable[[Item, Callable[[], bool]], None],
    items: Sequence[Item],
    device: torch.device,
    at_most: int | None = None,
) -> None:
    """Calls the function with every item, several at a time (but no more than `at_most`), each in one thread.

    A single item has all threads to itself, but only in the main thread. Items are begun in order. torch lets other
    Python threads run while it computes. The function's second argument tells whether the work has been abandoned,
    after an error or Ctrl-C; it should poll it and then return or raise at once, since a process cannot end before its
    threads.
    """
    abandoned = threading.Event()
    num_together = min(num_workers(device), len(items), at_most or len(items))
    if num_together <= 1:
        with nullcontext() if _is_main_thread() else _one_thread_each():
            for item in items:
                function(item, abandoned.is_set)
        return
    workers = ThreadPoolExecutor(num_together)
    with _one_thread_each():
        try:
            for future in [workers.submit(function, item, abandoned.is_set) for item in items]:
                future.result()
        finally:
            abandoned.set()
            # Nothing more is started, and running items are not waited for.
            workers.shutdown(wait=False, cancel_futures=True)


def _is_main_thread() -> bool:
    """Whether the caller shares OpenMP's threads with the rest of the program.

    Every other thread gets threads of its own. With more of them than processors they sleep between operations, and
    waking them takes longer than most operations of a search.
    """
    return threading.current_thread() is threading.main_thread()


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """torch computes each operation in a single thread; afterwards in as many as before."""
    num_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(num_threads)
