"""Facts about languages: which are written without spaces, and what counts as a token in a word alignment."""

import re
from collections.abc import Iterable

CHINESE = frozenset({"zh", "zho", "chi", "cmn", "yue", "lzh", "wuu"})
JAPANESE = frozenset({"ja", "jpn"})
KOREAN = frozenset({"ko", "kor"})
SOUTHEAST_ASIAN = frozenset({"th", "tha", "lo", "lao", "km", "khm", "my", "mya", "bo", "bod"})
WITHOUT_SPACES = CHINESE | JAPANESE | SOUTHEAST_ASIAN

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_UNSPACED = rf"{_CJK}\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff"  # CJK, Thai, Lao, Tibetan, Burmese, Khmer
_WITHOUT_SPACES = re.compile(rf"[{_UNSPACED}]")
_PART_OF_WORD = rf"[^\W{_UNSPACED}]"  # a letter or digit of a script in which spaces separate words
_LETTERS = rf"(?:[^\W_{_CJK}]+[\u0300-\u036f]*)+"  # including combining accents
_ALIGNMENT_TOKEN = re.compile(
    rf"[{_CJK}]"  # a Chinese character (or kana) is a token
    rf"|\d+(?:[.,:]\d+)+"  # 7:30 and 3.5
    rf"|{_LETTERS}(?:['’-]{_LETTERS})*"  # words with inner apostrophes and hyphens
    rf"|\S"  # any other visible character
)


def language_subtag(code: str) -> str:
    """The language subtag of a code such as zh, zh-CN, zh_Hans or zho_Hans."""
    return code.replace("_", "-").split("-")[0].lower()


def is_written_without_spaces(code: str) -> bool:
    return language_subtag(code) in WITHOUT_SPACES


def looks_written_without_spaces(texts: Iterable[str]) -> bool:
    """The same judged by the script of most letters, for texts whose language is not known."""
    num_unspaced = num_letters = 0
    for text in texts:
        num_unspaced += len(_WITHOUT_SPACES.findall(text))
        num_letters += sum(map(str.isalpha, text))
    return 2 * num_unspaced > num_letters


def is_part_of_word(character: str) -> bool:
    """Whether it is a letter or a digit of a script in which spaces separate words."""
    return re.fullmatch(_PART_OF_WORD, character) is not None


def whole_word(text: str) -> str:
    """A regular expression for the text where it is not part of a longer word, in scripts that have spaces."""
    before = rf"(?<!{_PART_OF_WORD})" if is_part_of_word(text[0]) else ""
    after = rf"(?!{_PART_OF_WORD})" if is_part_of_word(text[-1]) else ""
    return before + re.escape(text) + after


def sentence_length(text: str, *, in_characters: bool) -> int:
    """In words between spaces or, for a language without them, in characters."""
    words = text.split()
    return sum(map(len, words)) if in_characters else len(words)


def alignment_tokens(text: str) -> list[str]:
    """Split raw text of any language into the tokens that alignment indices refer to.

    A run of letters and digits is one token, including inner apostrophes and hyphens ("o'clock", "twenty-one"); so is a
    number with inner points, commas and colons ("7:30"). Every CJK character and every punctuation mark is a separate
    token. White space separates tokens.
    """
    return _ALIGNMENT_TOKEN.findall(text)
