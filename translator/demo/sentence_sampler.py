"""Random sentences: statements, questions, requests and combinations of clauses."""

from dataclasses import replace

from translator.demo.clause_sampler import ClauseSampler, Setting
from translator.demo.dice import Dice
from translator.demo.lexicon_entries import Aspect, Verb
from translator.demo.lexicon_verbs import (
    DITRANSITIVE_VERBS,
    INTRANSITIVE_VERBS,
    KNOW_THAT,
    MOTION_VERBS,
    REPORTING_VERBS,
    RESIDING_VERBS,
    STATIVE_VERBS,
    TRANSITIVE_VERBS,
)
from translator.demo.phrase_sampler import PhraseSampler, pronoun_for
from translator.demo.syntax import (
    Action,
    Asked,
    Clause,
    Complex,
    Compound,
    Conjoined,
    Conjunction,
    DayTime,
    Interrogative,
    Link,
    Nominal,
    Position,
    Question,
    Request,
    Sentence,
    Statement,
    Tense,
)

_QUESTIONABLE_VERBS = tuple(verb for verb in TRANSITIVE_VERBS if not verb.german_preposition)
_LOCATED_VERBS = tuple(verb for verb in (*INTRANSITIVE_VERBS, *TRANSITIVE_VERBS) if verb.places)
_REQUESTED_VERBS = tuple(
    verb
    for verb in (*TRANSITIVE_VERBS, *DITRANSITIVE_VERBS)
    if verb.english in ("open", "close", "turn", "buy", "repair", "clean", "wash", "bring", "show", "give", "answer")
)
_ARRIVALS = (
    *(verb for verb in INTRANSITIVE_VERBS if verb.prefix in ("zurück", "auf")),
    *(verb for verb in TRANSITIVE_VERBS if verb.english in ("see", "call", "visit")),
    *(verb for verb in RESIDING_VERBS if verb.english == "arrive"),
)
# What people do before they go somewhere.
_PREPARATIONS = tuple(
    verb
    for verb in TRANSITIVE_VERBS
    if verb.english
    in ("eat", "drink", "read", "write", "buy", "wash", "clean", "feed", "watch", "call", "talk", "help")
)
_PASTIMES = (
    *(verb for verb in INTRANSITIVE_VERBS if verb.english in ("dance", "sing", "cook", "play", "sleep")),
    *(verb for verb in TRANSITIVE_VERBS if verb.english in ("eat", "drink", "read", "watch", "call", "talk", "visit")),
)
# What people do when something happens.
_RESPONSES = (
    *(verb for verb in INTRANSITIVE_VERBS if verb.english in ("laugh", "cry", "smile", "sing", "dance", "cook")),
    *(
        verb
        for verb in TRANSITIVE_VERBS
        if verb.english in ("eat", "drink", "read", "buy", "call", "order", "open", "thank")
    ),
)


