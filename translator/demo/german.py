"""German linearisation: verb-second, verb-first and verb-final clauses with a shared middle field."""

from enum import Enum
from itertools import pairwise
from typing import NamedTuple

from translator.demo.alignment import Token
from translator.demo.german_forms import (
    future_auxiliary,
    modal_present,
    perfect_auxiliary,
    present,
    preterite,
    relative_pronoun,
)
from translator.demo.german_phrases import means_phrase, nominal, place_phrase, time_phrase, where_phrase
from translator.demo.lexicon_entries import Case, Gender
from translator.demo.lexicon_verbs import BE
from translator.demo.syntax import (
    Action,
    Asked,
    Clause,
    Comparison,
    Complex,
    Conjoined,
    Conjunction,
    Gap,
    Interrogative,
    Link,
    Named,
    Nominal,
    NounPhrase,
    Occupation,
    Person,
    Pronoun,
    Quality,
    Question,
    Request,
    Sentence,
    Statement,
    Tense,
    grammatical_person,
)

_LINKS = {
    Link.BECAUSE: "weil",
    Link.WHEN: "wenn",
    Link.ALTHOUGH: "obwohl",
    Link.IF: "wenn",
    Link.BEFORE: "bevor",
    Link.THAT: "dass",
    Link.WHETHER: "ob",
}
_CONJUNCTIONS = {Conjunction.AND: "und", Conjunction.BUT: "aber"}
_QUESTION_WORDS = {Asked.PLACE: "wo", Asked.GOAL: "wohin", Asked.TIME: "wann", Asked.REASON: "warum"}
_COMMA = Token(",")


class _Order(Enum):
    """Position of the finite verb."""

    SECOND = "second"
    FIRST = "first"
    FINAL = "final"


class _VerbCluster(NamedTuple):
    """The finite verb and the rest of the verb, which ends the clause."""

    finite: Token
    end: list[Token]
    final: list[Token]  # both, as they end a verb-final clause


def _verb_cluster(clause: Clause, path: str, person: Person) -> _VerbCluster:
    verb = clause.predicate.verb if isinstance(clause.predicate, Action) else BE
    label, tense_label = path + ".verb", path + ".tense"
    infinitive = [Token(verb.prefix + verb.german, (label,))]
    if clause.modal:
        past = clause.tense is Tense.PAST
        form = preterite(clause.modal.german_preterite, person) if past else modal_present(clause.modal, person)
        return _two_part(Token(form, (path + ".modal", tense_label)), infinitive)
    if clause.tense is Tense.FUTURE:
        return _two_part(Token(future_auxiliary(person), (tense_label,)), infinitive)
    if clause.tense is Tense.PAST and not verb.german_preterite:
        participle = [Token(verb.german_participle, (label,))]
        return _two_part(Token(perfect_auxiliary(verb, person), (tense_label,)), participle)
    past = clause.tense is Tense.PAST
    form = preterite(verb.german_preterite, person) if past else present(verb, person)
    labels = (label, tense_label)
    prefix = [Token(verb.prefix, (label,))] if verb.prefix else []
    return _VerbCluster(Token(form, labels), prefix, [Token(verb.prefix + form, labels)])


def _two_part(finite: Token, nonfinite: list[Token]) -> _VerbCluster:
    return _VerbCluster(finite, nonfinite, [*nonfinite, finite])


