"""Word combinations that determine which split a sentence belongs to.

A hash of its words assigns each combination to a split, independently of the seed. Training sentences
contain only training combinations; every validation (test) sentence contains at least one combination
reserved for validation (test).
"""

import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

from translator.demo.lexicon_entries import Place, Verb
from translator.demo.syntax import (
    Action,
    Clause,
    Comparison,
    Complex,
    Compound,
    Conjoined,
    Named,
    Nominal,
    NounPhrase,
    Occupation,
    Quality,
    Request,
    Sentence,
)

VALID_SHARE = 0.05
TEST_SHARE = 0.05


class Combination(NamedTuple):
    """Two words in a relation, such as a verb and its object."""

    relation: str
    first: str
    second: str


@cache
def split_of(combination: Combination) -> str:
    """The split a combination is reserved for: "train", "valid" or "test"."""
    digest = hashlib.sha256("|".join(combination).encode()).digest()
    position = int.from_bytes(digest[:8], "big") / 2**64
    if position < VALID_SHARE:
        return "valid"
    return "test" if position < VALID_SHARE + TEST_SHARE else "train"


def split_of_all(combinations: Iterable[Combination]) -> str | None:
    """The split of a sentence with these combinations, or None if it mixes validation and test combinations."""
    reserved = {split_of(combination) for combination in combinations} - {"train"}
    if len(reserved) > 1:
        return None
    return reserved.pop() if reserved else "train"


def combinations_of(sentence: Sentence) -> tuple[Combination, ...]:
    """All combinations in a sentence."""
    if isinstance(sentence, Request):
        return tuple(_of_action(sentence.action))
    if isinstance(sentence, Complex):
        return (*_of_clause(sentence.main), *_of_clause(sentence.subordinate))
    if isinstance(sentence, Compound):
        return (*_of_clause(sentence.first), *_of_clause(sentence.second))
    return tuple(_of_clause(sentence.clause))


def _verb_name(verb: Verb) -> str:
    """The German infinitive, because English has several verbs "go"."""
    return verb.prefix + verb.german


def _of_clause(clause: Clause) -> Iterator[Combination]:
    predicate, subject = clause.predicate, clause.subject
    yield from _of_nominal(subject)
    if isinstance(predicate, Action):
        yield from _of_action(predicate)
        if clause.place:
            yield Combination("verb-place", _verb_name(predicate.verb), clause.place.english)
    elif isinstance(predicate, Quality | Comparison):
        if isinstance(subject, NounPhrase):
            yield Combination("adjective-noun", predicate.adjective.english, subject.noun.english)
        elif isinstance(subject, Named):
            yield Combination("adjective-noun", predicate.adjective.english, subject.name.english)
        if isinstance(predicate, Comparison):
            yield from _of_nominal(predicate.standard)
    elif isinstance(predicate, Occupation):
        if isinstance(subject, Named):
            yield Combination("name-profession", subject.name.english, predicate.noun.english)
        elif isinstance(subject, NounPhrase):
            yield Combination("name-profession", subject.noun.english, predicate.noun.english)


def _of_action(action: Action) -> Iterator[Combination]:
    verb = _verb_name(action.verb)
    if action.object:
        for word in _heads(action.object):
            yield Combination("verb-object", verb, word)
        yield from _of_nominal(action.object)
    if action.recipient:
        yield from _of_nominal(action.recipient)
    if isinstance(action.goal, Place):
        yield Combination("verb-place", verb, action.goal.english)


def _of_nominal(node: Nominal) -> Iterator[Combination]:
    if not isinstance(node, NounPhrase):
        return
    if node.adjective:
        yield Combination("adjective-noun", node.adjective.english, node.noun.english)
    if node.relative:
        yield from _of_relative(node, node.relative)


def _of_relative(head: NounPhrase, clause: Clause) -> Iterator[Combination]:
    """An object relative clause combines its verb with the head noun."""
    yield from _of_clause(clause)
    predicate = clause.predicate
    if isinstance(predicate, Action) and predicate.object is not None and not _heads(predicate.object):
        yield Combination("verb-object", _verb_name(predicate.verb), head.noun.english)


def _heads(node: Nominal) -> tuple[str, ...]:
    if isinstance(node, NounPhrase):
        return (node.noun.english,)
    if isinstance(node, Named):
        return (node.name.english,)
    if isinstance(node, Conjoined):
        return (*_heads(node.first), *_heads(node.second))
    return ()
