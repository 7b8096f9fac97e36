"""The samplers: fair dice, phrases that fit together, and every sort of sentence."""

from collections import Counter

import pytest

from translator.demo.clause_sampler import ClauseSampler
from translator.demo.dice import Dice
from translator.demo.lexicon import name, noun
from translator.demo.lexicon_entries import Aspect, Gender
from translator.demo.phrase_sampler import PhraseSampler, attributes, natural_gender, places_of, pronoun_for
from translator.demo.sentence_sampler import SentenceSampler
from translator.demo.syntax import (
    Complex,
    Compound,
    Conjoined,
    Determiner,
    Named,
    NounPhrase,
    Person,
    Pronoun,
    Question,
    Request,
    Statement,
    Tense,
)

ANNA, MARIA, PETER = (Named(name(spelling)) for spelling in ("Anna", "Maria", "Peter"))
NUM_DRAWS = 20_000


def test_dice_are_fair_and_repeatable() -> None:
    dice = Dice(3)
    picks = Counter(dice.pick("abcd") for _ in range(NUM_DRAWS))
    weighted = Counter(dice.weighted((("a", 1.0), ("b", 0.0), ("c", 4.0))) for _ in range(NUM_DRAWS))
    numbers = Counter(dice.number(2, 4) for _ in range(NUM_DRAWS))
    assert {option: count / NUM_DRAWS for option, count in picks.items()} == pytest.approx(
        dict.fromkeys("abcd", 0.25), abs=0.02
    )
    assert weighted.keys() == {"a", "c"}
    assert weighted["c"] / NUM_DRAWS == pytest.approx(0.8, abs=0.02)
    assert {number: count / NUM_DRAWS for number, count in numbers.items()} == pytest.approx(
        dict.fromkeys((2, 3, 4), 1 / 3), abs=0.02
    )
    assert sum(dice.chance(0.3) for _ in range(NUM_DRAWS)) / NUM_DRAWS == pytest.approx(0.3, abs=0.02)
    assert [Dice(7).number(1, 1000) for _ in range(3)] == [Dice(7).number(1, 1000)] * 3


def test_pronouns_refer_back_by_gender_and_number() -> None:
    the_girl = NounPhrase(noun("girl"), Determiner.DEFINITE)
    assert pronoun_for(ANNA) == Pronoun(Person.SHE)
    assert pronoun_for(PETER) == Pronoun(Person.HE)
    assert pronoun_for(Conjoined(ANNA, MARIA)) == Pronoun(Person.THEY, feminine=True)
    assert pronoun_for(Conjoined(ANNA, PETER)) == Pronoun(Person.THEY)
    assert pronoun_for(the_girl) is None, '"das Mädchen" is "es" or "sie"'
    assert natural_gender(Pronoun(Person.SHE)) is Gender.FEMININE
    assert natural_gender(Pronoun(Person.I)) is None


def test_phrases_are_made_of_what_fits() -> None:
    phrases = PhraseSampler(Dice(1))
    for _ in range(500):
        person = phrases.person()
        assert person.adjective is None or person.adjective in attributes(person.noun)
        pair = phrases.pair()
        assert pair.first != pair.second
        assert natural_gender(phrases.known_individual()) is not None


def test_clauses_suit_their_verbs() -> None:
    dice = Dice(2)
    clauses = ClauseSampler(dice, PhraseSampler(dice))
    for _ in range(500):
        assert clauses.verb(planned=True).aspect not in (Aspect.STATE, Aspect.REACTION, Aspect.ACCIDENT)
        verb = clauses.verb()
        setting = clauses.setting(verb)
        if verb.aspect in (Aspect.STATE, Aspect.EVENT, Aspect.ACCIDENT):
            assert setting.tense is not Tense.PROGRESSIVE
        clause = clauses.clause(ANNA, verb, setting)
        assert (clause.subject, clause.tense, clause.negated) == (ANNA, setting.tense, setting.negated)
        assert clause.place is None or clause.place in places_of(verb)


def test_every_sort_of_sentence_is_drawn_and_the_seed_decides() -> None:
    sampler, again, other = SentenceSampler(5), SentenceSampler(5), SentenceSampler(6)
    sentences = [sampler.sentence() for _ in range(300)]
    assert {type(sentence) for sentence in sentences} == {Statement, Question, Request, Complex, Compound}
    assert sentences == [again.sentence() for _ in range(300)]
    assert sentences != [other.sentence() for _ in range(300)]
