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
