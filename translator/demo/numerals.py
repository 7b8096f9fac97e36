"""Number words from zero to ninety-nine."""

# fmt: off
_ENGLISH_SMALL = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)
_ENGLISH_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_GERMAN_SMALL = (
    "null", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf", "zwölf",
    "dreizehn", "vierzehn", "fünfzehn", "sechzehn", "siebzehn", "achtzehn", "neunzehn",
)
_GERMAN_TENS = ("zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig")
# fmt: on
_CHINESE_DIGITS = "零一二三四五六七八九"


def _check(number: int) -> None:
    if not 0 <= number <= 99:
        raise ValueError(f"number={number} is out of range: number words exist for 0 to 99")


def english_number(number: int) -> str:
    """The English cardinal: 21 is "twenty-one"."""
    _check(number)
    if number < 20:
        return _ENGLISH_SMALL[number]
    tens, ones = divmod(number, 10)
    word = _ENGLISH_TENS[tens - 2]
    return f"{word}-{_ENGLISH_SMALL[ones]}" if ones else word


def german_number(number: int) -> str:
    """The German cardinal, ones before tens: 21 is "einundzwanzig"."""
    _check(number)
    if number < 20:
        return _GERMAN_SMALL[number]
    tens, ones = divmod(number, 10)
    word = _GERMAN_TENS[tens - 2]
    if not ones:
        return word
    return f"{'ein' if ones == 1 else _GERMAN_SMALL[ones]}und{word}"


def chinese_number(number: int, *, before_measure_word: bool = False) -> str:
    """The Chinese cardinal; a plain two is 两 before a measure word and 二 elsewhere."""
    _check(number)
    if number == 2 and before_measure_word:
        return "两"
    tens, ones = divmod(number, 10)
    if not tens:
        return _CHINESE_DIGITS[ones]
    return ("" if tens == 1 else _CHINESE_DIGITS[tens]) + "十" + (_CHINESE_DIGITS[ones] if ones else "")
