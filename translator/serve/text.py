"""Texts as lines, so that translation keeps the line structure."""

from collections.abc import Sequence
from typing import NamedTuple


class TextLines(NamedTuple):
    """A text split at its line feeds; `ends` include carriage returns before them."""

    lines: list[str]
    ends: list[str]

    def joined(self, translations: Sequence[str]) -> str:
        return "".join(text + end for text, end in zip(translations, self.ends, strict=True))


def text_lines(text: str) -> TextLines:
    lines, ends = [], []
    *whole, last = text.split("\n")
    for line in whole:
        stripped = line.removesuffix("\r")
        lines.append(stripped)
        ends.append(line[len(stripped) :] + "\n")
    return TextLines([*lines, last], [*ends, ""])
