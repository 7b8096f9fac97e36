"""The shape of a lexicon entry: one concept with everything the three languages need to inflect it.

Entries are compared by identity: each exists once, and homographs such as the two verbs "go" stay apart.
"""

from dataclasses import dataclass
from enum import Enum


class Gender(Enum):
    """Grammatical gender of German nouns, and natural gender of people."""

    MASCULINE = "m"
    FEMININE = "f"
    NEUTER = "n"


class Case(Enum):
    """German cases."""

    NOMINATIVE = "nominative"
    ACCUSATIVE = "accusative"
    DATIVE = "dative"
    GENITIVE = "genitive"


class Aspect(Enum):
    """How a verb describes time; decides on the English progressive and on Chinese 了."""

    ACTIVITY = "activity"
    STATE = "state"
    EVENT = "event"
    REACTION = "reaction"  # an involuntary activity, such as laughing
    ACCIDENT = "accident"  # an involuntary event, such as losing something


class ChinesePattern(Enum):
    """Where a Chinese verb takes its objects."""

    VERB_FIRST = "V (recipient) object"
    COVERB = "coverb (recipient or object) V (object)"
    DISPOSAL = "把 object V place"


@dataclass(frozen=True, slots=True, eq=False)
class Noun:
    """A common noun; `kinds` are the selectional classes it belongs to."""

    english: str
    english_plural: str
    german: str
    gender: Gender
    german_plural: str
    chinese: str
    measure: str
    kinds: tuple[str, ...]
    mass: bool = False
    german_oblique: str = ""  # singular outside the nominative, for nouns of the weak declension
    german_genitive: str = ""  # genitive singular where it is not simply "-s"
    german_feminine: str = ""  # a woman of this profession
    container: str = ""  # English name of the vessel that portions a drink


@dataclass(frozen=True, slots=True, eq=False)
class Name:
    """A person's given name."""

    english: str
    german: str
    chinese: str
    gender: Gender


@dataclass(frozen=True, slots=True, eq=False)
class Adjective:
    """An adjective; `kinds` are the noun classes it can describe."""

    english: str
    english_comparative: str
    german: str
    german_comparative: str
    chinese_attribute: str
    chinese_predicate: str
    kinds: tuple[str, ...]
    german_stem: str = ""  # stem before endings where it differs from the base form
    chinese_comparative: str = ""
    identifying: bool = False  # predicate is 是…的 (colours) instead of 很…
    predicative_only: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Verb:
    """A verb with its forms and the classes of subject, object, recipient and place it goes with.

    `german` is the infinitive without the separable prefix, which is given in `prefix`;
    `german_participle` is complete. A verb with a `german_preterite` uses it as its past tense,
    all others form the perfect.
    """

    english: str
    english_past: str
    german: str
    german_third: str
    german_participle: str
    chinese: str
    objects: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    aspect: Aspect = Aspect.ACTIVITY
    english_ing: str = ""
    english_particle: str = ""
    english_preposition: str = ""
    prefix: str = ""
    moves: bool = False  # perfect with sein
    german_first: str = ""
    german_plural: str = ""
    german_preterite: str = ""
    german_preposition: str = ""
    object_case: Case = Case.ACCUSATIVE
    pattern: ChinesePattern = ChinesePattern.VERB_FIRST
    coverb: str = ""
    goal_is_location: bool = False  # "live in", "arrive at": the place is a complement but not a direction
    needs_means: bool = False  # "go by train"
    long_term: bool = False  # can be dated by month or year
    generic_objects: bool = False  # "like", "love": no indefinite singular object


@dataclass(frozen=True, slots=True, eq=False)
class Modal:
    """A modal verb; `english_infix` is "to" for the semi-modals that need do-support."""

    english: str
    english_third: str
    english_past: str
    english_infix: str
    german: str
    german_third: str
    german_preterite: str
    chinese: str
    chinese_negative: str
    chinese_past_negative: str


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Somewhere to be or to go, with the prepositions each language uses."""

    english: str
    english_location: str
    german: str
    gender: Gender
    german_location: str
    german_goal: str
    german_goal_case: Case
    chinese: str
    chinese_suffix: str
    kinds: tuple[str, ...]
    english_goal: str = "to"
    article: bool = True
    chinese_motion: str = "去"


@dataclass(frozen=True, slots=True, eq=False)
class Relation:
    """A spatial relation to a piece of furniture: "under the table"."""

    english: str
    german: str
    chinese: str


@dataclass(frozen=True, slots=True, eq=False)
class Means:
    """A means of transport: "by train"; some are not for journeys between cities."""

    english: str
    german: str
    gender: Gender
    chinese_verb: str
    chinese: str
    local: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Frequency:
    """A frequency adverb."""

    english: str
    german: str
    chinese: str


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Corresponding pieces of a time expression; an empty piece has no counterpart in that language."""

    english: str
    german: str
    chinese: str


@dataclass(frozen=True, slots=True, eq=False)
class TimePhrase:
    """A time adverbial whose pieces come in the same order in all three languages."""

    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class ClockTime:
    """A time of day on a twelve-hour clock; minutes are 0, 10, 15, 20, 30 or 45."""

    hour: int
    minute: int
