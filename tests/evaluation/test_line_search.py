"""Weights found by line search, compared with trying out every interval."""

import itertools

import numpy as np
import pytest

from translator.evaluation.line_search import (
    best_weights,
    candidate_statistics,
    chosen_statistics,
    search_line,
    upper_envelope,
)
from translator.evaluation.metrics import score_corpus

RANDOM = np.random.default_rng(3)


def mean(total: np.ndarray) -> float:
    return float(total[0] / total[1])


def problem(num_sentences: int = 6, num_hypotheses: int = 4) -> tuple[list[np.ndarray], list[np.ndarray]]:
    features = [RANDOM.normal(size=(num_hypotheses, 3)) for _ in range(num_sentences)]
    statistics = [
        np.stack([RANDOM.integers(0, 9, num_hypotheses), RANDOM.integers(1, 5, num_hypotheses)], 1).astype(float)
        for _ in range(num_sentences)
    ]
    return features, statistics


def test_the_upper_envelope_is_the_maximum_of_the_lines() -> None:
    for _ in range(50):
        offsets, slopes = RANDOM.integers(-3, 4, (2, 6)).astype(float)
        envelope = upper_envelope(offsets, slopes)
        starts = [start for start, _ in envelope]
        assert starts == sorted(starts)
        for x in RANDOM.uniform(-8, 8, 20):
            line = [index for start, index in envelope if start <= x][-1]
            assert offsets[line] + x * slopes[line] == pytest.approx((offsets + x * slopes).max())


@pytest.mark.parametrize("lowest", [-np.inf, 0.0])
def test_a_line_is_searched_exactly(lowest: float) -> None:
    for _ in range(20):
        features, statistics = problem()
        weights = np.array([1.0, 0.3, -0.2])
        value, found = search_line(features, statistics, mean, weights, 1, lowest)
        crossings = set()
        for rows in features:
            offsets, slopes = rows @ (weights * [1, 0, 1]), rows[:, 1]
            for a, b in itertools.combinations(range(len(rows)), 2):
                crossings.add((offsets[a] - offsets[b]) / (slopes[b] - slopes[a]))
        borders = sorted(x for x in crossings if x > lowest)
        tried = [borders[0] - 1 if lowest < 0 else borders[0] / 2, borders[-1] + 1]
        tried += [(a + b) / 2 for a, b in itertools.pairwise(borders)]

        def at(x: float) -> float:
            return mean(chosen_statistics(features, statistics, np.array([1.0, x, -0.2])))  # noqa: B023

        assert found == pytest.approx(max(map(at, tried)))
        assert at(value) == pytest.approx(found)
        assert value >= lowest


def test_weights_are_improved_until_none_helps_and_are_deterministic() -> None:
    features, statistics = problem(20)
    start = [1.0, 0.0, 0.0]
    tuned = best_weights(features, statistics, mean, start, [0, 0, -np.inf])
    assert tuned.score > mean(chosen_statistics(features, statistics, np.array(start)))
    assert tuned.score == pytest.approx(mean(chosen_statistics(features, statistics, tuned.weights)))
    assert tuned.weights[0] == 1
    assert tuned.weights[1] >= 0
    again = best_weights(features, statistics, mean, start, [0, 0, -np.inf])
    assert (again.weights == tuned.weights).all()


@pytest.mark.parametrize("metric", ["bleu", "chrf"])
def test_statistics_add_up_to_the_score_of_the_corpus(metric: str) -> None:
    candidates = [
        ["ein Hund rennt schnell", "ein Hund"],
        ["die Katze schläft heute nicht"],
        ["", "Schnee im Winter ist"],
    ]
    references = ["ein Hund rennt sehr schnell", "die Katze schläft heute", "Schnee im Winter ist kalt"]
    statistics, score = candidate_statistics(candidates, references, "de", metric)
    for chosen in itertools.product(*(range(len(texts)) for texts in candidates)):
        total = np.sum([rows[index] for rows, index in zip(statistics, chosen, strict=True)], axis=0)
        texts = [texts[index] for texts, index in zip(candidates, chosen, strict=True)]
        assert score(total) == pytest.approx(score_corpus(texts, references, "de", metrics=(metric,))[metric])
