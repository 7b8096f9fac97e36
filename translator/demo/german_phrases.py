"""German noun phrases, prepositional phrases and time expressions."""

from translator.demo.alignment import Token
from translator.demo.german_forms import (
    Declension,
    adjective_ending,
    contraction,
    definite_article,
    der_word,
    ein_word,
    noun_form,
    personal_pronoun,
)
from translator.demo.lexicon_entries import Adjective, Case, ClockTime, Gender, Means, Place, TimePhrase
from translator.demo.numerals import german_number
from translator.demo.syntax import (
    Conjoined,
    DayTime,
    Determiner,
    Expletive,
    Interrogative,
    Named,
    Nominal,
    NounPhrase,
    Pronoun,
    Spot,
)

_EIN_WORD_STEMS = {Determiner.MY: "mein", Determiner.OUR: "unser", Determiner.HIS: "sein", Determiner.HER: "ihr"}
_WHO = {Case.NOMINATIVE: "wer", Case.ACCUSATIVE: "wen", Case.DATIVE: "wem"}


def nominal(node: Nominal, path: str, case: Case, *, negation: str = "") -> list[Token]:
    """Any kind of noun phrase in the given case; a `negation` label changes an indefinite article to "kein".

    Relative clauses are left to the caller, because their position depends on the enclosing clause.
    """
    label = path + ".noun"
    if isinstance(node, NounPhrase):
        return noun_phrase(node, path, case, negation=negation)
    if isinstance(node, Named):
        return [Token(node.name.german, (label,))]
    if isinstance(node, Pronoun):
        return [Token(personal_pronoun(node.person, case), (label,))]
    if isinstance(node, Conjoined):
        first, second = nominal(node.first, path + ".first", case), nominal(node.second, path + ".second", case)
        return [*first, Token("und", (path + ".and",)), *second]
    if isinstance(node, Expletive):
        return [Token("es", (label,))]
    if isinstance(node, Interrogative):
        return [Token(_WHO[case] if node.animate else "was", (label,))]
    return []


def noun_phrase(node: NounPhrase, path: str, case: Case, *, negation: str = "") -> list[Token]:
    """Determiner, adjective and noun; in a measure phrase, the determiner agrees with the container."""
    head = node.container or node.noun
    plural = node.is_plural
    determiner, declension = _determiner(node, path, head.gender, case, negation)
    tokens = list(determiner)
    if node.container:
        tokens.append(Token(noun_form(node.container, plural, case), (path + ".container",)))
        if node.adjective:
            tokens.append(_adjective(node.adjective, Declension.STRONG, node.noun.gender, False, case, path))
        return [*tokens, Token(node.noun.german, (path + ".noun",))]
    if node.adjective:
        tokens.append(_adjective(node.adjective, declension, head.gender, plural, case, path))
    tokens.append(Token(noun_form(node.noun, plural, case), (path + ".noun",)))
    if isinstance(node.possessor, NounPhrase):
        tokens += noun_phrase(node.possessor, path + ".possessor", Case.GENITIVE)
    return tokens


def _adjective(
    adjective: Adjective, declension: Declension, gender: Gender, plural: bool, case: Case, path: str
) -> Token:
    ending = adjective_ending(declension, gender, plural, case)
    return Token((adjective.german_stem or adjective.german) + ending, (path + ".adjective",))


def _determiner(
    node: NounPhrase, path: str, gender: Gender, case: Case, negation: str
) -> tuple[list[Token], Declension]:
    """The determiner and the adjective declension it requires."""
    label, plural = path + ".determiner", node.is_plural
    if isinstance(node.possessor, Named):
        labels = (path + ".possessor.noun", path + ".of")
        return [Token(node.possessor.name.german + "s", labels)], Declension.STRONG
    if node.possessor:
        return [Token(definite_article(gender, plural, case))], Declension.WEAK
    if node.count is not None:
        return [Token(german_number(node.count), (label,))], Declension.STRONG
    if node.determiner is Determiner.DEFINITE:
        return [Token(definite_article(gender, plural, case), (label,))], Declension.WEAK
    if node.determiner is Determiner.THIS:
        return [Token(der_word("dies", gender, plural, case), (label,))], Declension.WEAK
    if node.determiner is Determiner.MANY:
        return [Token(der_word("viel", gender, plural, case), (label,))], Declension.STRONG
    if node.determiner in _EIN_WORD_STEMS:
        return [Token(ein_word(_EIN_WORD_STEMS[node.determiner], gender, plural, case), (label,))], Declension.MIXED
    if negation:
        return [Token(ein_word("kein", gender, plural, case), (negation, label))], Declension.MIXED
    if plural or (node.noun.mass and not node.container):
        return [], Declension.STRONG
    return [Token(ein_word("ein", gender, plural, case), (label,))], Declension.MIXED


def time_phrase(node: TimePhrase | DayTime, path: str) -> list[Token]:
    """A time adverbial."""
    if isinstance(node, DayTime):
        day = time_phrase(node.day, path) if node.day else []
        return [*day, *_clock(node.clock, path)]
    return [
        Token(segment.german, (f"{path}.{index}",)) for index, segment in enumerate(node.segments) if segment.german
    ]


def _clock(clock: ClockTime, path: str) -> list[Token]:
    """A time of day; "halb" refers to the next hour, and one is "ein" only before "Uhr"."""
    at = Token("um", (path + ".at",))
    hour = Token(german_number(clock.hour), (path + ".hour",))
    if clock.minute == 0:
        exact = Token("ein", hour.labels) if clock.hour == 1 else hour
        return [at, exact, Token("Uhr", (path + ".oclock",))]
    if clock.minute == 30:
        coming = german_number(clock.hour % 12 + 1)
        return [at, Token("halb", (path + ".minute",)), Token(coming, hour.labels)]
    minutes = "Viertel" if clock.minute in (15, 45) else german_number(clock.minute)
    direction = Token("vor" if clock.minute == 45 else "nach", (path + ".direction",))
    return [at, Token(minutes, (path + ".minute",)), direction, hour]


def place_phrase(place: Place, path: str, *, goal: bool) -> list[Token]:
    """A location ("im Park") or a direction ("in den Park")."""
    preposition = place.german_goal if goal else place.german_location
    case = place.german_goal_case if goal else Case.DATIVE
    noun = Token(place.german, (path + ".noun",))
    if not place.article:
        return [Token(preposition, (path + ".preposition",)), noun]
    article = definite_article(place.gender, False, case)
    return [*_preposition_and_article(preposition, article, path), noun]


def where_phrase(node: Place | Spot, path: str, *, goal: bool) -> list[Token]:
    """A place or a position relative to furniture; the latter is dative for a location, accusative for a direction."""
    if isinstance(node, Place):
        return place_phrase(node, path, goal=goal)
    case = Case.ACCUSATIVE if goal else Case.DATIVE
    return [Token(node.relation.german, (path + ".preposition",)), *noun_phrase(node.landmark, path, case)]


def means_phrase(means: Means, path: str) -> list[Token]:
    """A means of transport: "mit dem Zug"."""
    article = Token(definite_article(means.gender, False, Case.DATIVE))
    return [Token("mit", (path + ".by",)), article, Token(means.german, (path + ".means",))]


def _preposition_and_article(preposition: str, article: str, path: str) -> list[Token]:
    labels = (path + ".preposition", path + ".determiner")
    contracted = contraction(preposition, article)
    if contracted:
        return [Token(contracted, labels)]
    return [Token(preposition, labels[:1]), Token(article, labels[1:])]
