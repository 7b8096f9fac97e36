"""Chinese linearisation."""

from dataclasses import replace
from typing import NamedTuple

from translator.demo.alignment import Token
from translator.demo.chinese_phrases import location, time_phrase
from translator.demo.chinese_phrases import nominal as _nominal
from translator.demo.lexicon_entries import Aspect, ChinesePattern, Place
from translator.demo.syntax import (
    Action,
    Asked,
    Clause,
    Comparison,
    Complex,
    Conjunction,
    Gap,
    Link,
    Nominal,
    NounPhrase,
    Occupation,
    Person,
    Position,
    Pronoun,
    Quality,
    Question,
    Request,
    Sentence,
    Statement,
    Tense,
)

_COMMA = Token("，", ("comma",))


class _Setting(NamedTuple):
    """How the context of a clause affects it."""

    asked: Asked | None = None
    perfective: bool = True  # whether a past event is marked with 了
    adverb: Token | None = None  # a linking adverb after the subject and the time
    subject_path: str = ""  # original path of a subject moved here from another clause


_PLAIN = _Setting()


def nominal(node: Nominal, path: str) -> list[Token]:
    """Any kind of noun phrase."""
    return _nominal(node, path, _relative_clause)


def _relative_clause(clause: Clause, path: str) -> list[Token]:
    """A relative clause keeps 了 only if its subject is relativised and it has an object."""
    about_subject = isinstance(clause.subject, Gap)
    has_object = isinstance(clause.predicate, Action) and clause.predicate.object is not None
    return _clause(clause, path, _Setting(perfective=about_subject and has_object))


def _is_perfective(clause: Clause, action: Action) -> bool:
    return (
        clause.tense is Tense.PAST
        and not clause.negated
        and clause.modal is None
        and clause.frequency is None
        and action.verb.aspect is not Aspect.STATE
        and not (action.verb.goal_is_location and action.verb.chinese.endswith("在"))
    )


def _auxiliaries(clause: Clause, path: str) -> list[Token]:
    """Markers before the verb, in this order: negation, modal, future, progressive."""
    negation, tense = path + ".negation", (path + ".tense",)
    if clause.modal:
        if not clause.negated:
            return [Token(clause.modal.chinese, (path + ".modal",))]
        past = clause.tense is Tense.PAST
        form = clause.modal.chinese_past_negative if past else clause.modal.chinese_negative
        return [Token(form[0], (negation,)), Token(form[1:], (path + ".modal",))]
    if clause.tense is Tense.FUTURE:
        future = Token("会", tense)
        return [Token("不", (negation,)), future] if clause.negated else [future]
    if clause.tense is Tense.PROGRESSIVE:
        return _progressive(clause, path)
    return [Token(_plain_negation(clause), (negation,))] if clause.negated else []


def _progressive(clause: Clause, path: str) -> list[Token]:
    """正在, or 没在 if negated; before a place, a single 在 marks both aspect and place."""
    tokens = [Token("没", (path + ".negation",))] if clause.negated else [Token("正", (path + ".progressive",))]
    return tokens if clause.place else [*tokens, Token("在", (path + ".progressive",))]


def _plain_negation(clause: Clause) -> str:
    if not isinstance(clause.predicate, Action):
        return "不"
    verb = clause.predicate.verb
    if verb.chinese == "有":
        return "没"
    return "没" if clause.tense is Tense.PAST and verb.aspect is not Aspect.STATE else "不"


def _place(place: Place, path: str) -> list[Token]:
    return [Token("在", (path + ".preposition",)), *location(place, path, _relative_clause)]