class _MiddleField:
    """Everything between the two parts of the verb, in the usual German word order."""

    def __init__(self, clause: Clause, path: str) -> None:
        self.clause = clause
        self.path = path
        self.tokens: list[Token] = []
        self.extraposed: list[Token] = []  # relative clauses of objects, which follow the verb cluster

    def fill(self, *, with_subject: bool, with_time: bool) -> None:
        """Order: subject, pronouns, recipients, adverbs, objects, "nicht", rest of the predicate."""
        clause, path = self.clause, self.path
        if with_subject:
            self.tokens += subject_phrase(clause.subject, path + ".subject")
        action = clause.predicate if isinstance(clause.predicate, Action) else None
        if action:
            self._objects(action, "early")
            if clause.negated:  # definite objects precede the adverbs, outside the scope of "nicht"
                self._objects(action, "definite")
        if with_time and clause.time:
            self.tokens += time_phrase(clause.time, path + ".time")
        if clause.tense is Tense.PROGRESSIVE:
            self.tokens.append(Token("gerade", (path + ".progressive",)))
        if clause.frequency:
            self.tokens.append(Token(clause.frequency.german, (path + ".frequency",)))
        if action and not clause.negated:
            self._objects(action, "definite")
        if clause.place:
            self.tokens += place_phrase(clause.place, path + ".place", goal=False)
        if action:
            self._objects(action, "indefinite")
        if clause.negated and not _negated_by_kein(clause):
            self.tokens.append(Token("nicht", (path + ".negation",)))
        self.tokens += self._predicate_complement()

    def _objects(self, action: Action, group: str) -> None:
        """Add the objects of one group (early, definite or indefinite), recipient before direct object."""
        if action.recipient and _recipient_group(action.recipient) == group:
            self.tokens += nominal(action.recipient, self.path + ".recipient", Case.DATIVE)
        target = action.object
        if target is None or action.verb.german_preposition or _object_group(target) != group:
            return
        negation = self.path + ".negation" if _negated_by_kein(self.clause) else ""
        self.tokens += nominal(target, self.path + ".object", action.verb.object_case, negation=negation)
        self.extraposed += relative_clause(target, self.path + ".object")

    def _predicate_complement(self) -> list[Token]:
        predicate, path = self.clause.predicate, self.path
        label = path + ".complement"
        if isinstance(predicate, Quality):
            return [Token(predicate.adjective.german, (label,))]
        if isinstance(predicate, Comparison):
            standard = nominal(predicate.standard, path + ".standard", Case.NOMINATIVE)
            return [Token(predicate.adjective.german_comparative, (label,)), Token("als", (path + ".than",)), *standard]
        if isinstance(predicate, Occupation):
            return self._occupation(predicate)
        if isinstance(predicate, Action):
            return self._action_complement(predicate)
        return where_phrase(predicate.where, path + ".goal", goal=False) if predicate.where else []

    def _occupation(self, predicate: Occupation) -> list[Token]:
        """Professions take no article unless negated: "Anna ist keine Ärztin"."""
        feminine = predicate.gender is Gender.FEMININE
        noun = Token(
            predicate.noun.german_feminine if feminine else predicate.noun.german, (self.path + ".complement",)
        )
        if not self.clause.negated:
            return [noun]
        return [Token("keine" if feminine else "kein", (self.path + ".negation", self.path + ".article")), noun]

    def _action_complement(self, action: Action) -> list[Token]:
        verb, path = action.verb, self.path
        tokens: list[Token] = []
        if action.object and verb.german_preposition:
            tokens.append(Token(verb.german_preposition, (path + ".preposition",)))
            tokens += nominal(action.object, path + ".object", verb.object_case)
            self.extraposed += relative_clause(action.object, path + ".object")
        if action.means:
            tokens += means_phrase(action.means, path)
        if action.goal:
            tokens += where_phrase(action.goal, path + ".goal", goal=not verb.goal_is_location)
        return tokens


def _negated_by_kein(clause: Clause) -> bool:
    predicate = clause.predicate
    if not clause.negated:
        return False
    if isinstance(predicate, Occupation):
        return True
    return (
        isinstance(predicate, Action)
        and isinstance(predicate.object, NounPhrase)
        and predicate.object.is_bare_indefinite
        and not predicate.verb.german_preposition
    )


def _object_group(node: Nominal) -> str:
    """The position of an object in the middle field; interrogatives and gaps have none."""
    if isinstance(node, Pronoun | Named):
        return "early"
    if isinstance(node, Interrogative | Gap):
        return "fronted"
    if isinstance(node, NounPhrase) and (node.is_bare_indefinite or node.count is not None):
        return "indefinite"
    if isinstance(node, Conjoined):
        return _object_group(node.second)
    return "definite"


def _recipient_group(node: Nominal) -> str:
    """Definite recipients precede the adverbs: "Anna hat dem Kind gestern ein Buch gegeben"."""
    group = _object_group(node)
    return "early" if group == "definite" else group


def subject_phrase(node: Nominal, path: str) -> list[Token]:
    """A subject, directly followed by its relative clause."""
    return [*nominal(node, path, Case.NOMINATIVE), *relative_clause(node, path)]


def relative_clause(node: Nominal, path: str) -> list[Token]:
    """The relative clause of a noun phrase between commas, or nothing."""
    if not isinstance(node, NounPhrase) or node.relative is None:
        return []
    clause, path = node.relative, path + ".relative"
    of_subject = isinstance(clause.subject, Gap)
    case = Case.NOMINATIVE
    if not of_subject and isinstance(clause.predicate, Action):
        case = clause.predicate.verb.object_case
    pronoun = Token(relative_pronoun(node.noun.gender, node.is_plural, case), (path + ".pronoun",))
    person = Person.THEY if node.is_plural else Person.HE
    body = _clause(clause, path, _Order.FINAL, person=person if of_subject else None)
    return [_COMMA, pronoun, *body, _COMMA]


