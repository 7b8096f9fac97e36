"""How much of its required terms a translation already contains.

What counts is the text of a hypothesis and not its pieces, so that a term is recognised whichever pieces spell it. The
text is kept as UTF-8, since a vocabulary may write a character byte by byte.

A term counts where it is a whole word, so that "Hund" is not found in "Hunde". At the beginning of the text its first
letter may be a capital. Terms must not overlap in the text: the longest term is looked for first, and a term
that is required twice has to be there twice.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from translator.decoding.alignment import WORD_START, byte_of
from translator.decoding.interfaces import TextTokenizer
from translator.errors import UserError
from translator.ids import NUM_SPECIAL
from translator.languages import is_part_of_word, whole_word

_ERRORS = "surrogateescape"  # decodes bytes that are not UTF-8 (yet) so that encoding gives them back


class PieceTexts:
    """The text that each piece of a vocabulary writes, and the pieces that write a text."""

    def __init__(self, tokenizer: TextTokenizer, never: Sequence[int] = ()) -> None:
        names = tokenizer.target_pieces(range(NUM_SPECIAL, tokenizer.target_vocab_size))
        single = [byte_of(name) for name in names]
        texts = [
            byte if byte is not None else name.replace(WORD_START, " ").encode("utf-8", _ERRORS)
            for name, byte in zip(names, single, strict=True)
        ]
        self.texts = [b""] * NUM_SPECIAL + texts
        in_bytes = {byte: number for number, byte in enumerate(single, NUM_SPECIAL) if byte is not None}
        whole = zip(texts, single, enumerate(texts, NUM_SPECIAL), strict=True)
        self.pieces = in_bytes | {text: number for text, byte, (number, _) in whole if byte is None}
        self.pieces = {text: number for text, number in self.pieces.items() if number not in never}
        self.longest = max(map(len, self.pieces), default=0)
        self.tokenizer = tokenizer

    def write(self, ids: Sequence[int]) -> bytes:
        return b"".join(self.texts[piece] for piece in ids)

    def spell(self, text: bytes) -> list[int] | None:
        """Pieces that write the text, each as long as possible; None if there are none."""
        ids: list[int] = []
        position = 0
        while position < len(text):
            ends = range(min(len(text), position + self.longest), position, -1)
            end = next((end for end in ends if text[position:end] in self.pieces), None)
            if end is None:
                return None
            ids.append(self.pieces[text[position:end]])
            position = end
        return ids

    def usual(self, term: str) -> list[int]:
        """The pieces of a term after a space, as the tokenizer would split it in training text, if it can."""
        (ids,) = self.tokenizer.encode_target([term])
        is_exact = all(piece >= NUM_SPECIAL for piece in ids) and self.write(ids) == b" " + term.encode()
        spelled = ids if is_exact else self.spell(b" " + term.encode())
        if spelled is None:
            raise UserError(f"terms: the model's vocabulary cannot write {term!r}; leave this term out")
        return spelled


class Progress(NamedTuple):
    num_done: int  # pieces of the terms that have been written: the bank of the hypothesis
    num_needed: int  # upper bound on the pieces still needed; 0 if all terms are there
    following: tuple[int, ...]  # pieces that begin or continue a missing term


class _Term:
    def __init__(self, text: str, pieces: PieceTexts) -> None:
        self.text, self.bytes = text, text.encode()
        pattern = whole_word(text)
        if text[0].islower() and len(text[0].upper()) == 1:
            pattern += "|^ ?" + whole_word(text[0].upper() + text[1:])
        self.pattern = re.compile(pattern)
        usual = pieces.usual(text)
        # How the rest of " term" is spelled from each place where one of its usual pieces begins.
        self.rests: dict[bytes, list[int] | None] = {}
        for number in range(len(usual)):
            self.rests[pieces.write(usual[number:])] = usual[number:]
        self.usual = usual
        self.size = max(len(usual), len(self.rest(self.bytes, pieces) or []))

    def rest(self, text: bytes, pieces: PieceTexts) -> list[int] | None:
        """The pieces that write this last part of " term"; None if there are none."""
        if text not in self.rests:
            self.rests[text] = pieces.spell(text)
        return self.rests[text]


class RequiredTerms:
    """The terms that the translation of one sentence must contain; one that is given twice is needed twice."""

    def __init__(self, terms: Sequence[str], pieces: PieceTexts, *, without_spaces: bool = False) -> None:
        self.terms = list(terms)
        self.pieces = pieces
        self.without_spaces = without_spaces
        counts = Counter(terms)
        # The longest first, since it is looked for first.
        self._terms = [(_Term(text, pieces), counts[text]) for text in sorted(counts, key=lambda text: -len(text))]
        self.size = sum(count * term.size for term, count in self._terms)
        self._known: dict[bytes, Progress] = {}

    def progress(self, text: bytes) -> Progress:
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = self._progress(text)
        return known

    def _progress(self, text: bytes) -> Progress:
        missing, free = self._missing(text.decode("utf-8", _ERRORS))
        if not missing:
            return Progress(self.size, 0, ())
        rests = [(term, rest) for term, _ in missing for rest in self._rests(term, text, free)]
        total = sum(count * term.size for term, count in missing)
        # The most advanced term is finished first, the others are written from their beginning.
        needed = total - max(term.size - len(rest) for term, rest in rests)
        return Progress(self.size - needed, needed, tuple(dict.fromkeys(rest[0] for _, rest in rests)))

    def _missing(self, text: str) -> tuple[list[tuple[_Term, int]], int]:
        """The missing terms with their counts, and the byte position at which the last term found ends."""
        taken: list[tuple[int, int]] = []
        missing = []
        for term, count in self._terms:
            for match in term.pattern.finditer(text):
                if count and all(match.end() <= start or end <= match.start() for start, end in taken):
                    taken.append(match.span())
                    count -= 1
            if count:
                missing.append((term, count))
        return missing, len(text[: max((end for _, end in taken), default=0)].encode("utf-8", _ERRORS))

    def _rests(self, term: _Term, text: bytes, free: int) -> Iterator[list[int]]:
        """The pieces that complete the term after the text, which may end with its beginning."""
        for length in range(min(len(term.bytes) - 1, len(text) - free), 0, -1):
            if text.endswith(term.bytes[:length]) and self._can_begin(term, text[: len(text) - length]):
                rest = term.rest(term.bytes[length:], self.pieces)
                if rest is not None:
                    yield rest
                    return
        can_follow = text.endswith(b" ") or (self.without_spaces and self._can_begin(term, text))
        bare = term.rest(term.bytes, self.pieces) if can_follow or not text else None
        if bare is not None:
            yield bare
        if bare is None or not text:  # the first piece of a text usually begins with a space
            yield term.usual

    def _can_begin(self, term: _Term, before: bytes) -> bool:
        """Whether the term would be at the beginning of a word after this text."""
        last = before.decode("utf-8", _ERRORS)[-1:]
        return not (last and is_part_of_word(last) and is_part_of_word(term.text[0]))


def leave_out(required: RequiredTerms, prefix: Sequence[int], max_length: int) -> tuple[RequiredTerms, list[str]]:
    """Drops terms from the end until the rest fits into an output of this length after its prefix."""
    terms, left_out = list(required.terms), list[str]()
    room = max_length - len(prefix)
    while terms and required.progress(required.pieces.write(prefix)).num_needed > room:
        left_out.insert(0, terms.pop())
        required = RequiredTerms(terms, required.pieces, without_spaces=required.without_spaces)
    return required, left_out