def _action(action: Action, path: str, le: list[Token], asked: Asked | None) -> list[Token]:
    """The verb with its complements; `le` is the aspect particle, if any."""
    verb = action.verb
    word = Token(verb.chinese, (path + ".verb",))
    target = nominal(action.object, path + ".object") if action.object else []
    recipient = nominal(action.recipient, path + ".recipient") if action.recipient else []
    if verb.pattern is ChinesePattern.DISPOSAL and action.goal:
        marker = [] if isinstance(action.object, Gap) else [Token("把")]
        at = Token("在", (path + ".goal.preposition",))
        return [*marker, *target, word, at, *le, *location(action.goal, path + ".goal", _relative_clause)]
    if verb.pattern is ChinesePattern.COVERB:
        person, rest = (recipient, target) if action.recipient else (target, [])
        return [Token(verb.coverb, (path + ".preposition",)), *person, word, *le, *rest]
    if action.goal or (asked in (Asked.GOAL, Asked.PLACE) and (verb.goal_is_location or asked is Asked.GOAL)):
        return _motion(action, path, le)
    return [word, *le, *recipient, *target]


def _without_one(action: Action) -> Action:
    """A negated indefinite object takes neither 一 nor a measure word: 没有新钥匙."""
    target = action.object
    if not isinstance(target, NounPhrase) or not target.is_bare_indefinite or target.container:
        return action
    return replace(action, object=replace(target, plural=True))  # Chinese nouns have no plural form


def _motion(action: Action, path: str, le: list[Token]) -> list[Token]:
    """Motion or location; if the goal is missing, it is what the question asks for."""
    verb, goal = action.verb, action.goal
    destination = [Token("哪里", ("main.asked",))]
    if verb.goal_is_location:
        if goal:
            destination = location(goal, path + ".goal", _relative_clause)
            if not verb.chinese.endswith("在"):
                destination = destination[:1]  # 到达火车站: no localiser
        return [Token(verb.chinese, (path + ".verb",)), *le, *destination]
    towards = "去"
    if isinstance(goal, Place):
        towards = goal.chinese_motion
        destination = [Token(goal.chinese, (path + ".goal.noun",))]
    means = []
    if action.means:
        means = [Token(action.means.chinese_verb, (path + ".by",)), Token(action.means.chinese, (path + ".means",))]
    going = Token(verb.chinese + towards, (path + ".verb",))
    if towards == "回":  # 回家了, not 回了家
        return [*means, going, *destination, *le]
    return [*means, going, *le, *destination]


def _predicate(clause: Clause, path: str, setting: _Setting) -> list[Token]:
    """Auxiliaries, place, verb and complements."""
    predicate, label = clause.predicate, (path + ".complement",)
    auxiliaries = _auxiliaries(clause, path)
    be = (path + ".verb", path + ".tense")
    if isinstance(predicate, Quality):
        return [*auxiliaries, *_quality(predicate, path, clause.negated, setting.asked)]
    if isinstance(predicate, Comparison):
        adjective = predicate.adjective.chinese_comparative or predicate.adjective.chinese_predicate
        than = Token("比", (path + ".than",))
        return [*auxiliaries, than, *nominal(predicate.standard, path + ".standard"), Token(adjective, label)]
    if isinstance(predicate, Occupation):
        return [*auxiliaries, Token("是", be), Token(predicate.noun.chinese, label)]
    if isinstance(predicate, Position):
        if predicate.where is None:
            return [*auxiliaries, Token("在", be), Token("哪里", (path + ".asked",))]
        return [*auxiliaries, Token("在", be), *location(predicate.where, path + ".goal", _relative_clause)]
    place = _place(clause.place, path + ".place") if clause.place else []
    if setting.asked is Asked.PLACE and not predicate.verb.goal_is_location:
        place = [Token("在哪里", (path + ".asked",))]
    if clause.negated:
        predicate = _without_one(predicate)
    le = [Token("了", (path + ".tense",))] if setting.perfective and _is_perfective(clause, predicate) else []
    return [*auxiliaries, *place, *_action(predicate, path, le, setting.asked)]


def _quality(predicate: Quality, path: str, negated: bool, asked: Asked | None) -> list[Token]:
    """A predicate adjective takes 很 in affirmative statements; colours take 是…的."""
    adjective = Token(predicate.adjective.chinese_predicate, (path + ".complement",))
    if predicate.adjective.identifying:
        return [Token("是", (path + ".verb", path + ".tense")), adjective, Token("的")]
    if negated or asked is Asked.NOTHING:
        return [adjective]
    return [Token("很"), adjective]


