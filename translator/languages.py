"""The little that must be known of languages: which ones are written without spaces between words."""

CHINESE = frozenset({"zh", "zho", "chi", "cmn", "yue", "lzh", "wuu"})
JAPANESE = frozenset({"ja", "jpn"})
KOREAN = frozenset({"ko", "kor"})
SOUTHEAST_ASIAN = frozenset({"th", "tha", "lo", "lao", "km", "khm", "my", "mya", "bo", "bod"})
WITHOUT_SPACES = CHINESE | JAPANESE | SOUTHEAST_ASIAN


def language_subtag(code: str) -> str:
    """The language itself in a code such as zh, zh-CN, zh_Hans or zho_Hans."""
    return code.replace("_", "-").split("-")[0].lower()


def is_written_without_spaces(code: str) -> bool:
    return language_subtag(code) in WITHOUT_SPACES
