"""Signs of trouble that an average score hides: outputs that are empty, copied from the source or caught in a loop."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from translator.data.normalization import is_blank
from translator.languages import looks_written_without_spaces, sentence_length

LONGEST_LOOP = 8  # words that repeat as a group
MIN_REPEATS = 3  # in a row, before it is called a loop


@dataclass(frozen=True)
class Diagnostics:
    """Shares of the sentences, between 0 and 1. Sentences with a blank source are ignored."""

    empty: float
    copied: float
    repeating: float
    num_sentences: int

    def to_dict(self) -> dict[str, float | int]:
        return asdict(self)


def is_copied(source: str, output: str) -> bool:
    """The output repeats the source, ignoring case and spaces. Numbers and single words may legitimately be equal."""
    words = source.casefold().split()
    if sentence_length(source, in_characters=looks_written_without_spaces([source])) <= 1:
        return False
    return any(map(str.isalpha, source)) and words == output.casefold().split()


def is_repeating(text: str) -> bool:
    """Some group of up to eight words (characters, in a text without spaces) is repeated three times in a row.

    A single character must be repeated five times in a row: "…" and "!!!" are not loops.
    """
    words = text.split()
    by_character = len(words) == 1
    if by_character:
        words = list(words[0])
    for size in range(1, LONGEST_LOOP + 1):
        needed = 5 if by_character and size == 1 else MIN_REPEATS
        equal = 0  # consecutive words that equal the word `size` positions away
        for index in range(len(words) - size):
            equal = equal + 1 if words[index] == words[index + size] else 0
            if equal >= size * (needed - 1):
                return True
    return False


def diagnose(sources: Sequence[str], outputs: Sequence[str]) -> Diagnostics:
    pairs = [(source, output) for source, output in zip(sources, outputs, strict=True) if not is_blank(source)]
    total = max(1, len(pairs))
    return Diagnostics(
        empty=sum(is_blank(output) for _, output in pairs) / total,
        copied=sum(is_copied(source, output) for source, output in pairs) / total,
        repeating=sum(is_repeating(output) and not is_repeating(source) for source, output in pairs) / total,
        num_sentences=len(pairs),
    )
