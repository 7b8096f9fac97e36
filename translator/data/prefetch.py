"""Prefetching in a background thread."""

import queue
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

Item = TypeVar("Item")
LONGEST_WAIT = 10.0  # seconds for the thread to notice that it must stop; it may be waiting for the network


class Prefetcher(Generic[Item]):
    """Runs an iterator in a thread, up to `depth` items ahead of the consumer.

    An exception in the iterator is raised where the item is requested. The thread stops on `close`, when the prefetcher
    is garbage-collected, and before the interpreter exits; so it must not hold a reference to the prefetcher.
    """

    def __init__(self, make_iterator: Callable[[], Iterator[Item]], depth: int) -> None:
        self._queue: queue.Queue[tuple[Item | None, BaseException | None]] = queue.Queue(depth)
        stop = threading.Event()
        thread = threading.Thread(
            target=_produce, args=(make_iterator, self._queue, stop), name="prefetch", daemon=True
        )
        self._finalizer = weakref.finalize(self, _finish, thread, self._queue, stop)
        thread.start()

    def __iter__(self) -> Iterator[Item]:
        return self

    def __next__(self) -> Item:
        if not self._finalizer.alive:
            raise StopIteration
        item, error = self._queue.get()
        if error is not None:
            self.close()
            raise error
        assert item is not None
        return item

    def close(self) -> None:
        self._finalizer()


def _produce(
    make_iterator: Callable[[], Iterator[Item]],
    items: "queue.Queue[tuple[Item | None, BaseException | None]]",
    stop: threading.Event,
) -> None:
    try:
        for item in make_iterator():
            if stop.is_set():
                return
            items.put((item, None))
        items.put((None, StopIteration()))
    except BaseException as error:
        items.put((None, error))


def _finish(
    thread: threading.Thread, items: "queue.Queue[tuple[Item | None, BaseException | None]]", stop: threading.Event
) -> None:
    stop.set()
    if thread is threading.current_thread():  # the garbage collector may run in it
        return
    deadline = time.monotonic() + LONGEST_WAIT
    while thread.is_alive() and time.monotonic() < deadline:
        try:
            items.get_nowait()  # makes room for the item it is about to put
        except queue.Empty:
            thread.join(timeout=0.01)
