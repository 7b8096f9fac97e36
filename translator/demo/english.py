"""English linearisation."""

from dataclasses import replace

from translator.demo.alignment import Token
from translator.demo.lexicon_entries import ClockTime, Place, TimePhrase, Verb
from translator.demo.lexicon_verbs import BE
from translator.demo.numerals import english_number
from translator.demo.syntax import (
    Action,
    Asked,
    Clause,
    Comparison,
    Complex,
    Conjoined,
    Conjunction,
    DayTime,
    Determiner,
    Expletive,
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
    Spot,
    Statement,
    Tense,
    grammatical_person,
)

_OBJECT_PRONOUNS = {Person.I: "me", Person.HE: "him", Person.SHE: "her", Person.WE: "us", Person.THEY: "them"}
_QUESTION_WORDS = {Asked.PLACE: "where", Asked.GOAL: "where", Asked.TIME: "when", Asked.REASON: "why"}
_PAST_BE = {Person.I: "was", Person.HE: "was", Person.SHE: "was"}
_PRESENT_BE = {Person.I: "am", Person.HE: "is", Person.SHE: "is"}
_SIBILANTS = ("s", "sh", "ch", "x", "z", "o")


def third_person(verb: Verb) -> str:
    """Third person singular present: "goes", "tries", "looks for"."""
    if verb.english == "have":
        return "has"
    head, space, rest = verb.english.partition(" ")
    if head.endswith("y") and head[-2] not in "aeiou":
        head = head[:-1] + "ies"
    else:
        head += "es" if head.endswith(_SIBILANTS) else "s"
    return head + space + rest


def ing_form(verb: Verb) -> str:
    """Present participle: "writing", "swimming"."""
    if verb.english_ing:
        return verb.english_ing
    base = verb.english
    return (base[:-1] if base.endswith("e") and not base.endswith("ee") else base) + "ing"


def finite_form(verb: Verb, person: Person, tense: Tense) -> str:
    """Simple present or past form of a full verb or of "be"."""
    if verb is BE:
        return (_PAST_BE if tense is Tense.PAST else _PRESENT_BE).get(person, "were" if tense is Tense.PAST else "are")
    if tense is Tense.PAST:
        return verb.english_past
    return third_person(verb) if person in (Person.HE, Person.SHE) else verb.english


def indefinite_article(next_word: str) -> str:
    """The article "a" or "an"; in this lexicon no word after it has a silent h or a consonantal u."""
    return "an" if next_word[0] in "aeiouAEIOU" else "a"


def _words(text: str, *labels: str) -> list[Token]:
    if " " not in text:
        return [Token(text, labels)] if text else []
    return [Token(word, labels) for word in text.split()]


def nominal(node: Nominal, path: str, *, subject: bool = False) -> list[Token]:
    """Any kind of noun phrase."""
    label = path + ".noun"
    if isinstance(node, NounPhrase):
        return noun_phrase(node, path)
    if isinstance(node, Named):
        return [Token(node.name.english, (label,))]
    if isinstance(node, Pronoun):
        return [Token(node.person.value if subject else _OBJECT_PRONOUNS[node.person], (label,))]
    if isinstance(node, Conjoined):
        first = nominal(node.first, path + ".first", subject=subject)
        second = nominal(node.second, path + ".second", subject=subject)
        return [*first, Token("and", (path + ".and",)), *second]
    if isinstance(node, Expletive):
        return [Token("it", (label,))]
    if isinstance(node, Interrogative):
        return [Token("what" if not node.animate else "who" if subject else "whom", (label,))]
    return []


def noun_phrase(node: NounPhrase, path: str) -> list[Token]:
    """A common noun with determiner, adjective, container and relative clause."""
    tokens = _words(node.adjective.english, path + ".adjective") if node.adjective else []
    tokens += _words(
        node.noun.english_plural if node.plural or _counts_noun(node) else node.noun.english, path + ".noun"
    )
    if node.container:
        vessel = node.container.english_plural if node.is_plural else node.container.english
        tokens = [Token(vessel, (path + ".container",)), Token("of"), *tokens]
    tokens = [*_determiner(node, path, tokens[0].text), *tokens]
    if node.relative:
        tokens += _relative_clause(node, node.relative, path + ".relative")
    return tokens


def _counts_noun(node: NounPhrase) -> bool:
    return node.count is not None and node.container is None