class SentenceSampler:
    """Samples sentences; everything is drawn from one seeded generator."""

    def __init__(self, seed: int) -> None:
        self._dice = Dice(seed)
        self._phrases = PhraseSampler(self._dice)
        self._clauses = ClauseSampler(self._dice, self._phrases)
        self._sorts = (
            (self._statement, 41.0),
            (self._yes_no_question, 8.0),
            (self._open_question, 9.0),
            (self._request, 2.0),
            (self._reason_or_concession, 12.0),
            (self._occasion, 7.0),
            (self._condition, 5.0),
            (self._sequence, 3.0),
            (self._report, 9.0),
            (self._compound, 8.0),
        )

    def sentence(self) -> Sentence:
        """A random sentence."""
        return self._dice.weighted(self._sorts)()

    def _main_clause(self, *, relative: bool = True) -> Clause:
        clauses = self._clauses
        sort = self._dice.weighted(
            (
                ("action", 70.0),
                ("occupation", 8.0),
                ("quality", 11.0),
                ("comparison", 4.0),
                ("position", 6.0),
                ("other", 3.0),
            )
        )
        if sort == "action":
            of_subject = relative and self._dice.chance(0.5)  # at most one relative clause per sentence
            return clauses.clause(self._phrases.subject(relative=of_subject), relative=relative and not of_subject)
        if sort == "occupation":
            return clauses.occupation()
        if sort == "quality":
            return clauses.quality()
        if sort == "comparison":
            return clauses.comparison()
        if sort == "position":
            return clauses.position()
        if self._dice.chance(0.6):
            return clauses.animal()
        past = self._dice.chance(0.6)
        time = self._phrases.past_time() if past else self._phrases.future_time()
        return clauses.weather(
            Setting(Tense.PAST if past else Tense.FUTURE, time=time, negated=self._dice.chance(0.15))
        )

    def _statement(self) -> Sentence:
        clause = self._main_clause()
        if clause.time and self._dice.chance(0.4):
            clause = replace(clause, time_first=True)
        return Statement(clause)

    def _yes_no_question(self) -> Sentence:
        clause = self._main_clause(relative=False)
        return Question(replace(clause, negated=False), Asked.NOTHING)

    def _open_question(self) -> Sentence:
        sort = self._dice.weighted(
            (("subject", 4.0), ("object", 4.0), ("place", 3.0), ("goal", 2.0), ("time", 2.0), ("reason", 2.0))
        )
        if sort == "subject":
            return Question(replace(self._clauses.clause(Interrogative(True)), negated=False), Asked.SUBJECT)
        if sort == "object":
            return self._object_question()
        if sort == "place":
            return self._place_question()
        if sort == "goal":
            clause = self._affirmative(self._dice.pick(MOTION_VERBS))
            assert isinstance(clause.predicate, Action)
            return Question(replace(clause, predicate=replace(clause.predicate, goal=None)), Asked.GOAL)
        if sort == "time":
            setting = Setting(self._dice.pick((Tense.PAST, Tense.FUTURE)))
            verb = self._clauses.verb(planned=True)
            return Question(self._clauses.clause(self._phrases.subject(), verb, setting), Asked.TIME)
        verb = self._clauses.verb(planned=self._dice.chance(0.5))
        time = self._phrases.past_time(verb, clock=False) if self._dice.chance(0.4) else None
        return Question(
            self._clauses.clause(self._phrases.subject(), verb, Setting(Tense.PAST, time=time)), Asked.REASON
        )

    def _affirmative(self, verb: Verb, object_: Nominal | None = None) -> Clause:
        """An affirmative clause, not progressive, which would clash with a question about a place."""
        setting = self._clauses.setting(verb)
        if setting.tense is Tense.PROGRESSIVE or setting.negated:
            setting = Setting(Tense.PAST)
        return self._clauses.clause(self._phrases.subject(), verb, setting, object_=object_)

    def _object_question(self) -> Sentence:
        verb = self._dice.pick(_QUESTIONABLE_VERBS)
        animate = "name" in verb.objects
        return Question(self._affirmative(verb, Interrogative(animate)), Asked.OBJECT)

    def _place_question(self) -> Sentence:
        if self._dice.chance(0.2):
            return Question(replace(self._clauses.position(), predicate=Position(None), negated=False), Asked.PLACE)
        if self._dice.chance(0.3):
            verb = self._dice.pick(RESIDING_VERBS)
            setting = Setting(Tense.PRESENT if verb.aspect is Aspect.STATE else Tense.PAST)
            return Question(Clause(self._phrases.subject(), Action(verb), setting.tense), Asked.PLACE)
        return Question(replace(self._affirmative(self._dice.pick(_LOCATED_VERBS)), place=None), Asked.PLACE)

    def _request(self) -> Sentence:
        verb = self._dice.pick(_REQUESTED_VERBS)
        recipient = self._phrases.recipient() if verb in DITRANSITIVE_VERBS else None
        return Request(Action(verb, self._phrases.object_of(verb), recipient))

    def _back_reference(self, subject: Nominal) -> Nominal:
        return pronoun_for(subject) or self._phrases.named()

    def _subjects(self, subordinate_first: bool) -> tuple[Nominal, Nominal]:
        """Subjects of main and subordinate clause; the later clause refers back to the subject of the earlier one."""
        first = self._phrases.subject()
        second = self._back_reference(first)
        return (second, first) if subordinate_first else (first, second)

    def _circumstance(self, subject: Nominal, tense: Tense, main: Clause, *, ongoing: bool = False) -> Clause:
        """A reason or condition: a state, the weather, or something somebody has to or wants to do."""
        sort = self._dice.weighted((("state", 5.0), ("weather", 2.0), ("obligation", 4.0)))
        if sort == "state":
            return self._clauses.state(subject, tense, main)
        if sort == "weather":
            return self._clauses.weather(Setting(Tense.PROGRESSIVE if ongoing else tense))
        return self._clauses.obligation(subject, tense)

    def _introduced(self, main: Clause, link: Link, subordinate: Clause, subordinate_first: bool) -> Complex:
        """A complex sentence; after an initial weather clause, the main clause has nobody to refer back to."""
        if subordinate_first and not isinstance(subordinate.subject, type(main.subject)) and _is_weather(subordinate):
            main = replace(main, subject=self._phrases.subject())
        return Complex(main, link, subordinate, subordinate_first)

    def _reason_or_concession(self) -> Sentence:
        link = Link.BECAUSE if self._dice.chance(0.65) else Link.ALTHOUGH
        subordinate_first = self._dice.chance(0.4)
        subject, reason_subject = self._subjects(subordinate_first)
        verb = self._clauses.verb(planned=True)
        if self._dice.chance(0.7):
            main = self._clauses.clause(subject, verb, self._clauses.past(verb))
            circumstance = self._circumstance(reason_subject, Tense.PAST, main)
        else:
            main = self._clauses.clause(subject, verb, self._clauses.future(verb))
            circumstance = self._circumstance(reason_subject, Tense.PRESENT, main, ongoing=True)
        return self._introduced(main, link, circumstance, subordinate_first)

    def _occasion(self) -> Sentence:
        subordinate_first = self._dice.chance(0.55)
        subject, other = self._subjects(subordinate_first)
        if self._dice.chance(0.35):
            main = self._clauses.clause(subject, self._dice.pick(_PASTIMES), Setting(Tense.PRESENT))
            occasion = self._clauses.state(other, Tense.PRESENT, main)
            if self._dice.chance(0.3):
                occasion = self._clauses.weather(Setting(Tense.PRESENT))
            return self._introduced(main, Link.WHEN, occasion, subordinate_first)
        if self._dice.chance(0.5):
            main = self._clauses.state(subject, Tense.PAST)
        else:
            main = self._clauses.clause(subject, self._dice.pick(_RESPONSES), Setting(Tense.PAST))
        verb = self._dice.pick(_ARRIVALS)
        return Complex(main, Link.WHEN, self._clauses.clause(other, verb, Setting(Tense.PAST)), subordinate_first)

    def _condition(self) -> Sentence:
        subordinate_first = self._dice.chance(0.6)
        subject, other = self._subjects(subordinate_first)
        setting = Setting(Tense.FUTURE, negated=self._dice.chance(0.15))
        main = self._clauses.clause(subject, self._clauses.verb(planned=True), setting)
        if self._dice.chance(0.4):
            time = self._phrases.future_time()
            day = None if isinstance(time, DayTime) else time
            condition = self._clauses.weather(Setting(Tense.PRESENT, time=day))
        else:
            condition = self._circumstance(other, Tense.PRESENT, main)
        return self._introduced(main, Link.IF, condition, subordinate_first)

    def _sequence(self) -> Sentence:
        subordinate_first = self._dice.chance(0.5)
        subject, other = self._subjects(subordinate_first)
        setting = Setting(Tense.PAST if self._dice.chance(0.7) else Tense.PRESENT)
        main = self._clauses.clause(subject, self._dice.pick(_PREPARATIONS), setting)
        verb = self._clauses.errand()
        return Complex(main, Link.BEFORE, self._clauses.clause(other, verb, setting), subordinate_first)

    def _report(self) -> Sentence:
        speaker = self._phrases.subject()
        if self._dice.chance(0.25):
            main = Clause(speaker, Action(KNOW_THAT), negated=True)
            return Complex(main, Link.WHETHER, replace(self._content(self._phrases.named()), negated=False))
        verb = self._dice.pick((*REPORTING_VERBS, KNOW_THAT))
        if verb.english == "hope":
            subject = self._content_subject(speaker)
            planned = self._clauses.verb(planned=True)
            hope = self._clauses.clause(subject, planned, self._clauses.future(planned))
            return Complex(Clause(speaker, Action(verb)), Link.THAT, hope)
        content = self._content(self._content_subject(speaker))
        past = content.tense is Tense.PAST and self._dice.chance(0.5)
        return Complex(Clause(speaker, Action(verb), Tense.PAST if past else Tense.PRESENT), Link.THAT, content)

    def _content_subject(self, speaker: Nominal) -> Nominal:
        return self._back_reference(speaker) if self._dice.chance(0.4) else self._phrases.named()

    def _content(self, subject: Nominal) -> Clause:
        """What is said, known or wondered about the subject."""
        sort = self._dice.weighted((("action", 6.0), ("occupation", 2.0), ("state", 2.0), ("quality", 2.0)))
        if sort == "action":
            return self._clauses.clause(subject)
        if sort == "occupation":
            return self._clauses.occupation(subject)
        if sort == "state":
            return self._clauses.state(subject, Tense.PRESENT)
        return self._clauses.quality()

    def _compound(self) -> Sentence:
        conjunction = Conjunction.AND if self._dice.chance(0.6) else Conjunction.BUT
        first = self._clauses.clause(self._phrases.subject())
        if first.time and self._dice.chance(0.3):
            first = replace(first, time_first=True)
        return Compound(first, conjunction, self._parallel(first, conjunction is Conjunction.BUT))

    def _parallel(self, first: Clause, contrast: bool) -> Clause:
        """A second main clause that matches the tense of the first."""
        subject, negated = self._phrases.subject(), contrast and self._dice.chance(0.4)
        while isinstance(subject, Conjoined):  # "and Anna and Peter" would be hard to follow
            subject = self._phrases.subject()
        if first.tense is Tense.PRESENT and first.modal is None:
            return self._clauses.clause(
                subject, self._dice.pick(STATIVE_VERBS), Setting(Tense.PRESENT, negated=negated)
            )
        verb = self._clauses.verb(planned=True)
        while first.tense is Tense.PROGRESSIVE and verb.aspect is not Aspect.ACTIVITY:
            verb = self._clauses.verb(planned=True)
        tense = Tense.FUTURE if first.modal and first.tense is Tense.PRESENT else first.tense
        return self._clauses.clause(subject, verb, Setting(tense, negated=negated))


def _is_weather(clause: Clause) -> bool:
    return isinstance(clause.predicate, Action) and clause.predicate.verb.english in ("rain", "snow")
