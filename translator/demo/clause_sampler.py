"""Random clauses that make sense: verbs with suitable subjects, objects, places, tenses and adverbials."""

from dataclasses import replace
from typing import NamedTuple

from translator.demo.dice import Dice
from translator.demo.lexicon_adjectives import ADJECTIVES, STATES
from translator.demo.lexicon_adverbials import FREQUENCIES, MEANS, ON
from translator.demo.lexicon_entries import Aspect, Frequency, Modal, Noun, Place, TimePhrase, Verb
from translator.demo.lexicon_nouns import ANIMALS, COMMON_NOUNS
from translator.demo.lexicon_verbs import (
    CAN,
    DITRANSITIVE_VERBS,
    INTRANSITIVE_VERBS,
    MODALS,
    MOTION_VERBS,
    MUST,
    PUT,
    RESIDING_VERBS,
    STATIVE_VERBS,
    TRANSITIVE_VERBS,
    WANT,
    WEATHER_VERBS,
)
from translator.demo.phrase_sampler import FURNITURE, PhraseSampler, attributes, natural_gender, places_of
from translator.demo.syntax import (
    Action,
    Clause,
    Comparison,
    DayTime,
    Determiner,
    Expletive,
    Nominal,
    NounPhrase,
    Occupation,
    Person,
    Position,
    Pronoun,
    Quality,
    Spot,
    Tense,
)

_VERB_GROUPS: tuple[tuple[tuple[Verb, ...], float], ...] = (
    (TRANSITIVE_VERBS, 46.0),
    (INTRANSITIVE_VERBS, 11.0),
    (DITRANSITIVE_VERBS, 14.0),
    (MOTION_VERBS, 13.0),
    (RESIDING_VERBS, 6.0),
    ((PUT,), 4.0),
    (STATIVE_VERBS, 9.0),
)
_UNPLANNED = (Aspect.STATE, Aspect.REACTION, Aspect.ACCIDENT)
_ERRAND_PARTICIPLES = ("geschlafen", "gearbeitet", "gekocht", "eingekauft")
_ERRANDS: tuple[tuple[tuple[Verb, ...], float], ...] = (
    (tuple(verb for verb in INTRANSITIVE_VERBS if verb.german_participle in _ERRAND_PARTICIPLES), 5.0),
    (MOTION_VERBS, 6.0),
)


class Setting(NamedTuple):
    """Tense, modality, adverbials and polarity of a clause."""

    tense: Tense
    modal: Modal | None = None
    frequency: Frequency | None = None
    time: TimePhrase | DayTime | None = None
    negated: bool = False


_SETTINGS: dict[Aspect, tuple[tuple[str, float], ...]] = {
    Aspect.ACTIVITY: (("past", 38.0), ("progressive", 15.0), ("habit", 20.0), ("future", 12.0), ("modal", 15.0)),
    Aspect.EVENT: (("past", 55.0), ("habit", 10.0), ("future", 17.0), ("modal", 18.0)),
    Aspect.REACTION: (("past", 5.0), ("progressive", 2.0), ("habit", 2.0)),
    Aspect.ACCIDENT: (("past", 8.0), ("future", 1.0)),
    Aspect.STATE: (("present", 70.0), ("past", 30.0)),
}
_PERSONAL = tuple(adjective for adjective in ADJECTIVES if {"person", "adult"} & set(adjective.kinds))
_THINGS = tuple(
    noun for noun in COMMON_NOUNS if not noun.mass and not {"person", "relative"} & set(noun.kinds) and attributes(noun)
)
_LONG_DISTANCE_MEANS = tuple(means for means in MEANS if not means.local)
_PETS = tuple(noun for noun in ANIMALS if "pet" in noun.kinds)
_MOVABLE = tuple(noun for noun in COMMON_NOUNS if {"pet", "small", "flat"} & set(noun.kinds))
_PUBLIC_PLACES = tuple(
    dict.fromkeys(place for verb in (*INTRANSITIVE_VERBS, *TRANSITIVE_VERBS) for place in places_of(verb))
)
_APPETITES = {"hungry": ("essen", "bestellen", "backen", "kochen"), "thirsty": ("trinken", "bestellen")}


