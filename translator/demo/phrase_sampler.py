"""Random noun phrases and adverbials that make sense."""

from dataclasses import replace

from translator.demo.dice import Dice
from translator.demo.lexicon_adjectives import ADJECTIVES
from translator.demo.lexicon_adverbials import (
    DISTANT_FUTURE_TIMES,
    DISTANT_PAST_TIMES,
    FUTURE_DAYS,
    FUTURE_TIMES,
    HABITUAL_TIMES,
    PAST_DAYS,
    PAST_TIMES,
    PLACES,
    RELATIONS,
    SEASONS,
)
from translator.demo.lexicon_entries import (
    Adjective,
    ChinesePattern,
    ClockTime,
    Gender,
    Noun,
    Place,
    TimePhrase,
    Verb,
)
from translator.demo.lexicon_nouns import COMMON_NOUNS, CONTAINERS, NAMES, PEOPLE, PROFESSIONS, RELATIVES
from translator.demo.lexicon_verbs import (
    ALL_VERBS,
    DITRANSITIVE_VERBS,
    PUT,
    RESIDING_VERBS,
    STATIVE_VERBS,
    TRANSITIVE_VERBS,
)
from translator.demo.syntax import (
    POSSESSIVE_DETERMINERS,
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
    Spot,
    Tense,
)

_INDEFINITE, _DEFINITE, _THIS, _MANY = (
    Determiner.INDEFINITE,
    Determiner.DEFINITE,
    Determiner.THIS,
    Determiner.MANY,
)


def _matching(kinds: tuple[str, ...]) -> tuple[Noun, ...]:
    return tuple(noun for noun in COMMON_NOUNS if any(kind in noun.kinds for kind in kinds))


def _key(verb: Verb) -> str:
    return verb.prefix + verb.german + verb.english


_VERBS_WITH_OBJECTS = (*TRANSITIVE_VERBS, *STATIVE_VERBS, *DITRANSITIVE_VERBS, PUT)
_OBJECTS = {_key(verb): _matching(verb.objects) for verb in _VERBS_WITH_OBJECTS}
_PLACES_BY_KINDS = {
    verb.places: tuple(place for place in PLACES if any(kind in place.kinds for kind in verb.places))
    for verb in ALL_VERBS
}
_ATTRIBUTES = {
    noun.english: tuple(
        adjective
        for adjective in ADJECTIVES
        if not adjective.predicative_only and any(kind in noun.kinds for kind in adjective.kinds)
    )
    for noun in COMMON_NOUNS
}
# Verbs whose object can be relativised without stranding a preposition or coverb.
_RELATIVE_VERBS = {
    noun.english: tuple(
        verb
        for verb in TRANSITIVE_VERBS
        if noun in _OBJECTS[_key(verb)] and not verb.german_preposition and verb.pattern is ChinesePattern.VERB_FIRST
    )
    for noun in COMMON_NOUNS
}
_CONTAINERS = {vessel.english: vessel for vessel in CONTAINERS}
FURNITURE = _matching(("furniture",))
_FAMILIAR_KINDS = ("opening", "switch", "room")  # "the door" rather than "a door"
_LIVES_IN = RESIDING_VERBS[0]
_MINUTES = ((0, 4.0), (30, 3.0), (15, 2.0), (45, 2.0), (10, 1.0), (20, 1.0))


def attributes(noun: Noun) -> tuple[Adjective, ...]:
    """Adjectives that can describe a noun."""
    return _ATTRIBUTES[noun.english]


def places_of(verb: Verb) -> tuple[Place, ...]:
    """Places a verb combines with, either as a location or as a goal."""
    return _PLACES_BY_KINDS[verb.places]


def _relative_verbs(head: Noun, outer: Verb | None) -> tuple[Verb, ...]:
    return tuple(verb for verb in _RELATIVE_VERBS[head.english] if verb is not outer)


def natural_gender(node: Nominal) -> Gender | None:
    """The gender of a single person, if it is known."""
    if isinstance(node, Named):
        return node.name.gender
    if isinstance(node, Pronoun):
        return {Person.HE: Gender.MASCULINE, Person.SHE: Gender.FEMININE}.get(node.person)
    if isinstance(node, NounPhrase) and not node.is_plural and node.noun.gender is not Gender.NEUTER:
        return node.noun.gender
    return None


def pronoun_for(node: Nominal) -> Pronoun | None:
    """An unambiguous pronoun that refers back to one or more people, if there is one."""
    if isinstance(node, Pronoun):
        return node
    if isinstance(node, Conjoined) or (isinstance(node, NounPhrase) and node.is_plural):
        return Pronoun(Person.THEY, feminine=_is_women_only(node))
    gender = natural_gender(node)
    if gender is None:
        return None
    return Pronoun(Person.SHE if gender is Gender.FEMININE else Person.HE)


