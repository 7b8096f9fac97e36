"""Long text in parts: split at the best places, without loss, and in time that does not explode."""

import random
import re
import time
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from translator.decoding.segments import fit, split_sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ('He said: "Go." She went.', ['He said: "Go."', "She went."]),
        ("Dr. Smith met Mr. Jones. They ate.", ["Dr. Smith met Mr. Jones.", "They ate."]),
        ("It cost 3.50 euros, e.g. today.", ["It cost 3.50 euros, e.g. today."]),
        ("J. S. Bach wrote it… and left.", ["J. S. Bach wrote it… and left."]),
        ("他来了。她走了！真的？", ["他来了。", "她走了！", "真的？"]),
        ("他说：“好。”然后走了。", ["他说：“好。”", "然后走了。"]),
        ("  ", []),
        ("no end", ["no end"]),
    ],
)
def test_sentences_are_found(text: str, sentences: list[str]) -> None:
    assert split_sentences(text) == sentences


def count_words(texts: Sequence[str]) -> list[int]:
    return [len(text.split()) for text in texts]


def count_characters(texts: Sequence[str]) -> list[int]:
    return [len(text) for text in texts]


def test_a_text_is_split_at_the_best_places_there_are() -> None:
    text = "One two three. Four five. Six seven, eight nine ten, eleven. Twelve"
    assert fit(text, 100, count_words) == [text]
    assert fit(text, 5, count_words) == [
        "One two three. Four five.",
        "Six seven, eight nine ten,",
        "eleven.",
        "Twelve",
    ]
    assert fit("a b c d e f g", 3, count_words) == ["a b c", "d e f", "g"]
    assert fit("abcdefgh", 3, count_characters) == ["ab", "cd", "ef", "gh"]
    assert fit("同一句话，没有空格，很长很长", 6, count_characters) == ["同一句话，", "没有空格，", "很长很长"]


@given(st.text(alphabet="ab. ,!。，\u00a0Ä", max_size=80), st.integers(1, 12))
@settings(max_examples=150, deadline=None)
def test_nothing_is_lost_and_no_part_is_too_long(text: str, limit: int) -> None:
    text = text.strip()
    parts = fit(text, limit, count_characters)
    assert "".join("".join(parts).split()) == "".join(text.split())
    if text:
        # Packing counts units without the spaces between them.
        assert all(len(part.replace(" ", "").replace("\u00a0", "")) <= limit for part in parts)


def sentences_by_whole_prefixes(text: str) -> list[str]:
    """What `split_sentences` must find, by looking at everything before each full stop: simple, but quadratic."""
    end = re.compile(r"[.!?…]+[\"'”’»)\]]*\s+|[。！？]+[”’」』）》]*\s*")
    abbreviation = re.compile(
        r"(?:^|[\s(\"'“‘«])"
        r"(?:\w|Mr|Mrs|Ms|Dr|Prof|St|No|Nr|vs|etc|e\.g|i\.e|z\.\s?B|d\.\s?h|u\.\s?a|usw|bzw|ca|Hr|Fr|Abb|Fig|Vol|S)"
        r"\.\s*$",
        re.IGNORECASE,
    )
    sentences, start = [], 0
    for match in end.finditer(text):
        following = text[match.end() : match.end() + 1]
        is_latin = match.group()[0] in ".!?…"
        if is_latin and (following.islower() or abbreviation.search(text[start : match.end()])):
            continue
        sentences.append(text[start : match.end()])
        start = match.end()
    return [sentence.strip() for sentence in [*sentences, text[start:]] if sentence.strip()]


def test_sentences_are_those_of_the_quadratic_definition() -> None:
    rng = random.Random(1)
    characters = ".!?… \n\u3000\"'”’»)](“‘«。！？」』）》,aBÄ狗"
    words = [
        "Mr",
        "Prof.",
        "prof",
        "e.g",
        "i.e.",
        "z.",
        "z.B",
        "B.",
        "d.",
        "h",
        "u.a",
        "etc.",
        "St",
        "usw",
        ". ",
        ".. ",
    ]
    parts = [*characters, *words]
    for _ in range(3_000):
        text = "".join(rng.choices(parts, k=rng.randrange(1, 40)))
        assert split_sentences(text) == sentences_by_whole_prefixes(text), text


@pytest.mark.parametrize("unit", [".", "a. ", "A. ", ". ", '!"', "Mr. a. ", "?' ", ", ", "x", "。", "e.g. "])
def test_the_time_does_not_explode_with_the_length(unit: str) -> None:
    text = unit * 100_000
    started = time.process_time()
    parts = fit(text.strip(), 200, count_characters)
    assert time.process_time() - started < 5
    assert "".join("".join(parts).split()) == "".join(text.split())