def _determiner(node: NounPhrase, path: str, next_word: str) -> list[Token]:
    label = path + ".determiner"
    if node.possessor:
        *before, last = nominal(node.possessor, path + ".possessor")
        return [*before, Token(last.text + "'s", (*last.labels, path + ".of"))]
    if node.count is not None:
        return [Token(english_number(node.count), (label,))]
    if node.determiner is Determiner.INDEFINITE:
        bare = node.plural or (node.noun.mass and not node.container)
        return [] if bare else [Token(indefinite_article(next_word), (label,))]
    if node.determiner is Determiner.THIS:
        return [Token("these" if node.plural else "this", (label,))]
    return [Token(node.determiner.value, (label,))]


def _relative_clause(head: NounPhrase, clause: Clause, path: str) -> list[Token]:
    of_subject = isinstance(clause.subject, Gap)
    human = "person" in head.noun.kinds or "relative" in head.noun.kinds
    pronoun = "that" if not human else "who" if of_subject else "whom"
    person = Person.THEY if head.is_plural else Person.HE
    return [Token(pronoun, (path + ".pronoun",)), *_clause(clause, path, person=person)]


def _time(node: TimePhrase | DayTime, path: str) -> list[Token]:
    if isinstance(node, DayTime):
        day = _time(node.day, path) if node.day else []
        return [*day, *_clock(node.clock, path)]
    return [
        Token(segment.english, (f"{path}.{index}",)) for index, segment in enumerate(node.segments) if segment.english
    ]


def _clock(clock: ClockTime, path: str) -> list[Token]:
    at, hour = Token("at", (path + ".at",)), Token(english_number(clock.hour), (path + ".hour",))
    if clock.minute == 0:
        return [at, hour, Token("o'clock", (path + ".oclock",))]
    if clock.minute == 30:
        return [at, *_words("half past", path + ".minute"), hour]
    direction = Token("to" if clock.minute == 45 else "past", (path + ".direction",))
    if clock.minute in (15, 45):
        return [at, *_words("a quarter", path + ".minute"), direction, hour]
    return [at, Token(english_number(clock.minute), (path + ".minute",)), direction, hour]


def _place(place: Place, path: str, *, goal: bool) -> list[Token]:
    preposition = place.english_goal if goal else place.english_location
    article = [Token("the", (path + ".determiner",))] if place.article else []
    return [*_words(preposition, path + ".preposition"), *article, *_words(place.english, path + ".noun")]


def _where(node: Place | Spot, path: str, *, goal: bool) -> list[Token]:
    if isinstance(node, Place):
        return _place(node, path, goal=goal)
    return [*_words(node.relation.english, path + ".preposition"), *noun_phrase(node.landmark, path)]


def _complements(clause: Clause, path: str) -> list[Token]:
    predicate = clause.predicate
    if isinstance(predicate, Action):
        return _action_complements(predicate, path)
    label = path + ".complement"
    if isinstance(predicate, Quality):
        return _words(predicate.adjective.english, label)
    if isinstance(predicate, Comparison):
        comparative = _words(predicate.adjective.english_comparative, label)
        return [*comparative, Token("than", (path + ".than",)), *nominal(predicate.standard, path + ".standard")]
    if isinstance(predicate, Occupation):
        article = Token(indefinite_article(predicate.noun.english), (path + ".article",))
        return [article, *_words(predicate.noun.english, label)]
    return _where(predicate.where, path + ".goal", goal=False) if predicate.where else []


def _action_complements(action: Action, path: str) -> list[Token]:
    verb = action.verb
    target = nominal(action.object, path + ".object") if action.object else []
    object_first = isinstance(action.object, Pronoun) and not verb.english_preposition  # "pick her up"
    tokens = nominal(action.recipient, path + ".recipient") if action.recipient else []
    tokens += target if object_first else []
    tokens += _words(verb.english_particle, path + ".verb")
    tokens += _words(verb.english_preposition, path + ".preposition")
    tokens += [] if object_first else target
    if action.goal:
        tokens += _where(action.goal, path + ".goal", goal=not verb.goal_is_location)
    if action.means:
        tokens += [Token("by", (path + ".by",)), Token(action.means.english, (path + ".means",))]
    return tokens


