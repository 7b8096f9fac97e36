"""Lexicon lookup by English form."""

from translator.demo.lexicon_adjectives import ADJECTIVES, STATES
from translator.demo.lexicon_adverbials import FREQUENCIES, MEANS, PLACES
from translator.demo.lexicon_entries import Adjective, Frequency, Means, Name, Noun, Place, Verb
from translator.demo.lexicon_nouns import COMMON_NOUNS, NAMES
from translator.demo.lexicon_verbs import ALL_VERBS

_NOUNS = {noun.english: noun for noun in COMMON_NOUNS}
_NAMES = {name.english: name for name in NAMES}
_PLACES = {place.english: place for place in PLACES}
_MEANS = {means.english: means for means in MEANS}
_FREQUENCIES = {frequency.english: frequency for frequency in FREQUENCIES}


def noun(english: str) -> Noun:
    """The common noun with this singular form."""
    return _NOUNS[english]


def name(english: str) -> Name:
    return _NAMES[english]


def place(english: str) -> Place:
    return _PLACES[english]


def means(english: str) -> Means:
    return _MEANS[english]


def frequency(english: str) -> Frequency:
    return _FREQUENCIES[english]


def verb(english: str, german: str = "") -> Verb:
    """The verb with this English form ("turn on"); the German infinitive distinguishes homographs."""
    for entry in ALL_VERBS:
        matches = f"{entry.english} {entry.english_particle}".strip() == english
        if matches and german in ("", entry.prefix + entry.german):
            return entry
    raise KeyError((english, german))


def adjective(english: str, kind: str = "") -> Adjective:
    """The adjective; a noun class distinguishes homographs (people and things are "old" in different ways)."""
    for entry in (*ADJECTIVES, *STATES):
        if entry.english == english and (not kind or kind in entry.kinds):
            return entry
    raise KeyError((english, kind))
