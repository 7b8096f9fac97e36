"""Terminology: a list of source terms with their required translations.

A file of terms has a line for each: the source term, a tab, and the target term. Blank lines and lines that begin with
`#` are skipped. In the source, terms are found as whole words, the longest first, so that "credit card" wins over
"credit"; in scripts without spaces they are found anywhere. A source term without capital letters is found in any
case ("bank" also at the beginning of a sentence, as "Bank"), one with a capital letter only as it is written ("US").
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, Self

from translator.errors import UserError
from translator.files.lines import read_lines
from translator.languages import whole_word

COMMENT = "#"


class Term(NamedTuple):
    source: str
    target: str


class TermList:
    """Finds the target terms that the translation of a text must contain."""

    def __init__(self, terms: Sequence[Term]) -> None:
        longest_first = sorted(terms, key=lambda term: -len(term.source))
        self._targets = [term.target for term in longest_first]
        patterns = [f"({_in_any_case(term.source)})" for term in longest_first]
        self._pattern = re.compile("|".join(patterns)) if patterns else None

    @classmethod
    def read(cls, path: Path, normalize: Callable[[str], str] | None = None) -> Self:
        """The terms of a file, in the form in which text reaches the model."""
        found: dict[str, str] = {}
        for number, line in enumerate(read_lines(path), start=1):
            if not line.strip() or line.startswith(COMMENT):
                continue
            columns = line.split("\t")
            source, target = (_clean(column, normalize) for column in (*columns[:2], "")[:2])
            place = f"--terms {path}, line {number}"
            if len(columns) != 2 or not source or not target:
                raise UserError(f"{place}: must be a source term, a tab and its translation")
            if found.setdefault(source, target) != target:
                raise UserError(f"{place}: {source!r} already has the translation {found[source]!r}; give only one")
        return cls([Term(*term) for term in found.items()])

    def required(self, text: str) -> list[str]:
        """The target terms for a source text, one for each occurrence of a source term, in its order."""
        if self._pattern is None:
            return []
        return [self._targets[match.lastindex - 1] for match in self._pattern.finditer(text) if match.lastindex]


def _clean(text: str, normalize: Callable[[str], str] | None) -> str:
    return (normalize(text) if normalize else text).strip()


def _in_any_case(term: str) -> str:
    pattern = whole_word(term)
    return f"(?i:{pattern})" if term == term.lower() else pattern