class ClauseSampler:
    """Samples clauses."""

    def __init__(self, dice: Dice, phrases: PhraseSampler) -> None:
        self._dice = dice
        self._phrases = phrases

    def verb(self, *, planned: bool = False) -> Verb:
        """Any full verb; `planned` excludes states and involuntary actions."""
        while True:
            verb = self._dice.pick(self._dice.weighted(_VERB_GROUPS))
            if not planned or verb.aspect not in _UNPLANNED:
                return verb

    def errand(self) -> Verb:
        """A verb without an object for something people set out to do."""
        return self._dice.pick(self._dice.weighted(_ERRANDS))

    def setting(self, verb: Verb) -> Setting:
        """A setting that suits the verb."""
        sort = self._dice.weighted(_SETTINGS[verb.aspect])
        if sort == "past":
            return self.past(verb)
        if sort == "future":
            return self.future(verb)
        if sort == "modal":
            return self.with_modal(verb)
        if sort == "habit":
            return (
                self.habit() if not verb.objects or verb.prefix or verb.aspect is Aspect.ACTIVITY else self.past(verb)
            )
        tense = Tense.PROGRESSIVE if sort == "progressive" else Tense.PRESENT
        return Setting(tense, negated=self._dice.chance(0.15))

    def past(self, verb: Verb) -> Setting:
        """Past tense, usually with a time."""
        time = None
        if self._dice.chance(0.65) and (verb.aspect is not Aspect.STATE or verb.long_term):
            time = self._phrases.past_time(verb, clock=verb.aspect not in (Aspect.REACTION, Aspect.STATE))
        return Setting(Tense.PAST, time=time, negated=self._dice.chance(0.13))

    def future(self, verb: Verb) -> Setting:
        """Future tense, usually with a time."""
        time = self._phrases.future_time(verb) if self._dice.chance(0.7) else None
        return Setting(Tense.FUTURE, time=time, negated=self._dice.chance(0.12))

    def habit(self) -> Setting:
        """A habit: the English simple present needs a time or a frequency to sound natural."""
        if self._dice.chance(0.2):
            return Setting(Tense.PRESENT, negated=True)
        if self._dice.chance(0.5):
            return Setting(Tense.PRESENT, frequency=self._dice.pick(FREQUENCIES))
        return Setting(Tense.PRESENT, time=self._phrases.habitual_time())

    def with_modal(self, verb: Verb) -> Setting:
        """A modal verb; only some have a past tense, and "could" sounds natural only when negated."""
        negated = self._dice.chance(0.25)
        if self._dice.chance(0.3):
            modal = self._dice.pick((MUST, WANT, CAN) if negated else (MUST, WANT))
            time = self._phrases.past_time(verb) if self._dice.chance(0.5) else None
            return Setting(Tense.PAST, modal, time=time, negated=negated)
        time = self._phrases.future_time(verb) if self._dice.chance(0.5) else None
        return Setting(Tense.PRESENT, self._dice.pick(MODALS), time=time, negated=negated)

    def clause(
        self,
        subject: Nominal,
        verb: Verb | None = None,
        setting: Setting | None = None,
        *,
        relative: bool = False,
        object_: Nominal | None = None,
    ) -> Clause:
        """A clause with a full verb; arguments that are left out are sampled."""
        verb = verb or self.verb()
        setting = setting or self.setting(verb)
        action, place = self._action(verb, setting, relative, object_)
        if _is_reflexive(subject, action):
            action = replace(action, recipient=self._phrases.named())
        # A time after a final relative clause would seem to belong to it, so it comes first.
        ends_in_relative = isinstance(action.object, NounPhrase) and action.object.relative is not None
        time_first = ends_in_relative and setting.time is not None
        return Clause(
            subject,
            action,
            setting.tense,
            setting.negated,
            setting.modal,
            setting.time,
            time_first,
            frequency=setting.frequency,
            place=place,
        )

    def _action(
        self, verb: Verb, setting: Setting, relative: bool, object_: Nominal | None
    ) -> tuple[Action, Place | None]:
        dice, phrases = self._dice, self._phrases
        if verb is PUT:
            target = object_ or phrases.object_of(verb)
            return Action(verb, target, goal=Spot(ON, NounPhrase(dice.pick(FURNITURE), Determiner.DEFINITE))), None
        if verb in MOTION_VERBS:
            goal = dice.pick(places_of(verb))
            means = dice.pick(_LONG_DISTANCE_MEANS if "city" in goal.kinds else MEANS) if verb.needs_means else None
            return Action(verb, goal=goal, means=means), None
        if verb in RESIDING_VERBS:
            return Action(verb, goal=dice.pick(places_of(verb))), None
        recipient = phrases.recipient() if verb in DITRANSITIVE_VERBS else None
        if object_ is None and verb.objects:
            object_ = phrases.object_of(verb, negated=setting.negated, relative=relative)
        places = places_of(verb)
        # After a relative clause or "not", the attachment of a place would be ambiguous.
        unclear = setting.negated or (isinstance(object_, NounPhrase) and object_.relative)
        located = places and not unclear and setting.frequency is None and dice.chance(0.4)
        return Action(verb, object_, recipient), dice.pick(places) if located else None

    def occupation(self, subject: Nominal | None = None) -> Clause:
        """Somebody has a profession."""
        holder = subject or self._phrases.known_individual()
        gender = natural_gender(holder)
        if gender is None:
            holder = self._phrases.named()
            gender = holder.name.gender
        tense = Tense.PAST if self._dice.chance(0.2) else Tense.PRESENT
        return Clause(holder, Occupation(self._phrases.profession(), gender), tense, self._dice.chance(0.15))

    def state(self, subject: Nominal, tense: Tense, beside: Clause | None = None) -> Clause:
        """Somebody is tired, happy ...; if `beside` is an action, hungry and thirsty only go with food and drink."""
        states = STATES
        if beside and isinstance(beside.predicate, Action):
            verb = beside.predicate.verb
            states = tuple(state for state in STATES if verb.german in _APPETITES.get(state.english, (verb.german,)))
        return Clause(subject, Quality(self._dice.pick(states)), tense)

    def quality(self) -> Clause:
        """A description of a person, animal or thing."""
        dice = self._dice
        negated = dice.chance(0.15)
        sort = dice.weighted((("thing", 5.0), ("person", 3.0), ("state", 4.0)))
        if sort == "state":
            subject = self._phrases.subject()
            tense = dice.weighted(((Tense.PRESENT, 5.0), (Tense.PAST, 3.0), (Tense.FUTURE, 1.0)))
            time = self._phrases.past_time(clock=False) if tense is Tense.PAST else None
            return Clause(subject, Quality(dice.pick(STATES)), tense, negated, time=time)
        if sort == "person":
            subject = _undescribed(self._phrases.subject(relative=True))
            fitting = attributes(subject.noun) if isinstance(subject, NounPhrase) else _PERSONAL
            return Clause(subject, Quality(dice.pick(fitting or _PERSONAL)), Tense.PRESENT, negated)
        noun = dice.pick(_THINGS)
        return Clause(self._thing(noun), Quality(dice.pick(attributes(noun))), Tense.PRESENT, negated)

    def _thing(self, noun: Noun) -> NounPhrase:
        phrase = self._phrases.object_of(PUT)
        while not isinstance(phrase, NounPhrase):
            phrase = self._phrases.object_of(PUT)
        return NounPhrase(noun, phrase.determiner, phrase.plural, possessor=phrase.possessor)

    def comparison(self) -> Clause:
        """A comparison of two people or of two things of the same kind."""
        dice = self._dice
        if dice.chance(0.5):
            pair = self._phrases.pair()
            return Clause(pair.first, Comparison(dice.pick(_PERSONAL), pair.second))
        first = dice.pick(_THINGS)
        adjective = dice.pick(
            tuple(adjective for adjective in attributes(first) if not adjective.identifying) or _PERSONAL
        )
        rivals = tuple(
            noun
            for noun in _THINGS
            if noun is not first and noun.kinds[0] == first.kinds[0] and adjective in attributes(noun)
        )
        if not rivals or (adjective in _PERSONAL and "animal" not in first.kinds):
            return self.comparison()
        standard = NounPhrase(dice.pick(rivals), Determiner.DEFINITE)
        return Clause(NounPhrase(first, Determiner.DEFINITE), Comparison(adjective, standard))

    def position(self) -> Clause:
        """Somebody or something is somewhere."""
        dice = self._dice
        tense = Tense.PAST if dice.chance(0.35) else Tense.PRESENT
        negated = dice.chance(0.12)
        if dice.chance(0.4):
            time = self._phrases.past_time() if tense is Tense.PAST else None
            subject = self._phrases.subject()
            return Clause(subject, Position(dice.pick(_PUBLIC_PLACES)), tense, negated, time=time)
        return Clause(self._thing(dice.pick(_MOVABLE)), Position(self._phrases.spot()), tense, negated)

    def animal(self) -> Clause:
        """An animal sleeps somewhere."""
        sleep = INTRANSITIVE_VERBS[0]
        return self.clause(self._thing(self._dice.pick(_PETS)), sleep)

    def weather(self, setting: Setting) -> Clause:
        """It rains or snows."""
        return Clause(
            Expletive(), Action(self._dice.pick(WEATHER_VERBS)), setting.tense, setting.negated, time=setting.time
        )

    def obligation(self, subject: Nominal, tense: Tense) -> Clause:
        """Somebody has to or wants to do something."""
        modal = self._dice.pick((MUST, WANT))
        return self.clause(subject, self.errand(), Setting(tense, modal))


def _is_reflexive(subject: Nominal, action: Action) -> bool:
    """Whether subject and recipient are both first person, which would require a reflexive pronoun."""
    first_person = (Pronoun(Person.I), Pronoun(Person.WE))
    return subject in first_person and action.recipient in first_person


def _undescribed(subject: Nominal) -> Nominal:
    """The subject without its adjective, so that it is not described twice."""
    if isinstance(subject, NounPhrase) and subject.adjective:
        return NounPhrase(subject.noun, subject.determiner, subject.plural, subject.count, possessor=subject.possessor)
    return subject