def _is_women_only(node: Nominal) -> bool:
    if isinstance(node, Conjoined):
        return _is_women_only(node.first) and _is_women_only(node.second)
    if isinstance(node, NounPhrase):
        return node.noun.gender is Gender.FEMININE or node.noun.english == "girl"  # "Mädchen" is neuter
    return natural_gender(node) is Gender.FEMININE


class PhraseSampler:
    """Samples noun phrases and adverbials."""

    def __init__(self, dice: Dice) -> None:
        self._dice = dice

    def named(self) -> Named:
        """A person referred to by name."""
        return Named(self._dice.pick(NAMES))

    def relative_of_somebody(self) -> NounPhrase:
        """A member of somebody's family."""
        noun = self._dice.pick(RELATIVES)
        if self._dice.chance(0.5):
            return NounPhrase(noun, self._dice.pick(POSSESSIVE_DETERMINERS))
        return NounPhrase(noun, _DEFINITE, possessor=self._possessor())

    def _possessor(self) -> Nominal:
        return self.named() if self._dice.chance(0.7) else NounPhrase(self._dice.pick(PEOPLE), _DEFINITE)

    def person(self, *, relative: bool = False, counted: bool = True, plural: bool = True) -> NounPhrase:
        """A definite or counted person or group of people."""
        dice = self._dice
        noun = dice.pick(PEOPLE)
        adjective = dice.pick(attributes(noun)) if dice.chance(0.3) else None
        if counted and dice.chance(0.12):
            return NounPhrase(noun, _INDEFINITE, count=dice.number(2, 12), adjective=adjective)
        if relative and dice.chance(0.6):
            several = plural and dice.chance(0.2)
            return NounPhrase(noun, _DEFINITE, several, relative=self._relative_clause(noun))
        if "associate" in noun.kinds and dice.chance(0.4):
            return NounPhrase(noun, dice.pick(POSSESSIVE_DETERMINERS), plural and dice.chance(0.25))
        determiner = dice.weighted(((_DEFINITE, 3.0), (_THIS, 1.0)))
        return NounPhrase(noun, determiner, plural and dice.chance(0.25), adjective=adjective)

    def subject(self, *, relative: bool = False) -> Nominal:
        """One or more people as the subject of a clause."""
        sort = self._dice.weighted(
            (("name", 36.0), ("pronoun", 17.0), ("person", 30.0), ("relative", 9.0), ("pair", 8.0))
        )
        if sort == "name":
            return self.named()
        if sort == "pronoun":
            return Pronoun(self._dice.pick(tuple(Person)))
        if sort == "person":
            return self.person(relative=relative)
        return self.relative_of_somebody() if sort == "relative" else self.pair()

    def pair(self) -> Conjoined:
        """Two different people."""
        first, second = self.named(), self.named()
        while second == first:
            second = self.named()
        return Conjoined(first, second)

    def known_individual(self) -> Nominal:
        """One person whose gender is known."""
        sort = self._dice.weighted((("name", 7.0), ("pronoun", 2.0), ("relative", 2.0)))
        if sort == "name":
            return self.named()
        if sort == "pronoun":
            return Pronoun(self._dice.pick((Person.HE, Person.SHE)))
        return self.relative_of_somebody()

    def recipient(self) -> Nominal:
        """A definite recipient."""
        sort = self._dice.weighted((("name", 5.0), ("pronoun", 2.0), ("person", 3.0), ("relative", 2.0)))
        if sort == "name":
            return self.named()
        if sort == "pronoun":
            return Pronoun(self._dice.pick(tuple(Person)))
        return self.person(counted=False) if sort == "person" else self.relative_of_somebody()

    def object_of(self, verb: Verb, *, negated: bool = False, relative: bool = False) -> Nominal:
        """A suitable object of the verb."""
        dice = self._dice
        if "name" in verb.objects and dice.chance(0.45):
            return self.named() if dice.chance(0.7) else Pronoun(dice.pick((Person.HE, Person.SHE, Person.THEY)))
        noun = dice.pick(_OBJECTS[_key(verb)])
        if "relative" in noun.kinds:
            return self.relative_of_somebody()
        phrase = self._mass(noun, verb, negated) if noun.mass else self._countable(noun, verb, negated)
        plainly_definite = phrase.determiner is _DEFINITE and phrase.possessor is None
        if relative and plainly_definite and _relative_verbs(noun, verb) and dice.chance(0.8):
            return NounPhrase(noun, _DEFINITE, phrase.plural, relative=self._relative_clause(noun, outer=verb))
        if attributes(noun) and dice.chance(0.3):
            return replace(phrase, adjective=dice.pick(attributes(noun)))
        return phrase

    def _mass(self, noun: Noun, verb: Verb, negated: bool) -> NounPhrase:
        vessels = {"drink": ("cup", "glass", "bottle"), "order": ("cup", "glass", "bottle"), "buy": ("bottle",)}
        portioned = noun.container in vessels.get(verb.english, ()) and not negated
        if not portioned or self._dice.chance(0.4):
            return NounPhrase(noun)
        count = self._dice.number(2, 12) if self._dice.chance(0.35) else None
        return NounPhrase(noun, count=count, container=_CONTAINERS[noun.container])

    def _countable(self, noun: Noun, verb: Verb, negated: bool) -> NounPhrase:
        dice = self._dice
        if verb.generic_objects:
            options = [("the", 4.0), ("this", 2.0), ("my", 2.0)]
            if "person" not in noun.kinds:
                options.append(("plural", 4.0))
        elif verb.german_preposition or verb is PUT or any(kind in noun.kinds for kind in _FAMILIAR_KINDS):
            options = [("the", 5.0), ("this", 1.5), ("my", 2.5), ("possessor", 1.0)]
        elif verb.german == "haben":
            options = [("a", 5.0)] if negated else [("a", 4.0), ("count", 3.0), ("many", 2.0)]
        elif negated:
            options = [("a", 3.0), ("the", 4.0), ("this", 1.0), ("my", 1.0), ("plural", 1.0)]
        else:
            options = [("a", 30.0), ("the", 26.0), ("this", 7.0), ("my", 9.0), ("count", 14.0), ("many", 5.0)]
            options += [("the plural", 5.0), ("possessor", 6.0)]
        if "person" in noun.kinds and "associate" not in noun.kinds:  # "my man" would mean something else
            options = [option for option in options if option[0] not in ("my", "possessor")]
        return self._determined(noun, dice.weighted(options))

    def _determined(self, noun: Noun, sort: str) -> NounPhrase:
        dice = self._dice
        if sort == "my":
            return NounPhrase(noun, dice.pick(POSSESSIVE_DETERMINERS))
        if sort == "possessor":
            return NounPhrase(noun, _DEFINITE, possessor=self._possessor())
        if sort == "count":
            few = "person" in noun.kinds or dice.chance(0.5)
            return NounPhrase(noun, count=dice.number(2, 12) if few else dice.number(13, 99))
        determiner = {"a": _INDEFINITE, "the": _DEFINITE, "this": _THIS, "many": _MANY, "plural": _INDEFINITE}
        plural = sort in ("many", "plural", "the plural") or (sort == "this" and dice.chance(0.3))
        return NounPhrase(noun, determiner.get(sort, _DEFINITE), plural)

    def _relative_clause(self, head: Noun, outer: Verb | None = None) -> Clause:
        """A short relative clause that does not repeat the verb of the enclosing clause."""
        dice = self._dice
        if "person" not in head.kinds or dice.chance(0.4):
            agent = self.named() if dice.chance(0.6) else Pronoun(dice.pick(tuple(Person)))
            verb = dice.pick(_relative_verbs(head, outer))
            time = self.past_time(verb, clock=False) if dice.chance(0.3) else None
            return Clause(agent, Action(verb, Gap()), Tense.PAST, time=time)
        if dice.chance(0.3):
            return Clause(Gap(), Action(_LIVES_IN, goal=dice.pick(places_of(_LIVES_IN))))
        verb = dice.pick(TRANSITIVE_VERBS)
        return Clause(Gap(), Action(verb, self.object_of(verb)), Tense.PAST)

    def profession(self) -> Noun:
        return self._dice.pick(PROFESSIONS)

    def spot(self) -> Spot:
        """A position relative to a piece of furniture."""
        return Spot(self._dice.pick(RELATIONS), NounPhrase(self._dice.pick(FURNITURE), _DEFINITE))

    def clock(self) -> ClockTime:
        """A time of day."""
        return ClockTime(self._dice.number(1, 12), self._dice.weighted(_MINUTES))

    def past_time(self, verb: Verb | None = None, *, clock: bool = True) -> TimePhrase | DayTime:
        """When something happened."""
        if verb and verb.long_term and self._dice.chance(0.3):
            return self._dice.pick(DISTANT_PAST_TIMES)
        if clock and self._dice.chance(0.25):
            return DayTime(self.clock(), self._dice.pick(PAST_DAYS))
        return self._dice.pick(PAST_TIMES)

    def future_time(self, verb: Verb | None = None) -> TimePhrase | DayTime:
        """When something is going to happen."""
        if verb and verb.long_term and self._dice.chance(0.3):
            return self._dice.pick(DISTANT_FUTURE_TIMES)
        if self._dice.chance(0.25):
            return DayTime(self.clock(), self._dice.pick(FUTURE_DAYS))
        return self._dice.pick(FUTURE_TIMES)

    def habitual_time(self) -> TimePhrase | DayTime:
        """When something happens regularly."""
        sort = self._dice.weighted((("clock", 3.0), ("every", 5.0), ("season", 1.5)))
        if sort == "clock":
            return DayTime(self.clock(), HABITUAL_TIMES[0] if self._dice.chance(0.5) else None)
        return self._dice.pick(HABITUAL_TIMES if sort == "every" else SEASONS)
