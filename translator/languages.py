"""Facts about languages: which are written without spaces, and what counts as a token in a word alignment."""

import re

CHINESE = frozenset({"zh", "zho", "chi", "cmn", "yue", "lzh", "wuu"})
JAPANESE = frozenset({"ja", "jpn"})
KOREAN = frozenset({"ko", "kor"})
SOUTHEAST_ASIAN = frozenset({"th", "tha", "lo", "lao", "km", "khm", "my", "mya", "bo", "bod"})
WITHOUT_SPACES = CHINESE | JAPANESE | SOUTHEAST_ASIAN

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
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


def alignment_tokens(text: str) -> list[str]:
    """Split raw text of any language into the tokens that alignment indices refer to.

    A run of letters and digits is one token, including inner apostrophes and hyphens ("o'clock", "twenty-one"); so is a
    number with inner points, commas and colons ("7:30"). Every CJK character and every punctuation mark is a separate
    token. White space separates tokens.
    """
    return _ALIGNMENT_TOKEN.findall(text)
