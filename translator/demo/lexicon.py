"""Look words up by their English form."""

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
    """The common noun with this singular."""
    return _NOUNS[english]


def name(english: str) -> Name:
    """The given name."""
    return _NAMES[english]


def place(english: str) -> Place:
    """The place."""
    return _PLACES[english]


def means(english: str) -> Means:
    """The means of transport."""
    return _MEANS[english]


def frequency(english: str) -> Frequency:
    """The frequency adverb."""
    return _FREQUENCIES[english]


def verb(english: str, german: str = "") -> Verb:
    """The verb with this English form ("turn on"); the German infinitive tells homographs apart."""
    for entry in ALL_VERBS:
        matches = f"{entry.english} {entry.english_particle}".strip() == english
        if matches and german in ("", entry.prefix + entry.german):
            return entry
    raise KeyError((english, german))


def adjective(english: str, kind: str = "") -> Adjective:
    """The adjective; a noun class tells homographs apart ("old" of people and of things)."""
    for entry in (*ADJECTIVES, *STATES):
        if entry.english == english and (not kind or kind in entry.kinds):
            return entry
    raise KeyError((english, kind))
