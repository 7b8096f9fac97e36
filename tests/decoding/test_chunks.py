"""Chunks: all lines in order, small at first, bounded in lines and bytes."""

import time
from collections.abc import Iterator

import pytest

from translator.decoding.chunks import CHUNK_BYTES, FIRST_CHUNK, LARGEST_CHUNK, available_chunks, chunks
from translator.errors import UserError
from translator.files.lines import Line


def line(text: str) -> Line:
    return Line(text, "\n", text.encode() + b"\n")


def test_chunks_double_until_they_are_large() -> None:
    lines = [line(str(number)) for number in range(20_000)]
    found = list(chunks(iter(lines)))
    assert [line for chunk in found for line in chunk] == lines
    sizes = [len(chunk) for chunk in found]
    assert sizes[:3] == [FIRST_CHUNK, 2 * FIRST_CHUNK, 4 * FIRST_CHUNK]
    assert max(sizes) == LARGEST_CHUNK
    assert list(chunks([])) == []


def test_long_lines_end_a_chunk_early() -> None:
    long = line("x" * (CHUNK_BYTES // 2))
    assert [len(chunk) for chunk in chunks([long] * 5)] == [2, 2, 1]


def test_a_line_is_available_before_the_next_one_arrives() -> None:
    answered: list[str] = []

    def conversation() -> Iterator[Line]:
        for number in range(3):
            yield line(f"question {number}")
            while len(answered) <= number:  # no further question before the answer
                time.sleep(0.001)

    for chunk in available_chunks(conversation()):
        answered += [line.text for line in chunk]
    assert answered == ["question 0", "question 1", "question 2"]


def test_an_input_error_is_raised_after_the_lines_before_it() -> None:
    def damaged() -> Iterator[Line]:
        yield line("good")
        raise UserError("line 2 is not UTF-8")

    found = available_chunks(damaged())
    assert next(found) == [line("good")]
    with pytest.raises(UserError, match="line 2"):
        next(found)