def _clause(clause: Clause, path: str, setting: _Setting = _PLAIN) -> list[Token]:
    subject = nominal(clause.subject, setting.subject_path or path + ".subject")
    time = time_phrase(clause.time, path + ".time") if clause.time else []
    if setting.asked is Asked.TIME:
        time = [Token("什么时候", (path + ".asked",))]
    tokens = [*time, *subject] if clause.time_first else [*subject, *time]
    if setting.adverb:
        tokens.append(setting.adverb)
    if setting.asked is Asked.REASON:
        tokens.append(Token("为什么", (path + ".asked",)))
    if clause.frequency:
        tokens.append(Token(clause.frequency.chinese, (path + ".frequency",)))
    return [*tokens, *_predicate(clause, path, setting)]


def _refers_back(node: Complex) -> bool:
    """Whether the subject of the subordinate clause is a pronoun for the subject of a preceding main clause."""
    pronoun = node.subordinate.subject
    third_person = isinstance(pronoun, Pronoun) and pronoun.person in (Person.HE, Person.SHE, Person.THEY)
    return third_person and not node.subordinate_first and not isinstance(node.main.subject, Pronoun)


def _reordered(node: Complex, main: _Setting, subordinate: _Setting) -> tuple[list[Token], list[Token]]:
    """Subordinate and main clause; their subjects are swapped if the pronoun would otherwise precede the name."""
    if not _refers_back(node):
        return _clause(node.subordinate, "subordinate", subordinate), _clause(node.main, "main", main)
    named = replace(node.subordinate, subject=node.main.subject)
    referring = replace(node.main, subject=node.subordinate.subject)
    return (
        _clause(named, "subordinate", subordinate._replace(subject_path="main.subject")),
        _clause(referring, "main", main._replace(subject_path="subordinate.subject")),
    )


def _complex(node: Complex) -> list[Token]:
    """Reported clauses follow the main clause, reasons may follow it, all other subordinate clauses precede it."""
    link = ("link",)
    if node.link in (Link.THAT, Link.WHETHER):
        setting = _Setting(adverb=Token("是否", link)) if node.link is Link.WHETHER else _PLAIN
        return [*_clause(node.main, "main"), *_clause(node.subordinate, "subordinate", setting)]
    if node.link is Link.BECAUSE:
        main, reason = _clause(node.main, "main"), [Token("因为", link), *_clause(node.subordinate, "subordinate")]
        return [*reason, _COMMA, Token("所以", link), *main] if node.subordinate_first else [*main, _COMMA, *reason]
    if node.link is Link.ALTHOUGH:
        concession, main = _reordered(node, _PLAIN, _PLAIN)
        return [Token("虽然", link), *concession, _COMMA, Token("但是", link), *main]
    if node.link is Link.IF:
        condition, main = _reordered(node, _Setting(adverb=Token("就", link)), _PLAIN)
        return [Token("如果", link), *condition, _COMMA, *main]
    occasion, main = _reordered(node, _PLAIN, _Setting(perfective=False))
    return [*occasion, Token("的时候" if node.link is Link.WHEN else "之前", link), _COMMA, *main]


def linearise(sentence: Sentence) -> list[Token]:
    """The tokens (words, not yet characters) of a Chinese sentence."""
    stop = Token("。", ("end",))
    if isinstance(sentence, Statement):
        return [*_clause(sentence.clause, "main"), stop]
    if isinstance(sentence, Question):
        tokens = _clause(sentence.clause, "main", _Setting(asked=sentence.asked))
        particle = [Token("吗")] if sentence.asked is Asked.NOTHING else []
        return [*tokens, *particle, Token("？", ("end",))]
    if isinstance(sentence, Request):
        return [Token("请", ("please",)), *_action(sentence.action, "main", [], None), stop]
    if isinstance(sentence, Complex):
        return [*_complex(sentence), stop]
    first, second = _clause(sentence.first, "first"), _clause(sentence.second, "second")
    comma, link = [Token("，", ("link",))], []  # a comma translates "and"
    if sentence.conjunction is Conjunction.BUT:
        comma, link = [_COMMA], [Token("但是", ("link",))]
    return [*first, *comma, *link, *second, stop]
