"""Types of lexicon entries: an entry is one concept with everything needed to inflect it in the three languages.

Entries are compared by identity, so that homographs such as the two verbs "go" remain distinct.
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
    """Lexical aspect; determines whether a verb takes the English progressive and Chinese 了."""

    ACTIVITY = "activity"
    STATE = "state"
    EVENT = "event"
    REACTION = "reaction"  # an involuntary activity, such as laughing
    ACCIDENT = "accident"  # an involuntary event, such as losing something


class ChinesePattern(Enum):
    """Word order of a Chinese verb and its objects."""

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
    german_oblique: str = ""  # singular in all cases but the nominative, for weak nouns
    german_genitive: str = ""  # genitive singular if it is not just "-s"
    german_feminine: str = ""  # feminine form of a profession
    container: str = ""  # English name of the container a drink is served in


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
    german_stem: str = ""  # stem before endings if it differs from the base form
    chinese_comparative: str = ""
    identifying: bool = False  # predicate is 是…的 (colours) instead of 很…
    predicative_only: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Verb:
    """A verb with its forms and the classes of objects and places it combines with.

    `german` is the infinitive without the separable prefix, which is in `prefix`; `german_participle`
    includes the prefix. The German past tense is the preterite if `german_preterite` is given, otherwise
    the perfect.
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
    moves: bool = False  # forms the perfect with "sein"
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
    """A location or destination, with its prepositions in each language."""

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
    """A means of transport: "by train"; `local` ones are not used between cities."""

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
    """Corresponding parts of a time expression; empty if a language has no counterpart."""

    english: str
    german: str
    chinese: str


@dataclass(frozen=True, slots=True, eq=False)
class TimePhrase:
    """A time adverbial whose segments have the same order in all three languages."""

    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class ClockTime:
    """A time of day on a twelve-hour clock; minutes are 0, 10, 15, 20, 30 or 45."""

    hour: int
    minute: int
