"""Inflection, number words, times of day and alignment tokens, checked against hand-written forms."""

import pytest

from translator.demo.alignment import align, to_pharaoh
from translator.demo.english import indefinite_article, ing_form, third_person
from translator.demo.generator import realise
from translator.demo.german_forms import (
    Declension,
    adjective_ending,
    contraction,
    definite_article,
    der_word,
    ein_word,
    modal_present,
    noun_form,
    present,
    preterite,
    relative_pronoun,
)
from translator.demo.lexicon import name, noun, verb
from translator.demo.lexicon_entries import Case, ClockTime, Gender
from translator.demo.lexicon_nouns import COMMON_NOUNS, NAMES
from translator.demo.lexicon_verbs import ALL_VERBS, MAY, SHOULD
from translator.demo.numerals import chinese_number, english_number, german_number
from translator.demo.syntax import Action, Clause, DayTime, Named, Person, Statement
from translator.languages import alignment_tokens

COLUMNS = [(Gender.MASCULINE, False), (Gender.FEMININE, False), (Gender.NEUTER, False), (Gender.NEUTER, True)]
NOMINATIVE, ACCUSATIVE, DATIVE, GENITIVE = CASES = tuple(Case)


def test_articles() -> None:
    expected = ["der die das die", "den die das die", "dem der dem den", "des der des der"]
    assert [" ".join(definite_article(*column, case) for column in COLUMNS) for case in CASES] == expected
    expected = ["dieser diese dieses diese", "diesen diese dieses diese", "diesem dieser diesem diesen"]
    assert [" ".join(der_word("dies", *column, case) for column in COLUMNS) for case in CASES[:3]] == expected
    expected = ["kein keine kein keine", "keinen keine kein keine", "keinem keiner keinem keinen"]
    assert [" ".join(ein_word("kein", *column, case) for column in COLUMNS) for case in CASES[:3]] == expected
    assert relative_pronoun(Gender.FEMININE, True, DATIVE) == "denen"
    assert ein_word("unser", Gender.FEMININE, False, DATIVE) == "unserer"


@pytest.mark.parametrize(
    ("declension", "expected"),
    [
        (Declension.WEAK, ["gute gute gute guten", "guten gute gute guten", "guten guten guten guten"]),
        (Declension.MIXED, ["guter gute gutes guten", "guten gute gutes guten", "guten guten guten guten"]),
        (Declension.STRONG, ["guter gute gutes gute", "guten gute gutes gute", "gutem guter gutem guten"]),
    ],
)
def test_adjective_endings(declension: Declension, expected: list[str]) -> None:
    forms = [" ".join("gut" + adjective_ending(declension, *column, case) for column in COLUMNS) for case in CASES[:3]]
    assert forms == expected
    genitive = [adjective_ending(declension, *column, GENITIVE) for column in COLUMNS]
    assert genitive == (["en", "er", "en", "er"] if declension is Declension.STRONG else ["en"] * 4)


@pytest.mark.parametrize(
    ("english", "plural", "case", "expected"),
    [
        ("student", False, NOMINATIVE, "Student"),
        ("student", False, ACCUSATIVE, "Studenten"),
        ("boy", False, DATIVE, "Jungen"),
        ("neighbor", False, GENITIVE, "Nachbarn"),
        ("doctor", False, GENITIVE, "Arztes"),
        ("teacher", False, GENITIVE, "Lehrers"),
        ("woman", False, GENITIVE, "Frau"),
        ("child", True, DATIVE, "Kindern"),
        ("doctor", True, DATIVE, "Ärzten"),
        ("photo", True, DATIVE, "Fotos"),
        ("woman", True, DATIVE, "Frauen"),
        ("window", True, ACCUSATIVE, "Fenster"),
    ],
)
def test_noun_forms(english: str, plural: bool, case: Case, expected: str) -> None:
    assert noun_form(noun(english), plural, case) == expected


def test_german_verbs() -> None:
    assert [present(verb("read"), person) for person in Person] == ["lese", "liest", "liest", "lesen", "lesen"]
    assert [present(verb("be"), person) for person in Person] == ["bin", "ist", "ist", "sind", "sind"]
    assert present(verb("feed"), Person.I) == "füttere"
    assert present(verb("know", "wissen"), Person.I) == "weiß"
    assert [preterite("war", person) for person in (Person.I, Person.WE)] == ["war", "waren"]
    assert [preterite("musste", person) for person in (Person.HE, Person.THEY)] == ["musste", "mussten"]
    assert [modal_present(MAY, person) for person in (Person.I, Person.WE)] == ["darf", "dürfen"]
    assert [modal_present(SHOULD, person) for person in (Person.SHE, Person.THEY)] == ["sollte", "sollten"]
    assert contraction("in", "dem") == "im"
    assert contraction("zu", "der") == "zur"
    assert contraction("auf", "dem") is None


