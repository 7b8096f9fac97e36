"""Reranking: the translations found by a search, scored by other models as well.

A hypothesis h of a source s gets the score

    normalised score by the model itself  +  Σ_m w_m · log p_m / length  +  w · number of pieces

where p_m is p(h | s) for a model of the same direction, and p(s | h) for one of the opposite direction, which prefers
translations from which the source can be recovered (noisy-channel reranking: Yee et al. 2019, equation 3). A model that
writes from right to left gives the probability of the reversed pieces (Liu et al. 2016). Each model has its own
vocabulary. Log-probabilities are divided by the number of pieces of the text.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from translator.decoding.forced_decoding import Forced
from translator.decoding.hypotheses import LOWEST_SCORE, Hypothesis

Features = npt.NDArray[np.float64]


class Scorer(Protocol):
    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[Forced]: ...


@dataclass(frozen=True)
class Judge:
    scorer: Scorer
    is_reverse: bool
    weight: float = 1.0
    checksum: str = ""  # of its weights

    def scores(self, sources: Sequence[str], translations: Sequence[str]) -> list[float]:
        sides = (translations, sources) if self.is_reverse else (sources, translations)
        return [one.score / len(one.piece_scores) for one in self.scorer.score(*sides)]


class Reranker:
    def __init__(self, judges: Sequence[Judge], length_weight: float = 0.0) -> None:
        self.judges = list(judges)
        self.weights = np.array([1.0, *(judge.weight for judge in judges), length_weight])  # (F,)

    @property
    def identity(self) -> list[list[Any]]:
        """Everything that the order depends on, for JSON."""
        length = ["length", float(self.weights[-1])]
        return [*([judge.checksum, judge.is_reverse, judge.weight] for judge in self.judges), length]

    def features(
        self, sources: Sequence[str], translations: Sequence[str], hypotheses: Sequence[Hypothesis]
    ) -> Features:
        """The features (N, F) of N hypotheses, given their texts and the source of each."""
        own = [hypothesis.normalized_score for hypothesis in hypotheses]
        judged = [judge.scores(sources, translations) for judge in self.judges]
        lengths = [len(hypothesis.ids) + 1.0 for hypothesis in hypotheses]
        table = np.array([own, *judged, lengths], dtype=np.float64).T
        return np.nan_to_num(table, nan=LOWEST_SCORE, neginf=LOWEST_SCORE)

    def best_first(self, hypotheses: Sequence[Hypothesis], features: Features) -> list[Hypothesis]:
        """The hypotheses of a sentence by their new scores; equal ones stay in order."""
        scores = features @ self.weights  # (N,)
        order = np.argsort(-scores, kind="stable")
        return [
            hypotheses[index]._replace(
                normalized_score=float(scores[index]), model_score=hypotheses[index].normalized_score
            )
            for index in order
        ]