def _verb_group(clause: Clause, path: str, person: Person, *, inverted: bool) -> tuple[Token | None, list[Token]]:
    """The auxiliary, if any, which is inverted in questions and precedes "not", and the rest of the verb group."""
    verb = clause.predicate.verb if isinstance(clause.predicate, Action) else BE
    label, tense_label, modal_label = path + ".verb", path + ".tense", path + ".modal"
    singular = person in (Person.HE, Person.SHE)
    base = _words(verb.english, label)
    if clause.modal and not clause.modal.english_infix:
        past = clause.tense is Tense.PAST
        return Token(clause.modal.english_past if past else clause.modal.english, (modal_label,)), base
    if clause.tense is Tense.FUTURE:
        return Token("will", (tense_label,)), base
    if clause.tense is Tense.PROGRESSIVE:
        be = Token(finite_form(BE, person, Tense.PRESENT), (tense_label, path + ".progressive"))
        return be, _words(ing_form(verb), label)
    supported = clause.negated or inverted
    support = Token("did" if clause.tense is Tense.PAST else "does" if singular else "do", (tense_label,))
    if clause.modal:
        modal = clause.modal
        finite = (
            modal.english_past if clause.tense is Tense.PAST else modal.english_third if singular else modal.english
        )
        rest = [Token(modal.english if supported else finite, (modal_label,)), Token("to", (modal_label,)), *base]
        return (support if supported else None), rest
    if verb is BE:
        return Token(finite_form(BE, person, clause.tense), (label, tense_label)), []
    if supported:
        return support, base
    return None, _words(finite_form(verb, person, clause.tense), label, tense_label)


def _clause(
    clause: Clause,
    path: str,
    *,
    asked: Asked | None = None,
    person: Person | None = None,
) -> list[Token]:
    """A clause; `asked` makes it a question, and the verb agrees with `person` if the subject is a gap."""
    inverted = asked not in (None, Asked.SUBJECT)
    agreement = person if person and isinstance(clause.subject, Gap) else grammatical_person(clause.subject)
    auxiliary, rest = _verb_group(clause, path, agreement, inverted=inverted)
    subject = nominal(clause.subject, path + ".subject", subject=True)
    before = [auxiliary, *subject] if inverted and auxiliary else [*subject, *([auxiliary] if auxiliary else [])]
    if clause.negated:
        if before and before[-1].text == "can":
            before[-1] = Token("cannot", (*before[-1].labels, path + ".negation"))
        else:
            before.append(Token("not", (path + ".negation",)))
    if clause.frequency:
        before.append(Token(clause.frequency.english, (path + ".frequency",)))
    predicate = clause.predicate
    if asked is Asked.OBJECT and isinstance(predicate, Action) and predicate.object:
        before = [*nominal(predicate.object, path + ".object"), *before]
        clause = _without_object(clause, predicate)
    elif asked in _QUESTION_WORDS:
        before.insert(0, Token(_QUESTION_WORDS[asked], (f"{path}.asked",)))
    after = _place(clause.place, path + ".place", goal=False) if clause.place else []
    time = _time(clause.time, path + ".time") if clause.time else []
    tokens = [*before, *rest, *_complements(clause, path), *after]
    return [*time, *tokens] if clause.time_first else [*tokens, *time]


def _without_object(clause: Clause, action: Action) -> Clause:
    """The clause with its object replaced by a silent gap."""
    return replace(clause, predicate=replace(action, object=Gap()))


def _complex(node: Complex) -> list[Token]:
    main = _clause(node.main, "main")
    subordinate = [Token(node.link.value, ("link",)), *_clause(node.subordinate, "subordinate")]
    if node.subordinate_first:
        return [*subordinate, Token(",", ("comma",)), *main]
    comma = [Token(",", ("comma",))] if node.link is Link.ALTHOUGH else []
    return [*main, *comma, *subordinate]


def linearise(sentence: Sentence) -> list[Token]:
    """The tokens of an English sentence, before the first word is capitalised."""
    if isinstance(sentence, Statement):
        return [*_clause(sentence.clause, "main"), Token(".", ("end",))]
    if isinstance(sentence, Question):
        return [*_clause(sentence.clause, "main", asked=sentence.asked), Token("?", ("end",))]
    if isinstance(sentence, Request):
        verb = _words(sentence.action.verb.english, "main.verb")
        return [
            Token("please", ("please",)),
            *verb,
            *_action_complements(sentence.action, "main"),
            Token(".", ("end",)),
        ]
    if isinstance(sentence, Complex):
        return [*_complex(sentence), Token(".", ("end",))]
    first, second = _clause(sentence.first, "first"), _clause(sentence.second, "second")
    comma = [Token(",", ("comma",))] if sentence.conjunction is Conjunction.BUT else []
    return [*first, *comma, Token(sentence.conjunction.value, ("link",)), *second, Token(".", ("end",))]
