import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.fake_models import ByteTokenizer, CopyModel
from translator.data.cleaning import Cleaning
from translator.data.normalization import is_blank, normalize_text
from translator.decoding.line_translator import LineTranslator


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain text.", "plain text."),
        ("", ""),
        (" \t ", ""),
        ("  two   spaces  ", "two spaces"),
        ("Gru\u0308\u00dfe", "Grüße"),
        ("A\u030a \u212b", "Å Å"),
        ("tab\tcarriage\rfeed\x0cnull\x00escape\x1b[0m", "tab carriage feed null escape [0m"),
        ("delete\x7fnext\x85line\x9fend", "delete next line end"),
        ("line\u2028paragraph\u2029end", "line paragraph end"),
        ("\ufeffmark in\ufeffside", "mark inside"),
        ("Donau\u00addampf\u00adschiff", "Donaudampfschiff"),
        ("u\u00ad\u0308ber", "über"),
        ("«\u00a0oui\u202f!\u00a0»", "« oui ! »"),
        ("日本\u3000語", "日本 語"),
        ("bar ▁▂▃", "bar ▂▃"),
        ("half \ud83d pair", "half \ufffd pair"),
    ],
)
def test_normalize_text(text: str, expected: str) -> None:
    assert normalize_text(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "👩‍👩‍👧‍👦 👍🏽 🏴󠁧󠁢󠁥󠁮󠁧󠁿 ❤️",  # joiners, skin tones, tags, variation selectors
        "می‌خواهم",  # Persian needs the zero-width non-joiner
        "क्‍ष",  # and Hindi the joiner
        "\u200fעברית\u200e and \u202bعربي\u202c",
        "ភាសា\u200bខ្មែរ",
        "ﬁ ２ ™ ½",  # NFKC would change these
        "q̣̇ ẛ̣",
    ],
)
def test_text_left_unchanged(text: str) -> None:
    assert normalize_text(text) == unicodedata.normalize("NFC", text)


any_text = st.text(
    st.one_of(
        st.characters(),  # lone surrogates too
        st.sampled_from("ae \u0308\u0301\u00ad\ufeff\u200d\u2028\u2581\x00\n\r\t\xa0\u3000\u1100\u1161\u0f71\u0f72"),
    )
)


@given(any_text)
def test_normalized_text_matches_its_description(text: str) -> None:
    result = normalize_text(text)
    assert normalize_text(result) == result
    assert unicodedata.is_normalized("NFC", result)
    assert not {"Cc", "Zl", "Zp", "Cs"} & {unicodedata.category(character) for character in result}
    assert not set(result) & set("\u00ad\ufeff\u2581")
    assert result.split(" ") == (result.split() or [""])
    result.encode()  # fails on lone surrogates


@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp", "Zs"], exclude_characters="\u00ad\ufeff▁")))
def test_visible_characters_are_kept(text: str) -> None:
    assert normalize_text(text) == unicodedata.normalize("NFC", text)


INVISIBLE = [
    "",
    " ",
    "\u200b",
    "\u200b \u200d",
    "\u2060",
    "\ufe0f",
    "\u3000",
    "\t\x00\x1b",
    "\ufeff",
    "\xad",
    "\u2581",
    "\u2028",
]


@pytest.mark.parametrize("text", INVISIBLE)
def test_invisible_text_is_blank_for_cleaning_and_for_translation(text: str) -> None:
    assert is_blank(text)
    assert is_blank(normalize_text(text))
    assert Cleaning().fault(normalize_text(text), "text") == "drop_blank"
    tokenizer = ByteTokenizer()
    translator = LineTranslator(CopyModel(tokenizer.target_vocab_size), tokenizer)
    blank, filled = translator.translate_fully([text, f"{text}x"])
    assert (blank.outputs[0].text, blank.num_source_pieces) == ("", 0)
    assert filled.num_source_pieces > 0


@pytest.mark.parametrize("text", [".", "a\u200b", "狗", "\u0301", "\ufffd", "0"])
def test_everything_else_is_text(text: str) -> None:
    assert not is_blank(text)
    assert Cleaning().fault(text, "another text") is None
