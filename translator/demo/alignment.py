"""Tokens labelled with the nodes they realise, and the word alignments derived from the labels."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

Labels = tuple[str, ...]
# Labels repeat in every sentence; interning the tuples saves most of the memory of a corpus.
_SHARED: dict[Labels, Labels] = {}


class Token(NamedTuple):
    """A word or punctuation mark with the labels of the syntax nodes it realises."""

    text: str
    labels: Labels = ()


def labels_per_word(tokens: Iterable[Token], *, split_characters: bool) -> tuple[Labels, ...]:
    """The labels of each alignment token; all characters of a Chinese word have the labels of the word."""
    if split_characters:
        return tuple([_SHARED.setdefault(labels, labels) for text, labels in tokens for _ in text])
    return tuple([_SHARED.setdefault(labels, labels) for _, labels in tokens])


def align(source: Sequence[Labels], target: Sequence[Labels]) -> list[tuple[int, int]]:
    """Sorted pairs of positions whose tokens share a label; `source` and `target` are the labels of each token."""
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
    """An alignment in Pharaoh format: "0-0 1-2"."""
    return " ".join(f"{source}-{target}" for source, target in alignment)
