"""Hand-written noun phrases, times and places of German and Chinese, apart from whole sentences."""

import pytest

from translator.demo import chinese, chinese_phrases, german, german_phrases
from translator.demo.alignment import Token
from translator.demo.lexicon import adjective, name, noun, place, verb
from translator.demo.lexicon_entries import Case, ClockTime
from translator.demo.syntax import (
    Action,
    Clause,
    Conjoined,
    DayTime,
    Determiner,
    Gap,
    Named,
    Nominal,
    NounPhrase,
    Person,
    Pronoun,
    Statement,
    Tense,
)

ANNA, PETER = Named(name("Anna")), Named(name("Peter"))
DOG, HOUSE = noun("dog"), noun("house")


def texts(tokens: list[Token]) -> str:
    return " ".join(token.text for token in tokens)


@pytest.mark.parametrize(
    ("node", "case", "german_text", "chinese_text"),
    [
        (NounPhrase(DOG, adjective=adjective("small")), Case.ACCUSATIVE, "einen kleinen Hund", "一 只 小 狗"),
        (NounPhrase(DOG, Determiner.DEFINITE, plural=True), Case.DATIVE, "den Hunden", "那 些 狗"),
        (NounPhrase(HOUSE, Determiner.MY), Case.NOMINATIVE, "mein Haus", "我的 房子"),
        (NounPhrase(HOUSE, Determiner.DEFINITE, possessor=ANNA), Case.ACCUSATIVE, "Annas Haus", "安娜 的 房子"),
        (NounPhrase(DOG, count=2), Case.NOMINATIVE, "zwei Hunde", "两 只 狗"),
        (Conjoined(ANNA, PETER), Case.DATIVE, "Anna und Peter", "安娜 和 彼得"),
        (Pronoun(Person.THEY, feminine=True), Case.ACCUSATIVE, "sie", "她们"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_noun_phrases(node: Nominal, case: Case, german_text: str, chinese_text: str) -> None:
    assert texts(german_phrases.nominal(node, "x", case)) == german_text
    assert texts(chinese.nominal(node, "x")) == chinese_text


@pytest.mark.parametrize(
    ("clock", "german_text", "chinese_text"),
    [
        (ClockTime(1, 0), "um ein Uhr", "一 点"),
        (ClockTime(12, 30), "um halb eins", "十二 点 半"),
        (ClockTime(2, 45), "um Viertel vor zwei", "差 一刻 两 点"),
        (ClockTime(7, 10), "um zehn nach sieben", "七 点 十分"),
    ],
)
def test_times_of_day(clock: ClockTime, german_text: str, chinese_text: str) -> None:
    time = DayTime(clock)
    assert texts(german_phrases.time_phrase(time, "x")) == german_text
    assert texts(chinese_phrases.time_phrase(time, "x")) == chinese_text


def test_a_relative_clause_about_its_subject_follows_the_demonstrative() -> None:
    def relative_clause(clause: Clause, path: str) -> list[Token]:
        assert path == "x.relative"
        return [Token("…")]

    of_subject, of_object = (Clause(subject, Action(verb("buy"))) for subject in (Gap(), ANNA))
    for clause, expected in ((of_subject, "那 座 … 的 房子"), (of_object, "… 的 那 座 房子")):
        node = NounPhrase(HOUSE, Determiner.DEFINITE, relative=clause)
        assert texts(chinese_phrases.nominal(node, "x", relative_clause)) == expected


def test_places_contract_the_article_and_direction_changes_the_case() -> None:
    assert texts(german_phrases.place_phrase(place("park"), "x", goal=False)) == "im Park"
    assert texts(german_phrases.place_phrase(place("park"), "x", goal=True)) == "in den Park"
    assert texts(chinese_phrases.location(place("park"), "x", lambda clause, path: [])) == "公园 里"


def test_sentences_are_linearised_in_their_own_order() -> None:
    sentence = Statement(Clause(ANNA, Action(verb("buy"), NounPhrase(HOUSE)), Tense.PAST))
    assert texts(german.linearise(sentence)) == "Anna hat ein Haus gekauft ."
    assert texts(chinese.linearise(sentence)) == "安娜 买 了 一 座 房子 。"
