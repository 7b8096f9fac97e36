"""Reads UTF-8 text files, plain or gzipped (.gz), line by line, without loading them into memory.

Only "\\n" and "\\r\\n" end a line. Python's `splitlines` also splits at form feeds, U+0085, U+2028 and others, which
occur inside sentences of real corpora and would misalign all later lines with the other language. A last line without a
line ending counts; a byte-order mark at the start of the file is skipped.
"""

import codecs
import gzip
import io
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from translator.errors import UserError, nearest

CHUNK = 1 << 20


class Line(NamedTuple):
    text: str  # without the line ending
    end: str  # "\n" or "\r\n"; "\n" for a last line without a line ending
    raw: bytes  # the unmodified bytes


def read_lines(path: Path) -> Iterator[str]:
    """The lines of the file without their line endings."""
    with open_text(path) as file:
        for line in iterate_lines(file, str(path)):
            yield line.text


def iterate_lines(file: BinaryIO, name: str, *, replace_errors: bool = False, remedy: str = "") -> Iterator[Line]:
    """The lines of an open file, called `name` in error messages.

    Invalid UTF-8 is an error, or is replaced by U+FFFD if `replace_errors` is set; `remedy` is appended to the message.
    """
    offset = 0
    with explain_read_errors(name):
        for number, raw in enumerate(file, start=1):
            end = b"\r\n" if raw.endswith(b"\r\n") else b"\n"
            body = raw.removesuffix(end)
            if number == 1:
                if raw == codecs.BOM_UTF8:
                    return
                body = body.removeprefix(codecs.BOM_UTF8)
            try:
                text = body.decode("utf-8", "replace" if replace_errors else "strict")
            except UnicodeDecodeError as error:
                bad_byte = offset + error.start + len(raw.removesuffix(end)) - len(body)
                raise _not_utf8(name, number, bad_byte, raw, body[error.start], remedy) from None
            yield Line(text, end.decode(), raw)
            offset += len(raw)


def count_lines(path: Path) -> int:
    """The number of lines that `read_lines` yields, but several times faster; raises the same errors."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    num_lines = 0
    last = b"\n"
    try:
        with explain_read_errors(str(path)), open_text(path) as file:
            chunk = file.read(CHUNK).removeprefix(codecs.BOM_UTF8)
            while chunk:
                decoder.decode(chunk)
                num_lines += chunk.count(b"\n")
                last = chunk[-1:]
                chunk = file.read(CHUNK)
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return sum(1 for _ in read_lines(path))  # raises an error with the line and the offset
    return num_lines + (last != b"\n")


def open_text(path: Path) -> BinaryIO:
    """The bytes of a text file, decompressed if its name ends in .gz."""
    require_file(path)
    with explain_read_errors(str(path)):
        if path.suffix == ".gz":
            # GzipFile needs a Python call for every line; wrapping it in a buffered reader makes it twice as fast.
            return cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, gzip.open(path, "rb")), CHUNK))
        return path.open("rb")


def require_file(path: Path) -> None:
    if path.is_dir():
        raise UserError(f"{path}: is a directory; give a file inside it")
    if not path.exists():
        neighbours = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
        raise UserError(f"{path}: no such file{suggestion(path.name, neighbours)}")


def suggestion(name: str, available: Iterable[str]) -> str:
    """ "; did you mean …?" if one of the available names is similar, otherwise an empty string."""
    near = nearest(name, available)
    return f"; did you mean {near}?" if near else ""


@contextmanager
def explain_read_errors(name: str) -> Iterator[None]:
    """Turns read errors into messages for the user."""
    try:
        yield
    except EOFError:
        raise UserError(f"{name}: the gzip file is cut off before its end; copy or download it again") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise UserError(f"{name}: not a sound gzip file ({error}); copy it again, or drop .gz if it is plain") from None
    except OSError as error:
        raise UserError(f"{name}: cannot be read ({error.strerror or error})") from None


def _not_utf8(name: str, number: int, offset: int, raw: bytes, byte: int, remedy: str) -> UserError:
    start = raw[:2] if number == 1 else b""
    if start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        likely = "it starts like UTF-16: convert it with `iconv -f utf-16 -t utf-8`"
    elif start == b"\x1f\x8b":
        likely = "it is compressed with gzip: rename it to end in .gz"
    else:
        likely = "convert it, for example with `iconv -f latin1 -t utf-8`, or repair the line"
    text = "the uncompressed text" if name.endswith(".gz") else "the file"
    return UserError(
        f"{name}, line {number}: not UTF-8 at byte offset {offset} of {text} (0x{byte:02x}); {likely}{remedy}"
    )
