"""The form in which all text reaches the tokenizer, in training and in translation."""

import unicodedata

SENTENCEPIECE_SPACE = "\u2581"

_TO_SPACE = [*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029]
_TO_NOTHING = [0xAD, 0xFEFF]
_SURROGATES = range(0xD800, 0xE000)
# Spaces and format characters that nobody sees when they stand alone.
_INVISIBLE = "".join(
    chr(code)
    for code in (
        *_TO_SPACE,
        *_TO_NOTHING,
        *(0x20, 0xA0, 0x034F, 0x061C, 0x1680, 0x180E, 0x205F, ord(SENTENCEPIECE_SPACE), 0x3000),
        *range(0x2000, 0x2010),
        *range(0x202A, 0x2030),
        *range(0x2060, 0x2070),
        *range(0xFE00, 0xFE10),
    )
)
_REPLACEMENTS: dict[int, str] = {
    **dict.fromkeys(_TO_SPACE, " "),
    **dict.fromkeys(_TO_NOTHING, ""),
    **dict.fromkeys(_SURROGATES, "\ufffd"),
}


def normalize_text(text: str) -> str:
    """The form in which all text reaches the tokenizer, in training and in translation. Idempotent.

    - Unicode NFC: a letter and its combining mark become one character if there is one.
    - Control characters (C0, DEL, C1: tabs, line ends, escape codes, NUL) and U+2028/U+2029 become spaces.
    - Soft hyphens (U+00AD) and zero-width no-break spaces (U+FEFF, stray byte-order marks) are removed.
    - Lone surrogates, which are not characters, become U+FFFD.
    - U+2581, which SentencePiece writes for a space and could not restore, becomes a space.
    - Every run of white space of any kind (no-break and ideographic too) becomes one space, and none is left at either
      end. SentencePiece by default does the same with plain spaces.
    - Everything else stays: joiners (U+200C, U+200D) and variation selectors, without which emoji, Persian and Indic
      text would change, direction marks, zero-width spaces (word boundaries in Khmer and Thai), full-width letters.
    """
    if not text.isprintable():  # a quick test that skips most sentences: no replaced character is printable
        text = text.translate(_REPLACEMENTS)
    if not text.isascii():
        text = unicodedata.normalize("NFC", text.replace(SENTENCEPIECE_SPACE, " "))
    return " ".join(text.split())


def is_blank(text: str) -> bool:
    """Whether the text has no visible character, normalised or not.

    Cleaning drops blank training text, so a model has never seen any, and translation leaves blank lines blank.
    """
    return not text.strip(_INVISIBLE)
