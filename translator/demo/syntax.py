"""Abstract syntax shared by the three languages: the meaning, without word order or inflection.

A linearisation walks a tree and labels every token with the path of the node it realises
("main.object.noun"); tokens of two languages are aligned if they share a label.
"""

from dataclasses import dataclass
from enum import Enum

from translator.demo.lexicon_entries import (
    Adjective,
    ClockTime,
    Frequency,
    Gender,
    Means,
    Modal,
    Name,
    Noun,
    Place,
    Relation,
    TimePhrase,
    Verb,
)


class Tense(Enum):
    """Tense; PROGRESSIVE is the present progressive."""

    PRESENT = "present"
    PROGRESSIVE = "progressive"
    PAST = "past"
    FUTURE = "future"


class Determiner(Enum):
    """Determiners; with plurals and mass nouns, INDEFINITE means no determiner."""

    INDEFINITE = "a"
    DEFINITE = "the"
    THIS = "this"
    MANY = "many"
    MY = "my"
    OUR = "our"
    HIS = "his"
    HER = "her"


POSSESSIVE_DETERMINERS = (Determiner.MY, Determiner.OUR, Determiner.HIS, Determiner.HER)


class Person(Enum):
    """Personal pronouns. There is no second person, because English "you" has several translations."""

    I = "I"  # noqa: E741
    HE = "he"
    SHE = "she"
    WE = "we"
    THEY = "they"


@dataclass(frozen=True, slots=True)
class Named:
    """A person referred to by name."""

    name: Name


@dataclass(frozen=True, slots=True)
class Pronoun:
    """A personal pronoun; `feminine` marks a "they" that refers only to women, a separate word in Chinese."""

    person: Person
    feminine: bool = False


@dataclass(frozen=True, slots=True)
class Expletive:
    """The empty subject of weather verbs."""


@dataclass(frozen=True, slots=True)
class Interrogative:
    """The noun phrase that a question asks for: who or what."""

    animate: bool


@dataclass(frozen=True, slots=True)
class Gap:
    """The empty noun phrase in a relative clause that refers to the head noun."""


@dataclass(frozen=True, slots=True)
class NounPhrase:
    """A common noun with its modifiers.

    A `count` or `possessor` replaces the determiner. A `container` makes a measure phrase
    ("two cups of coffee").
    """

    noun: Noun
    determiner: Determiner = Determiner.INDEFINITE
    plural: bool = False
    count: int | None = None
    adjective: Adjective | None = None
    container: Noun | None = None
    possessor: "Nominal | None" = None
    relative: "Clause | None" = None

    @property
    def is_plural(self) -> bool:
        """Whether the phrase as a whole is grammatically plural."""
        return self.plural or self.count is not None

    @property
    def is_bare_indefinite(self) -> bool:
        """Whether German negates this phrase with "kein" instead of "nicht"."""
        return self.determiner is Determiner.INDEFINITE and self.count is None and self.possessor is None


@dataclass(frozen=True, slots=True)
class Conjoined:
    """Two noun phrases joined by "and"."""

    first: "Nominal"
    second: "Nominal"


Nominal = Named | Pronoun | Expletive | Interrogative | Gap | NounPhrase | Conjoined


@dataclass(frozen=True, slots=True)
class Spot:
    """A position relative to a piece of furniture."""

    relation: Relation
    landmark: NounPhrase


@dataclass(frozen=True, slots=True)
class Action:
    """A full verb with its complements."""

    verb: Verb
    object: Nominal | None = None
    recipient: Nominal | None = None
    goal: Place | Spot | None = None
    means: Means | None = None


@dataclass(frozen=True, slots=True)
class Quality:
    """To be tired, old, red ..."""

    adjective: Adjective


@dataclass(frozen=True, slots=True)
class Comparison:
    """To be older, redder ... than somebody or something."""

    adjective: Adjective
    standard: Nominal


@dataclass(frozen=True, slots=True)
class Occupation:
    """To be a doctor, a teacher ...; `gender` is the natural gender of the subject."""

    noun: Noun
    gender: Gender


@dataclass(frozen=True, slots=True)
class Position:
    """To be somewhere; `where` is None in a question that asks for it."""

    where: Place | Spot | None


Predicate = Action | Quality | Comparison | Occupation | Position


@dataclass(frozen=True, slots=True)
class DayTime:
    """A time of day, optionally on a given day: "tomorrow at seven o'clock"."""

    clock: ClockTime
    day: TimePhrase | None = None


@dataclass(frozen=True, slots=True)
class Clause:
    """A predication with its tense, polarity and adverbials."""

    subject: Nominal
    predicate: Predicate
    tense: Tense = Tense.PRESENT
    negated: bool = False
    modal: Modal | None = None
    time: TimePhrase | DayTime | None = None
    time_first: bool = False
    frequency: Frequency | None = None
    place: Place | None = None


class Asked(Enum):
    """What a question asks for; NOTHING marks yes/no questions."""

    NOTHING = "whether"
    SUBJECT = "subject"
    OBJECT = "object"
    PLACE = "place"
    GOAL = "goal"
    TIME = "time"
    REASON = "reason"


class Link(Enum):
    """Conjunctions and complementisers that introduce a subordinate clause."""

    BECAUSE = "because"
    WHEN = "when"
    ALTHOUGH = "although"
    IF = "if"
    BEFORE = "before"
    THAT = "that"
    WHETHER = "whether"


class Conjunction(Enum):
    """Conjunctions of two main clauses."""

    AND = "and"
    BUT = "but"


@dataclass(frozen=True, slots=True)
class Statement:
    """A declarative main clause."""

    clause: Clause


@dataclass(frozen=True, slots=True)
class Question:
    """A question. Questioned subjects and objects are `Interrogative`s; other questioned slots are left empty."""

    clause: Clause
    asked: Asked


@dataclass(frozen=True, slots=True)
class Request:
    """A polite request to do something."""

    action: Action


@dataclass(frozen=True, slots=True)
class Complex:
    """A main clause with a subordinate clause."""

    main: Clause
    link: Link
    subordinate: Clause
    subordinate_first: bool = False


@dataclass(frozen=True, slots=True)
class Compound:
    """Two coordinated main clauses."""

    first: Clause
    conjunction: Conjunction
    second: Clause


Sentence = Statement | Question | Request | Complex | Compound


def grammatical_person(nominal: Nominal) -> Person:
    """Person and number of a noun phrase for verb agreement, as a pronoun."""
    if isinstance(nominal, Pronoun):
        return nominal.person
    if isinstance(nominal, Conjoined) or (isinstance(nominal, NounPhrase) and nominal.is_plural):
        return Person.THEY
    return Person.HE
