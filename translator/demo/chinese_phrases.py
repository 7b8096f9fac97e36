"""Chinese noun phrases, places and time expressions."""

from collections.abc import Callable

from translator.demo.alignment import Token
from translator.demo.lexicon_entries import Adjective, ClockTime, Noun, Place, TimePhrase
from translator.demo.numerals import chinese_number
from translator.demo.syntax import (
    Clause,
    Conjoined,
    DayTime,
    Determiner,
    Gap,
    Interrogative,
    Named,
    Nominal,
    NounPhrase,
    Person,
    Pronoun,
    Spot,
)

_PRONOUNS = {Person.I: "我", Person.HE: "他", Person.SHE: "她", Person.WE: "我们", Person.THEY: "他们"}
_POSSESSIVES = {Determiner.MY: "我", Determiner.OUR: "我们", Determiner.HIS: "他", Determiner.HER: "她"}
_DEMONSTRATIVES = {Determiner.DEFINITE: "那", Determiner.THIS: "这"}

RelativeClause = Callable[[Clause, str], list[Token]]


def nominal(node: Nominal, path: str, relative_clause: RelativeClause) -> list[Token]:
    """Any kind of noun phrase; gaps and weather subjects are silent.

    `relative_clause` linearises relative clauses. It is a parameter because noun phrases and clauses contain
    each other.
    """
    label = path + ".noun"
    if isinstance(node, NounPhrase):
        return noun_phrase(node, path, relative_clause)
    if isinstance(node, Named):
        return [Token(node.name.chinese, (label,))]
    if isinstance(node, Pronoun):
        return [Token("她们" if node.feminine else _PRONOUNS[node.person], (label,))]
    if isinstance(node, Conjoined):
        first = nominal(node.first, path + ".first", relative_clause)
        second = nominal(node.second, path + ".second", relative_clause)
        return [*first, Token("和", (path + ".and",)), *second]
    if isinstance(node, Interrogative):
        return [Token("谁" if node.animate else "什么", (label,))]
    return []


def noun_phrase(node: NounPhrase, path: str, relative_clause: RelativeClause) -> list[Token]:
    """Determiner, modifiers and noun.

    A subject relative clause follows the determiner (那位买了房子的老师); an object relative clause
    precedes it (安娜买的那本书).
    """
    determiner = _determiner(node, path, relative_clause)
    head = [Token(node.noun.chinese, (path + ".noun",))]
    if node.adjective:
        head.insert(0, Token(_attribute(node.adjective, node.noun), (path + ".adjective",)))
    if node.relative is None:
        return [*determiner, *head]
    label = path + ".relative"
    modifier = [*relative_clause(node.relative, label), Token("的", (label + ".pronoun",))]
    if isinstance(node.relative.subject, Gap):
        return [*determiner, *modifier, *head]
    return [*modifier, *determiner, *head]


def _attribute(adjective: Adjective, noun: Noun) -> str:
    """The attributive form, avoiding doubled characters as in 老老师 and 大大象."""
    attribute = adjective.chinese_attribute
    return f"很{attribute}的" if noun.chinese.startswith(attribute) else attribute


def _determiner(node: NounPhrase, path: str, relative_clause: RelativeClause) -> list[Token]:
    """The determiner and its measure word, which is aligned as part of the determiner."""
    label = (path + ".determiner",)
    if node.possessor:
        return [*nominal(node.possessor, path + ".possessor", relative_clause), Token("的", (path + ".of",))]
    if node.determiner in _POSSESSIVES:
        owner = _POSSESSIVES[node.determiner]
        one_de = node.adjective and _attribute(node.adjective, node.noun).endswith("的")  # 她漂亮的大衣
        return [Token(owner if one_de else owner + "的", label)]
    if node.determiner is Determiner.MANY:
        return [Token("很多", label)]
    measure = Token(node.noun.measure, label)
    if node.container:
        measure = Token(node.container.measure, (path + ".container",))
    if node.count is not None:
        return [Token(chinese_number(node.count, before_measure_word=True), label), measure]
    if node.determiner in _DEMONSTRATIVES:
        return [Token(_DEMONSTRATIVES[node.determiner], label), Token("些", label) if node.plural else measure]
    if node.plural or (node.noun.mass and not node.container):
        return []
    return [Token("一", label), measure]


def time_phrase(node: TimePhrase | DayTime, path: str) -> list[Token]:
    """A time adverbial."""
    if isinstance(node, DayTime):
        day = time_phrase(node.day, path) if node.day else []
        return [*day, *_clock(node.clock, path)]
    return [
        Token(segment.chinese, (f"{path}.{index}",)) for index, segment in enumerate(node.segments) if segment.chinese
    ]


def _clock(clock: ClockTime, path: str) -> list[Token]:
    hour = [
        Token(chinese_number(clock.hour, before_measure_word=True), (path + ".hour",)),
        Token("点", (path + ".hour", path + ".oclock")),
    ]
    if clock.minute == 0:
        return hour
    minute = (path + ".minute",)
    if clock.minute == 45:
        return [Token("差", (path + ".direction",)), Token("一刻", minute), *hour]
    if clock.minute == 30:
        return [*hour, Token("半", minute)]
    return [*hour, Token("一刻" if clock.minute == 15 else chinese_number(clock.minute) + "分", minute)]


def location(node: Place | Spot, path: str, relative_clause: RelativeClause) -> list[Token]:
    """A place with its localiser but without 在: 公园里, 桌子下面."""
    preposition = (path + ".preposition",)
    if isinstance(node, Place):
        suffix = [Token(node.chinese_suffix, preposition)] if node.chinese_suffix else []
        return [Token(node.chinese, (path + ".noun",)), *suffix]
    landmark = node.landmark
    if landmark.determiner is Determiner.DEFINITE and landmark.possessor is None:
        tokens = [Token(landmark.noun.chinese, (path + ".noun",))]  # familiar furniture needs no demonstrative
    else:
        tokens = noun_phrase(landmark, path, relative_clause)
    return [*tokens, Token(node.relation.chinese, preposition)]
