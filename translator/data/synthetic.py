"""Pairs with one side written by a model: which of them are kept for training, and why the others are dropped.

The checks in their order; a dropped pair is counted under the first one that it fails:

    excluded          the original text is one of those that must not be trained on, such as a test set
    drop_blank …      the steps of cleaning that look at one pair alone (see `translator.data.cleaning`)
    min_score         the model's normalised score is too low
    drop_duplicates   the pair has occurred before
    keep_share        of those that are left, only the share with the best scores is kept
"""

import math
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import compress
from typing import NamedTuple

from translator.data.cleaning import Cleaning, pair_digest, text_digest
from translator.data.normalization import normalize_text


class Candidate(NamedTuple):
    original: str
    synthetic: str
    score: float  # the higher, the likelier


@dataclass(frozen=True)
class Selection:
    """What is kept of the candidates. `original_is_source` is False for back-translation."""

    cleaning: Cleaning
    original_is_source: bool = True
    min_score: float | None = None
    keep_share: float = 1.0
    excluded: Collection[bytes] = ()  # as `excluded_texts` gives them
    dropped: Counter[str] = field(default_factory=Counter)  # how many pairs failed which step, once they are read

    def pairs(self, read: Callable[[], Iterable[Candidate]]) -> Iterator[tuple[str, str]]:
        """The (source, target) pairs that are kept, in order. With `keep_share` the candidates are read twice."""
        if self.keep_share == 1:
            yield from (pair for pair, _ in self._acceptable(read()))
            return
        scores = array("d", (score for _, score in self._acceptable(read())))
        chosen = best_share(scores, self.keep_share)
        yield from compress((pair for pair, _ in self._acceptable(read())), chosen)
        self.dropped["keep_share"] += len(scores) - sum(chosen)

    def _acceptable(self, candidates: Iterable[Candidate]) -> Iterator[tuple[tuple[str, str], float]]:
        self.dropped.clear()
        seen: set[bytes] = set()
        for candidate in candidates:
            original, synthetic = normalize_text(candidate.original), normalize_text(candidate.synthetic)
            pair = (original, synthetic) if self.original_is_source else (synthetic, original)
            fault = self._fault(original, pair, candidate.score)
            if fault is None and self.cleaning.drop_duplicates:
                key = pair_digest(*pair)
                fault = "drop_duplicates" if key in seen else None
                seen.add(key)
            if fault is not None:
                self.dropped[fault] += 1
                continue
            if not self.cleaning.normalize:
                original, synthetic, _ = candidate
                pair = (original, synthetic) if self.original_is_source else (synthetic, original)
            yield pair, candidate.score

    def _fault(self, original: str, pair: tuple[str, str], score: float) -> str | None:
        if self.excluded and text_digest(original) in self.excluded:
            return "excluded"
        if fault := self.cleaning.fault(*pair):
            return fault
        return "min_score" if self.min_score is not None and score < self.min_score else None


def best_share(scores: "array[float]", share: float) -> bytearray:
    """Marks this share of the scores with 1, the best ones; among equal scores, the first."""
    num_kept = min(len(scores), math.ceil(share * len(scores) - 1e-9))  # 0.9 of 10 is 9, despite rounding errors
    chosen = bytearray(len(scores))
    for index in sorted(range(len(scores)), key=lambda index: -scores[index])[:num_kept]:
        chosen[index] = 1
    return chosen


def excluded_texts(lines: Iterable[str]) -> set[bytes]:
    """Digests of texts that must not be trained on, 16 bytes each."""
    return {text_digest(normalize_text(line)) for line in lines}
