"""Weights that make a metric of a whole corpus as high as possible: minimum error rate training (Och 2003).

Each sentence has several hypotheses with features, and the one with the highest weighted sum is chosen. Along one
weight the sum of a hypothesis is a straight line, so the choice for a sentence changes only where the upper envelope of
its lines has a corner. Between the corners of all sentences the metric is constant: all its values along the weight are
found by adding and subtracting the sufficient statistics of the hypotheses that change (section 4 of the paper).
The weights are searched in turn until none improves the metric. The result is deterministic.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from translator.evaluation.metrics import METRICS

Table = npt.NDArray[np.float64]
NARROWEST = 1e-9  # intervals between corners that are narrower could not be told apart
MOST_ROUNDS = 50


class Tuned(NamedTuple):
    weights: Table  # (F,)
    score: float


def best_weights(
    features: Sequence[Table],  # of each sentence: (hypotheses, F)
    statistics: Sequence[Table],  # of each sentence: (hypotheses, S)
    score: Callable[[Table], float],  # of the summed statistics (S,)
    start: Sequence[float],  # (F,); the first weight stays as it is
    lowest: Sequence[float],  # (F,)
) -> Tuned:
    weights = np.array(start, dtype=np.float64)
    best = score(chosen_statistics(features, statistics, weights))
    for _ in range(MOST_ROUNDS):
        before = best
        for place in range(1, len(weights)):
            value, found = search_line(features, statistics, score, weights, place, lowest[place])
            if found > best:
                weights[place], best = value, found
        if best <= before:
            break
    return Tuned(weights, best)


def chosen_statistics(features: Sequence[Table], statistics: Sequence[Table], weights: Table) -> Table:
    """The sum of the statistics of the hypotheses with the highest weighted sums."""
    chosen = [table[int(np.argmax(rows @ weights))] for rows, table in zip(features, statistics, strict=True)]
    total: Table = np.sum(chosen, axis=0)
    return total


def search_line(
    features: Sequence[Table],
    statistics: Sequence[Table],
    score: Callable[[Table], float],
    weights: Table,
    place: int,
    lowest: float,
) -> tuple[float, float]:
    """The best value of one weight, which is at least `lowest`, and the score with it.

    Of equally good values it is the one in the middle of the interval that is nearest to the present value.
    """
    others = weights.copy()
    others[place] = 0
    corners: list[tuple[float, int, int]] = []  # where, in which sentence, which hypothesis is chosen from there on
    total = np.zeros_like(statistics[0][0])
    present: list[int] = []
    for sentence, rows in enumerate(features):
        first, *later = upper_envelope(rows @ others, rows[:, place])
        present.append(first[1])
        total = total + statistics[sentence][first[1]]
        corners += [(x, sentence, hypothesis) for x, hypothesis in later]
    corners.sort()
    best = (-np.inf, 0.0, float(weights[place]))  # score, minus the distance, value
    left = -np.inf
    for x, sentence, hypothesis in [*corners, (np.inf, -1, -1)]:
        begin = max(left, lowest)
        if x - begin > NARROWEST:
            value = _inside(begin, x)
            best = max(best, (score(total), -abs(value - weights[place]), value))
        if sentence >= 0:
            total = total - statistics[sentence][present[sentence]] + statistics[sentence][hypothesis]
            present[sentence] = hypothesis
        left = x
    return best[2], best[0]


def upper_envelope(offsets: Table, slopes: Table) -> list[tuple[float, int]]:
    """The upper envelope: which of the lines offset + x · slope is highest, and from where on; of equals the first."""
    current = min(range(len(slopes)), key=lambda line: (slopes[line], -offsets[line], line))
    found, x = [(-np.inf, current)], -np.inf
    while True:
        steeper = np.flatnonzero(slopes > slopes[current])
        if not len(steeper):
            return found
        crossings = (offsets[current] - offsets[steeper]) / (slopes[steeper] - slopes[current])
        # Where several lines cross at one point, the steepest is the highest after it.
        x = max(x, float(crossings.min()))
        candidates = steeper[crossings <= x]
        current = min(candidates, key=lambda line: (-slopes[line], -offsets[line], line))
        found.append((x, int(current)))


def _inside(begin: float, end: float) -> float:
    """A value well inside an interval that may be open on either side."""
    if np.isinf(begin) and np.isinf(end):
        return 0.0
    if np.isinf(begin):
        return end - max(1.0, abs(end))
    if np.isinf(end):
        return begin + max(1.0, abs(begin))
    return (begin + end) / 2


def candidate_statistics(
    candidates: Sequence[Sequence[str]], references: Sequence[str], language: str, metric_name: str
) -> tuple[list[Table], Callable[[Table], float]]:
    """sacrebleu's statistics of all hypotheses of every sentence, and the score of a sum of them."""
    repeated = [reference for texts, reference in zip(candidates, references, strict=True) for _ in texts]
    metric = METRICS[metric_name].make(language, [repeated])
    rows = np.array(metric._extract_corpus_statistics([text for texts in candidates for text in texts], None))
    ends = np.cumsum([len(texts) for texts in candidates])[:-1]

    def score(total: Table) -> float:
        return float(metric._compute_score_from_stats([round(value) for value in total]).score)

    return [part.astype(np.float64) for part in np.split(rows, ends)], score
