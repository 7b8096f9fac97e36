"""German morphology: articles, adjective endings, noun cases, pronouns and verb forms."""

from enum import Enum

from translator.demo.lexicon_entries import Case, Gender, Modal, Noun, Verb
from translator.demo.syntax import Person

_CASES = (Case.NOMINATIVE, Case.ACCUSATIVE, Case.DATIVE, Case.GENITIVE)
# Columns of all tables below: masculine, feminine, neuter, plural.
_COLUMNS = {Gender.MASCULINE: 0, Gender.FEMININE: 1, Gender.NEUTER: 2}


class Declension(Enum):
    """Adjective declensions: after der-words, after ein-words, and after neither."""

    WEAK = "weak"
    MIXED = "mixed"
    STRONG = "strong"


def _table(*rows: str) -> dict[Case, tuple[str, ...]]:
    """One row per case; "-" is the empty ending."""
    return {
        case: tuple("" if form == "-" else form for form in row.split()) for case, row in zip(_CASES, rows, strict=True)
    }


_DEFINITE = _table("der die das die", "den die das die", "dem der dem den", "des der des der")
_RELATIVE = _table("der die das die", "den die das die", "dem der dem denen", "dessen deren dessen deren")
_DER_WORD = _table("er e es e", "en e es e", "em er em en", "es er es er")
_EIN_WORD = _table("- e - e", "en e - e", "em er em en", "es er es er")
_ADJECTIVE = {
    Declension.WEAK: _table("e e e en", "en e e en", "en en en en", "en en en en"),
    Declension.MIXED: _table("er e es en", "en e es en", "en en en en", "en en en en"),
    Declension.STRONG: _table("er e es e", "en e es e", "em er em en", "en er en er"),
}
_PRONOUNS = {
    Person.I: ("ich", "mich", "mir"),
    Person.HE: ("er", "ihn", "ihm"),
    Person.SHE: ("sie", "sie", "ihr"),
    Person.WE: ("wir", "uns", "uns"),
    Person.THEY: ("sie", "sie", "ihnen"),
}
_CONTRACTIONS = {
    ("in", "dem"): "im",
    ("in", "das"): "ins",
    ("an", "dem"): "am",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
}


def _column(gender: Gender, plural: bool) -> int:
    return 3 if plural else _COLUMNS[gender]


def definite_article(gender: Gender, plural: bool, case: Case) -> str:
    """der, die, das ..."""
    return _DEFINITE[case][_column(gender, plural)]


def relative_pronoun(gender: Gender, plural: bool, case: Case) -> str:
    """Like the article, but "denen" in the dative plural."""
    return _RELATIVE[case][_column(gender, plural)]


def der_word(stem: str, gender: Gender, plural: bool, case: Case) -> str:
    """Determiners such as dies-er and viel-e."""
    return stem + _DER_WORD[case][_column(gender, plural)]


def ein_word(stem: str, gender: Gender, plural: bool, case: Case) -> str:
    """ein, kein and the possessives; "unser" keeps its e before endings."""
    return stem + _EIN_WORD[case][_column(gender, plural)]


def adjective_ending(declension: Declension, gender: Gender, plural: bool, case: Case) -> str:
    """The ending of an attributive adjective."""
    return _ADJECTIVE[declension][case][_column(gender, plural)]


def personal_pronoun(person: Person, case: Case) -> str:
    """ich, mich, mir ..."""
    return _PRONOUNS[person][_CASES.index(case)]


def noun_form(noun: Noun, plural: bool, case: Case) -> str:
    """The noun in the given number and case."""
    if plural:
        needs_n = case is Case.DATIVE and not noun.german_plural.endswith(("n", "s"))
        return noun.german_plural + ("n" if needs_n else "")
    if case is Case.NOMINATIVE or noun.gender is Gender.FEMININE:
        return noun.german
    if noun.german_oblique:
        return noun.german_oblique
    if case is Case.GENITIVE:
        return noun.german_genitive or noun.german + "s"
    return noun.german


def contraction(preposition: str, article: str) -> str | None:
    """The contraction of a preposition with a definite article, if there is one."""
    return _CONTRACTIONS.get((preposition, article))


def present(verb: Verb, person: Person) -> str:
    """Present tense without the separable prefix."""
    if person in (Person.HE, Person.SHE):
        return verb.german_third
    if person is Person.I:
        return verb.german_first or _stem(verb.german) + "e"
    return verb.german_plural or verb.german


def preterite(singular: str, person: Person) -> str:
    """The preterite; `singular` is its first and third person singular."""
    if person in (Person.WE, Person.THEY):
        return singular + ("n" if singular.endswith("e") else "en")
    return singular


def modal_present(modal: Modal, person: Person) -> str:
    """Present tense of a modal; "should" is the subjunctive "sollte", which inflects like a preterite."""
    if modal.german_third.endswith("te"):
        return preterite(modal.german_third, person)
    return modal.german if person in (Person.WE, Person.THEY) else modal.german_third


def perfect_auxiliary(verb: Verb, person: Person) -> str:
    """haben or sein in the present tense."""
    forms = ("bin", "ist", "sind") if verb.moves else ("habe", "hat", "haben")
    return _by_person(forms, person)


def future_auxiliary(person: Person) -> str:
    """werden in the present tense."""
    return _by_person(("werde", "wird", "werden"), person)


def _by_person(forms: tuple[str, str, str], person: Person) -> str:
    if person is Person.I:
        return forms[0]
    return forms[1] if person in (Person.HE, Person.SHE) else forms[2]


def _stem(infinitive: str) -> str:
    return infinitive[:-2] if infinitive.endswith("en") else infinitive[:-1]
