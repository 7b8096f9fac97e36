"""Splitting text that is longer than a model was trained on: at sentences, else at clauses, words, or anywhere."""

import re
from collections.abc import Callable, Sequence

# One or several full stops, with the quotes and brackets that close after them. Latin ones must be followed by a space.
# A match begins at the first of several full stops only: a run of thousands without a space is then looked at once.
_SENTENCE_END = re.compile(r"(?<![.!?…])([.!?…]++[\"'”’»)\]]*+)\s++|[。！？]++[”’」』）》]*+\s*+")
_CLAUSE_END = re.compile(r"[,;:–—]\s+|[，；：、]\s*")
_WORD_END = re.compile(r"\s+")
# Full stops within a sentence: after a single letter and after the most common abbreviations.
_LONGEST_ABBREVIATION = 5  # characters, with the full stop
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\"'“‘«])(?:\w|Mr|Mrs|Ms|Dr|Prof|St|No|Nr|vs|etc|e\.g|i\.e|z\.\s?B|d\.\s?h|u\.\s?a|usw|bzw|ca|Hr|Fr|Abb|Fig|Vol|S)"
    r"\.$",
    re.IGNORECASE,
)

CountPieces = Callable[[Sequence[str]], list[int]]


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, without the spaces between them. A rule of thumb for European languages and CJK."""
    sentences, start = [], 0
    for match in _SENTENCE_END.finditer(text):
        latin_end = match.end(1)  # of full stops and quotes, before the space; -1 for Chinese and Japanese ones
        if latin_end >= 0:
            # Only as much as an abbreviation and what stands before it, so that the time does not grow with the text.
            last_word = text[max(start, latin_end - _LONGEST_ABBREVIATION - 1) : latin_end]
            if text[match.end() : match.end() + 1].islower() or _ABBREVIATION.search(last_word):
                continue
        sentences.append(text[start : match.end()])
        start = match.end()
    sentences.append(text[start:])
    return [sentence.strip() for sentence in sentences if sentence.strip()]


def stretches(text: str, max_pieces: int, count_pieces: CountPieces, *, by_sentence: bool) -> list[str]:
    """What is translated at once: sentences if asked for, else the whole text, in parts where it is too long."""
    found = split_sentences(text) if by_sentence else [text]
    return [part for one in found for part in fit(one, max_pieces, count_pieces)] if max_pieces > 0 else found


def fit(text: str, max_pieces: int, count_pieces: CountPieces) -> list[str]:
    """The text in parts of at most `max_pieces` pieces, split at the best places available; nothing is left out."""
    return _fit(text, max_pieces, count_pieces, [split_sentences, _split_after(_CLAUSE_END), _split_after(_WORD_END)])


def _split_after(pattern: re.Pattern[str]) -> Callable[[str], list[str]]:
    def split(text: str) -> list[str]:
        ends = [match.end() for match in pattern.finditer(text)]
        parts = [text[start:end].strip() for start, end in zip([0, *ends], [*ends, len(text)], strict=True)]
        return [part for part in parts if part]

    return split


def _fit(
    text: str, max_pieces: int, count_pieces: CountPieces, splitters: Sequence[Callable[[str], list[str]]]
) -> list[str]:
    if count_pieces([text])[0] <= max_pieces or len(text) <= 1:
        return [text]
    if not splitters:  # nowhere to split: in halves, until they fit
        middle = len(text) // 2
        halves = (text[:middle], text[middle:])
        return [part for half in halves for part in _fit(half, max_pieces, count_pieces, splitters)]
    splitter, *others = splitters
    units = splitter(text)
    if len(units) == 1:
        return _fit(text, max_pieces, count_pieces, others)
    counts = count_pieces(units)
    parts: list[str] = []
    start, total = 0, 0  # of the part being filled: where it begins in the text, and its pieces
    position = 0  # where the next unit is looked for
    for unit, count in zip(units, counts, strict=True):
        begin = text.index(unit, position)
        if total and total + count > max_pieces:
            parts.append(text[start:begin].strip())
            start, total = begin, 0
        if count > max_pieces:  # too long by itself
            parts += _fit(unit, max_pieces, count_pieces, others)
            start = begin + len(unit)
        else:
            total += count
        position = begin + len(unit)
    parts.append(text[start:].strip())
    return [part for part in parts if part]
