"""Minimum Bayes risk: the translation that is most like all the others the model might have given.

Eikema and Aziz 2022 (arXiv:2108.04718), equation 5: the candidates of a sentence are also the pseudo-references against
which each is judged, so the expected utility of a candidate is its mean similarity to all of them, itself included.
"""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from translator.decoding.hypotheses import Hypothesis

# The utility of every text with every other one as its reference: U[hypothesis, reference].
PairwiseUtility = Callable[[Sequence[str]], npt.NDArray[np.float64]]


def least_risk_first(
    hypotheses: Sequence[Hypothesis], texts: Sequence[str], utility: PairwiseUtility, num_best: int
) -> list[Hypothesis]:
    """The candidates with the highest expected utility, which becomes their score; ties stay in order.

    Equal texts are one candidate that counts as often as it occurs.
    """
    counts = Counter(texts)  # in the order of their first occurrence
    first = dict(zip(reversed(texts), reversed(hypotheses), strict=True))
    weights = np.array(list(counts.values()), dtype=np.float64)  # (U,)
    expected = utility(list(counts)) @ weights / weights.sum()  # (U,)
    order = np.argsort(-expected, kind="stable")[:num_best]
    chosen = [(first[text], float(value)) for text, value in zip(counts, expected, strict=True)]
    return [
        Hypothesis(found.ids, value, value, model_score=found.normalized_score)
        for found, value in (chosen[index] for index in order)
    ]