def test_participles_of_prefixed_verbs() -> None:
    for entry in ALL_VERBS:
        assert entry.german_participle.startswith(entry.prefix)
        if entry.german.endswith("ieren"):
            assert not entry.german_participle.removeprefix(entry.prefix).startswith("ge")


def test_english_forms() -> None:
    assert [third_person(verb(word)) for word in ("go shopping", "cry", "play", "watch", "have", "look for")] == [
        "goes", "cries", "plays", "watches", "has", "looks for",
    ]  # fmt: skip
    assert [ing_form(verb(word)) for word in ("write", "swim", "get up", "see", "look for")] == [
        "writing", "swimming", "getting", "seeing", "looking for",
    ]  # fmt: skip
    assert [indefinite_article(word) for word in ("apple", "umbrella", "house", "old")] == ["an", "an", "a", "an"]


@pytest.mark.parametrize(
    ("number", "english", "german", "chinese"),
    [
        (0, "zero", "null", "零"),
        (1, "one", "eins", "一"),
        (2, "two", "zwei", "二"),
        (10, "ten", "zehn", "十"),
        (12, "twelve", "zwölf", "十二"),
        (16, "sixteen", "sechzehn", "十六"),
        (17, "seventeen", "siebzehn", "十七"),
        (20, "twenty", "zwanzig", "二十"),
        (21, "twenty-one", "einundzwanzig", "二十一"),
        (30, "thirty", "dreißig", "三十"),
        (47, "forty-seven", "siebenundvierzig", "四十七"),
        (66, "sixty-six", "sechsundsechzig", "六十六"),
        (70, "seventy", "siebzig", "七十"),
        (99, "ninety-nine", "neunundneunzig", "九十九"),
    ],
)
def test_numbers(number: int, english: str, german: str, chinese: str) -> None:
    assert (english_number(number), german_number(number), chinese_number(number)) == (english, german, chinese)


def test_two_before_measure_words_and_number_range() -> None:
    assert chinese_number(2, before_measure_word=True) == "两"
    assert chinese_number(12, before_measure_word=True) == "十二"
    with pytest.raises(ValueError, match="number=100"):
        german_number(100)


@pytest.mark.parametrize(
    ("hour", "minute", "english", "german", "chinese"),
    [
        (7, 0, "at seven o'clock", "um sieben Uhr", "七点"),
        (1, 0, "at one o'clock", "um ein Uhr", "一点"),
        (2, 0, "at two o'clock", "um zwei Uhr", "两点"),
        (7, 30, "at half past seven", "um halb acht", "七点半"),
        (12, 30, "at half past twelve", "um halb eins", "十二点半"),
        (4, 15, "at a quarter past four", "um Viertel nach vier", "四点一刻"),
        (8, 45, "at a quarter to eight", "um Viertel vor acht", "差一刻八点"),
        (1, 10, "at ten past one", "um zehn nach eins", "一点十分"),
        (6, 20, "at twenty past six", "um zwanzig nach sechs", "六点二十分"),
    ],
)
def test_times_of_day(hour: int, minute: int, english: str, german: str, chinese: str) -> None:
    clause = Clause(Named(name("Anna")), Action(verb("work")), time=DayTime(ClockTime(hour, minute)))
    text = realise(Statement(clause)).text
    assert text == {"en": f"Anna works {english}.", "de": f"Anna arbeitet {german}.", "zh": f"安娜{chinese}工作。"}


def test_lexicon_is_consistent() -> None:
    for entry in COMMON_NOUNS:
        assert entry.german[0].isupper()
        assert entry.mass or (entry.german_plural and entry.english_plural and entry.measure)
    assert all(not entry.german.endswith(("s", "ß", "x", "z")) for entry in NAMES)
    assert len({entry.english for entry in COMMON_NOUNS}) == len(COMMON_NOUNS) >= 100
    assert len(ALL_VERBS) >= 60


def test_alignment_tokens() -> None:
    assert alignment_tokens("Anna's twenty-one keys, at 7:30!") == [
        "Anna's",
        "twenty-one",
        "keys",
        ",",
        "at",
        "7:30",
        "!",
    ]
    assert alignment_tokens("安娜买了3本书。") == ["安", "娜", "买", "了", "3", "本", "书", "。"]
    assert alignment_tokens("  Schöne Grüße – o'clock ") == ["Schöne", "Grüße", "–", "o'clock"]
    assert alignment_tokens("cafe\u0301 a_b") == ["cafe\u0301", "a", "_", "b"]
    assert alignment_tokens("") == []


def test_align_and_format() -> None:
    source, target = [("x",), (), ("y", "z")], [("z",), ("x", "y")]
    assert align(source, target) == [(0, 1), (2, 0), (2, 1)]
    assert to_pharaoh(align(source, target)) == "0-1 2-0 2-1"
