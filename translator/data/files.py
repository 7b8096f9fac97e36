"""Text files, read line by line and never held in memory: UTF-8, plain or (by the ending .gz) gzip.

A line ends with "\\n" or "\\r\\n" and nothing else. Python's own `splitlines` also cuts at form feeds, U+0085, U+2028
and others, which occur inside sentences of real corpora and would shift all later lines against the other language. A
last line without an end counts; a byte-order mark at the start of the file is no part of the text.
"""

import codecs
import gzip
import hashlib
import io
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from translator.errors import UserError, nearest

CHUNK = 1 << 20
BYTE_ORDER_MARK = "\ufeff"


@dataclass(frozen=True)
class FileFingerprint:
    """Which bytes a run was trained on. A file that is only streamed from elsewhere is known by its address alone."""

    path: str
    size: int | None
    sha256: str | None


def fingerprint_file(path: Path) -> FileFingerprint:
    require_file(path)
    digest = hashlib.sha256()
    size = 0
    with _explained(path), path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
            size += len(chunk)
    return FileFingerprint(str(path), size, digest.hexdigest())


def combined_fingerprint(*parts: object) -> str:
    """One SHA-256 of several values, each kept apart from its neighbours."""
    digest = hashlib.sha256()
    for part in parts:
        text = str(part).encode()
        digest.update(b"%d:" % len(text) + text)
    return digest.hexdigest()


def suggestion(name: str, available: Iterable[str]) -> str:
    """ "; did you mean …?" where one of the available names is near, else nothing."""
    near = nearest(name, available)
    return f"; did you mean {near}?" if near else ""


def require_file(path: Path) -> None:
    if path.is_dir():
        raise UserError(f"{path}: is a directory; give a file inside it")
    if not path.exists():
        neighbours = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
        raise UserError(f"{path}: no such file{suggestion(path.name, neighbours)}")


def read_lines(path: Path) -> Iterator[str]:
    """The lines of the file without their ends."""
    require_file(path)
    offset = 0
    with _explained(path), _open_bytes(path) as file:
        for number, raw in enumerate(file, start=1):
            try:
                line = raw.decode()
            except UnicodeDecodeError as error:
                raise _not_utf8(path, number, offset, raw, error) from None
            offset += len(raw)
            if number == 1 and line.startswith(BYTE_ORDER_MARK):
                line = line[1:]
                if not line:
                    return
            if line.endswith("\n"):
                line = line[:-2] if line.endswith("\r\n") else line[:-1]
            yield line


def count_lines(path: Path) -> int:
    """As many as `read_lines` gives, some times faster, with the same refusals."""
    require_file(path)
    decoder = codecs.getincrementaldecoder("utf-8")()
    num_lines = 0
    last = b"\n"
    try:
        with _explained(path), _open_bytes(path) as file:
            chunk = file.read(CHUNK).removeprefix(codecs.BOM_UTF8)
            while chunk:
                decoder.decode(chunk)
                num_lines += chunk.count(b"\n")
                last = chunk[-1:]
                chunk = file.read(CHUNK)
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return sum(1 for _ in read_lines(path))  # raises, and knows the line and the offset
    return num_lines + (last != b"\n")


def _open_bytes(path: Path) -> BinaryIO:
    if path.suffix == ".gz":
        # GzipFile hands out lines one Python call at a time; a buffered reader on top of it is twice as fast.
        return cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, gzip.open(path, "rb")), CHUNK))
    return path.open("rb")


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turns what can go wrong while reading into messages for the user."""
    try:
        yield
    except EOFError:
        raise UserError(f"{path}: the gzip file is cut off before its end; copy or download it again") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise UserError(f"{path}: not a sound gzip file ({error}); copy it again, or drop .gz if it is plain") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error})") from None


def _not_utf8(path: Path, number: int, offset: int, raw: bytes, error: UnicodeDecodeError) -> UserError:
    start = raw[:2] if number == 1 else b""
    if start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        remedy = "it starts like UTF-16: convert it with `iconv -f utf-16 -t utf-8`"
    elif start == b"\x1f\x8b":
        remedy = "it is compressed with gzip: let its name end in .gz"
    else:
        remedy = "convert it, for example with `iconv -f latin1 -t utf-8`, or repair the line"
    text = "the uncompressed text" if path.suffix == ".gz" else "the file"
    byte = raw[error.start]
    return UserError(
        f"{path}, line {number}: not UTF-8 at byte offset {offset + error.start} of {text} (0x{byte:02x}); {remedy}"
    )
