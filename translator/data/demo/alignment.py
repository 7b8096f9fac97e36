"""Tokens that know what they mean, and the word alignments that follow from it."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_LETTERS = rf"(?:[^\W_{_CJK}]+[\u0300-\u036f]*)+"  # also with combining accents
_ALIGNMENT_TOKEN = re.compile(
    rf"[{_CJK}]"  # a Chinese character (or kana) is a token
    rf"|\d+(?:[.,:]\d+)+"  # 7:30 and 3.5
    rf"|{_LETTERS}(?:['’-]{_LETTERS})*"  # words with inner apostrophes and hyphens
    rf"|\S"  # any other visible character
)

Labels = tuple[str, ...]
# Labels repeat in every sentence; keeping each tuple only once saves most of the memory of a corpus.
_SHARED: dict[Labels, Labels] = {}


class Token(NamedTuple):
    """A word or punctuation mark with the labels of the abstract nodes it realises."""

    text: str
    labels: Labels = ()


def alignment_tokens(text: str) -> list[str]:
    """Split raw text of any language into the units that alignment indices count.

    A run of letters and digits is one token and keeps inner apostrophes and hyphens ("o'clock",
    "twenty-one"), as do numbers with inner points, commas and colons ("7:30"). Every CJK character
    is a token of its own, and so is every punctuation mark. White space separates tokens.
    """
    return _ALIGNMENT_TOKEN.findall(text)


def labels_per_word(tokens: Iterable[Token], *, split_characters: bool) -> tuple[Labels, ...]:
    """The labels of every alignment token; the characters of a Chinese word share the labels of the word."""
    if split_characters:
        return tuple([_SHARED.setdefault(labels, labels) for text, labels in tokens for _ in text])
    return tuple([_SHARED.setdefault(labels, labels) for _, labels in tokens])


def align(source: Sequence[Labels], target: Sequence[Labels]) -> list[tuple[int, int]]:
    """All pairs of positions whose tokens share a label, sorted; `source` and `target` hold the labels per token."""
    positions: dict[str, list[int]] = {}
    for target_index, labels in enumerate(target):
        for label in labels:
            positions.setdefault(label, []).append(target_index)
    pairs = {
        (source_index, target_index)
        for source_index, labels in enumerate(source)
        for label in labels
        for target_index in positions.get(label, ())
    }
    return sorted(pairs)


def to_pharaoh(alignment: Iterable[tuple[int, int]]) -> str:
    """Format an alignment as in "0-0 1-2"."""
    return " ".join(f"{source}-{target}" for source, target in alignment)
