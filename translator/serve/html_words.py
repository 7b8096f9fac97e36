"""The words of a stretch of HTML and of its translation as characters of both texts, and which belong together."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from translator.languages import alignment_tokens
from translator.serve.html_source import Source, Span
from translator.serve.models import Candidate, WordLinks


class Words(NamedTuple):
    """Words or, where tags divide them, parts of words."""

    source: list[Span]
    target: list[Span]
    links: list[int]  # for each word of the target, one of the source


def link_units(source: Source, translation: Candidate) -> Words:
    """The model's own links; without them, or if its words are not those of the texts, proportional ones."""
    for links in (translation.links, _proportional(source.text, translation.text)):
        if links is not None:
            sources, targets = _located(links.source, source.text), _located(links.target, translation.text)
            if sources is not None and targets is not None:
                return _divided(source, translation.text, Words(sources, targets, links.links))
    raise AssertionError("the tokens of a text are in the text")


def _proportional(source: str, target: str) -> WordLinks:
    source_words, target_words = alignment_tokens(source), alignment_tokens(target)
    scale = len(source_words) / max(1, len(target_words))
    return WordLinks(source_words, target_words, [int((n + 0.5) * scale) for n in range(len(target_words))])


def _located(words: Sequence[str], text: str) -> list[Span] | None:
    """Where the words are in the text; None if it does not consist of them."""
    spans, end = [], 0
    for word in words:
        first = text.find(word, end)
        if first < 0 or text[end:first].strip():
            return None
        end = first + len(word)
        spans.append((first, end))
    return None if text[end:].strip() else spans


def _divided(source: Source, target: str, words: Words) -> Words:
    """A word with tags inside that is translated by itself, as in H<sub>2</sub>O, is divided on both sides."""
    cuts = sorted({end for mark in source.marks for end in mark.ends()})
    copied = [
        source.text[slice(*words.source[link])] == target[slice(*span)]
        for span, link in zip(words.target, words.links, strict=True)
    ]
    divisible = {link for link, is_copied in zip(words.links, copied, strict=True) if is_copied}
    sources: list[Span] = []
    first_part: list[int] = []  # of each word
    inner_cuts: list[list[int]] = []
    for number, (first, after) in enumerate(words.source):
        inside = [cut - first for cut in cuts if first < cut < after] if number in divisible else []
        first_part.append(len(sources))
        inner_cuts.append(inside)
        sources += _parts((first, after), inside)
    targets: list[Span] = []
    links: list[int] = []
    for span, link, is_copied in zip(words.target, words.links, copied, strict=True):
        parts = _parts(span, inner_cuts[link] if is_copied else [])
        targets += parts
        links += [first_part[link] + number for number in range(len(parts))]
    return Words(sources, targets, links)


def _parts(span: Span, cuts: Sequence[int]) -> list[Span]:
    ends = [span[0], *(span[0] + cut for cut in cuts), span[1]]
    return list(pairwise(ends))
