"""Lines in chunks that are translated together, so that a text of any size fits into memory."""

import queue
import threading
from collections.abc import Iterable, Iterator

from translator.files.lines import Line

FIRST_CHUNK = 64  # lines; small, so that the first translations appear soon
LARGEST_CHUNK = 4_096  # lines; large, so that there are many to sort by length
CHUNK_BYTES = 4_000_000


def chunks(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """Lines in chunks that grow from small to large."""
    size, chunk, num_bytes = FIRST_CHUNK, [], 0
    for line in lines:
        chunk.append(line)
        num_bytes += len(line.raw)
        if len(chunk) >= size or num_bytes >= CHUNK_BYTES:
            yield chunk
            size, chunk, num_bytes = min(2 * size, LARGEST_CHUNK), [], 0
    if chunk:
        yield chunk


def available_chunks(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """The lines that have arrived, as soon as there is one: for interactive use through a pipe."""
    waiting: queue.Queue[Line | BaseException | None] = queue.Queue(LARGEST_CHUNK)

    def read() -> None:
        try:
            for line in lines:
                waiting.put(line)
            waiting.put(None)
        except BaseException as error:
            waiting.put(error)

    # A daemon, since a thread that waits for input cannot be interrupted.
    threading.Thread(target=read, daemon=True).start()
    ended = False
    while not ended:
        chunk: list[Line] = []
        item = waiting.get()
        while isinstance(item, Line):
            chunk.append(item)
            try:
                item = waiting.get_nowait()
            except queue.Empty:
                break
        if chunk:
            yield chunk
        if isinstance(item, BaseException):
            raise item
        ended = item is None