def _clause(
    clause: Clause, path: str, order: _Order, *, front: list[Token] | None = None, person: Person | None = None
) -> list[Token]:
    """A clause; if it is verb-second, `front` fills the prefield, or else the time or the subject does."""
    cluster = _verb_cluster(clause, path, person or grammatical_person(clause.subject))
    field = _MiddleField(clause, path)
    fronted_time = order is _Order.SECOND and clause.time_first and clause.time is not None and not front
    takes_front = order is _Order.SECOND and not front and not fronted_time
    subject_is_fronted = takes_front or isinstance(clause.subject, Interrogative)
    field.fill(with_subject=not subject_is_fronted, with_time=not fronted_time)
    if order is _Order.FINAL:
        return [*field.tokens, *cluster.final, *field.extraposed]
    if order is _Order.SECOND and not front:
        if clause.time and fronted_time:
            front = time_phrase(clause.time, path + ".time")
        else:
            front = subject_phrase(clause.subject, path + ".subject")
    return [*(front or []), cluster.finite, *field.tokens, *cluster.end, *field.extraposed]


def _question(node: Question) -> list[Token]:
    clause = node.clause
    if node.asked is Asked.NOTHING:
        return _clause(clause, "main", _Order.FIRST)
    if node.asked is Asked.SUBJECT:
        return _clause(clause, "main", _Order.SECOND)
    if node.asked is Asked.OBJECT and isinstance(clause.predicate, Action) and clause.predicate.object:
        front = nominal(clause.predicate.object, "main.object", clause.predicate.verb.object_case)
    else:
        front = [Token(_QUESTION_WORDS[node.asked], ("main.asked",))]
    return _clause(clause, "main", _Order.SECOND, front=front)


def _complex(node: Complex) -> list[Token]:
    word = _LINKS[node.link]
    if node.link is Link.WHEN and node.subordinate.tense is Tense.PAST:
        word = "als"  # a single event in the past
    comma = Token(",", ("comma",))
    subordinate = [Token(word, ("link",)), *_clause(node.subordinate, "subordinate", _Order.FINAL)]
    if node.subordinate_first:
        return _clause(node.main, "main", _Order.SECOND, front=[*subordinate, comma])
    return [*_clause(node.main, "main", _Order.SECOND), comma, *subordinate]


def _request(node: Request) -> list[Token]:
    """A polite imperative: the verb, followed by "Sie"."""
    clause = Clause(Gap(), node.action)
    field = _MiddleField(clause, "main")
    field.fill(with_subject=False, with_time=False)
    verb = node.action.verb
    prefix = [Token(verb.prefix, ("main.verb",))] if verb.prefix else []
    finite = Token(verb.german, ("main.verb",))
    return [Token("bitte", ("please",)), finite, Token("Sie"), *field.tokens, *prefix, *field.extraposed]


def _tidy(tokens: list[Token]) -> list[Token]:
    """Drop the closing comma of an embedded clause before another punctuation mark."""
    tidy = [token for token, following in pairwise(tokens) if token is not _COMMA or following.text not in ",.?"]
    return [*tidy, tokens[-1]]


def linearise(sentence: Sentence) -> list[Token]:
    """The tokens of a German sentence, before the first word is capitalised."""
    if isinstance(sentence, Statement):
        return _tidy([*_clause(sentence.clause, "main", _Order.SECOND), Token(".", ("end",))])
    if isinstance(sentence, Question):
        return _tidy([*_question(sentence), Token("?", ("end",))])
    if isinstance(sentence, Request):
        return _tidy([*_request(sentence), Token(".", ("end",))])
    if isinstance(sentence, Complex):
        return _tidy([*_complex(sentence), Token(".", ("end",))])
    first = _clause(sentence.first, "first", _Order.SECOND)
    second = _clause(sentence.second, "second", _Order.SECOND)
    comma = [Token(",", ("comma",))] if sentence.conjunction is Conjunction.BUT else []
    link = Token(_CONJUNCTIONS[sentence.conjunction], ("link",))
    return _tidy([*first, *comma, link, *second, Token(".", ("end",))])
