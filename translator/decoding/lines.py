"""Lines of a text, exactly: in as many chunks as it takes, so that a text of any size fits into memory.

A line ends at a line feed and at nothing else; a carriage return before it belongs to the line's end, and is given
back. A byte-order mark at the start of a file is left out.
"""

import codecs
import gzip
import io
import queue
import threading
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from translator.errors import UserError

FIRST_CHUNK = 64  # lines; the first answers should come soon …
LARGEST_CHUNK = 4_096  # … and later ones be sorted by length among many
CHUNK_BYTES = 4_000_000


@dataclass(frozen=True)
class Line:
    text: str  # without its end
    end: str  # "\n" or "\r\n"; also after a last line that had none
    raw: bytes  # as it was read


class LineReader:
    """Reads the lines of several files, one after the other as if they were one."""

    def __init__(self, files: Iterable[tuple[str, BinaryIO]], errors: str = "strict") -> None:
        self.files = files
        self.errors = errors

    def __iter__(self) -> Iterator[Line]:
        for name, file in self.files:
            with _explained(name):
                yield from self._lines(name, file)

    def _lines(self, name: str, file: BinaryIO) -> Iterator[Line]:
        offset = 0
        for number, raw in enumerate(file, start=1):
            end = b"\r\n" if raw.endswith(b"\r\n") else b"\n"
            body = raw.removesuffix(end)
            if number == 1:
                if raw == codecs.BOM_UTF8:
                    return
                body = body.removeprefix(codecs.BOM_UTF8)
            yield Line(self._decode(name, number, offset, body), end.decode(), raw)
            offset += len(raw)

    def _decode(self, name: str, number: int, offset: int, body: bytes) -> str:
        try:
            return body.decode("utf-8")
        except UnicodeDecodeError as error:
            if self.errors == "replace":
                return body.decode("utf-8", "replace")
            raise UserError(
                f"{name}, line {number}: not UTF-8 at byte {error.start + 1} of the line (0x{body[error.start]:02x}, "
                f"offset {offset + error.start}); convert the file, or go on with --errors replace"
            ) from None


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Turns what can go wrong while reading into messages for the user."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UserError(f"{name}: not a sound gzip file ({error}); copy it again") from None
    except OSError as error:
        raise UserError(f"{name}: cannot be read ({error.strerror or error})") from None


def open_input(path: Path) -> BinaryIO:
    """A text file, perhaps compressed with gzip."""
    if not path.exists():
        raise UserError(f"{path}: no such file")
    if path.is_dir():
        raise UserError(f"{path}: is a directory; give a file inside it")
    with _explained(str(path)):
        if path.suffix == ".gz":
            return cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, gzip.open(path, "rb"))))
        return path.open("rb")


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
    """Whatever lines have come in, as soon as there is one: for a conversation through a pipe."""
    waiting: queue.Queue[Line | BaseException | None] = queue.Queue(LARGEST_CHUNK)

    def read() -> None:
        try:
            for line in lines:
                waiting.put(line)
            waiting.put(None)
        except BaseException as error:
            waiting.put(error)

    # A daemon, because nothing can interrupt a thread that waits for input.
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
