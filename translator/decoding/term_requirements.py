"""From a file of terms to the terms that the translation of a sentence must contain."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from translator.decoding.hypotheses import length_limit
from translator.decoding.interfaces import TextTokenizer
from translator.decoding.term_progress import PieceTexts, RequiredTerms, leave_out
from translator.decoding.terms import TermList
from translator.schema.decode import SearchOptions


@dataclass(frozen=True)
class Requirements:
    """The terms required in the translation of a sentence, and those that do not fit."""

    required: RequiredTerms | None = None
    left_out: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """In pieces; 0 if nothing is required."""
        return 0 if self.required is None else self.required.size


NO_TERMS = Requirements()


class Terminology:
    """The terms of a file, for a model's vocabulary without the pieces of `never`.

    `joiner` is empty for languages without spaces.
    """

    def __init__(
        self,
        path: str,
        tokenizer: TextTokenizer,
        normalize: Callable[[str], str] | None,
        joiner: str,
        never: Sequence[int] = (),
    ) -> None:
        self.path = path
        self.terms = TermList.read(Path(path), normalize)
        self.pieces = PieceTexts(tokenizer, never)
        self.without_spaces = not joiner

    def requirements(
        self, text: str, source_length: int, prefix: Sequence[int], options: SearchOptions
    ) -> Requirements:
        """For a source text of `source_length` pieces whose translation begins with the prefix."""
        wanted = self.terms.required(text)
        if not wanted:
            return NO_TERMS
        _, longest = length_limit(source_length, options, len(prefix))
        required = RequiredTerms(wanted, self.pieces, without_spaces=self.without_spaces)
        required, left_out = leave_out(required, prefix, longest)
        return Requirements(required if required.terms else None, tuple(left_out))
