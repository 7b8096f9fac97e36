"""Word sequences that the model writes too often or too rarely (Neubig et al. 2019, section 2.3)."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

LONGEST = 4  # words
SMOOTHING = 1.0  # compare-mt's: what occurs once or twice says little
NUM_SHOWN = 15
Ngram = tuple[str, ...]


def ngrams_of(words: Sequence[str]) -> Iterator[Ngram]:
    for size in range(1, LONGEST + 1):
        for start in range(len(words) - size + 1):
            yield tuple(words[start : start + size])


def unbalanced_ngrams(
    outputs: Sequence[Sequence[str]], references: Sequence[Sequence[str]], joiner: str
) -> dict[str, list[dict[str, Any]]]:
    """The n-grams with most surplus and those with most deficit, compared with the reference of the same sentence.

    They are ranked by (surplus + 1) / (surplus + deficit + 2), where the surplus is how often the n-gram was written
    beyond the reference, and the deficit how often it is missing.
    """
    surplus, deficit, matched = Counter[Ngram](), Counter[Ngram](), Counter[Ngram]()
    for output, reference in zip(outputs, references, strict=True):
        written, wanted = Counter(ngrams_of(output)), Counter(ngrams_of(reference))
        surplus.update(written - wanted)
        deficit.update(wanted - written)
        matched.update(written & wanted)

    def balance(ngram: Ngram) -> float:
        more, less = surplus[ngram] + SMOOTHING, deficit[ngram] + SMOOTHING
        return more / (more + less)

    def row(ngram: Ngram) -> dict[str, Any]:
        return {
            "ngram": joiner.join(ngram),
            "num_surplus": surplus[ngram],
            "num_missing": deficit[ngram],
            "num_matched": matched[ngram],
            "balance": balance(ngram),
        }

    # Among equals, the longer n-gram says more.
    too_often = sorted(surplus, key=lambda ngram: (-balance(ngram), -len(ngram), ngram))[:NUM_SHOWN]
    too_rarely = sorted(deficit, key=lambda ngram: (balance(ngram), -len(ngram), ngram))[:NUM_SHOWN]
    return {"too_often": [*map(row, too_often)], "too_rarely": [*map(row, too_rarely)]}
