"""Whether one output is better than another, or only luckier: paired tests over sacrebleu's statistics.

The tests and their random numbers are sacrebleu's, with one difference: a resampling that differs exactly as much as
the outputs themselves counts as evidence for chance, as the p-value is defined (Noreen 1989: "at least as large"). For
sacrebleu only a larger difference counts, so it would call two identical outputs significantly different.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sacrebleu.metrics.base import Metric as SacrebleuMetric

from translator.evaluation.metrics import BOOTSTRAP_SEED, METRICS, quick_metrics, reference_streams

ROUNDING = 1e-9  # score differences (on a 0-100 scale) closer than this count as equal
# numpy takes random bits from words of 32, so that blocks of 32 trials get the same bits as all trials at once.
TRIALS_TOGETHER = 32


@dataclass(frozen=True)
class Comparison:
    """One metric of outputs A and B, and the probabilities of a difference this large if they were equally good."""

    metric: str
    score_a: float
    score_b: float
    p_bootstrap: float  # paired bootstrap resampling (Koehn 2004)
    p_randomization: float  # paired approximate randomisation (Riezler and Maxwell 2005)
    signature: str

    @property
    def better(self) -> str:
        """A, B, or neither if they are equal."""
        if self.score_a == self.score_b:
            return ""
        return "A" if (self.score_a > self.score_b) != METRICS[self.metric].lower_is_better else "B"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"better": self.better}


def compare_outputs(
    output_a: Sequence[str],
    output_b: Sequence[str],
    references: Sequence[str] | Sequence[Sequence[str]],
    target_language: str,
    *,
    metrics: Collection[str] | None = None,
    num_bootstrap: int = 1_000,
    num_randomizations: int = 10_000,
) -> list[Comparison]:
    """Both paired tests for each metric, by default for the quick ones."""
    streams = reference_streams(output_a, references)
    reference_streams(output_b, references)
    comparisons = []
    for name in quick_metrics() if metrics is None else metrics:
        metric = METRICS[name].make(target_language, streams)
        statistics = [metric._extract_corpus_statistics(list(output), None) for output in (output_a, output_b)]
        score_a, score_b = (float(metric._aggregate_and_compute(rows).score) for rows in statistics)
        a, b = map(np.array, statistics)  # (N, statistics) each
        signature = metric.get_signature()
        signature.update("seed", str(BOOTSTRAP_SEED))
        signature.update("bs", num_bootstrap)
        difference = abs(score_a - score_b)
        comparisons.append(
            Comparison(
                metric=name,
                score_a=score_a,
                score_b=score_b,
                p_bootstrap=_p_value(_bootstrap_differences(metric, a, b, num_bootstrap), difference),
                p_randomization=_p_value(_randomized_differences(metric, a, b, num_randomizations), difference),
                signature=str(signature),
            )
        )
    return comparisons


def _p_value(differences: "np.ndarray[Any, Any]", observed: float) -> float:
    """The share of differences that are at least as large as the observed one, which is itself one of them."""
    num_as_large = int((differences >= observed - ROUNDING).sum())
    return (num_as_large + 1) / (len(differences) + 1)


def _bootstrap_differences(
    metric: SacrebleuMetric, a: "np.ndarray[Any, Any]", b: "np.ndarray[Any, Any]", num_samples: int
) -> "np.ndarray[Any, Any]":
    """Differences between the scores of resampled sentences, around their own mean."""
    generator = np.random.default_rng(BOOTSTRAP_SEED)
    rows_a, rows_b = a.astype(np.float32), b.astype(np.float32)
    differences = np.empty(num_samples)
    for sample in range(num_samples):
        chosen = generator.choice(len(a), size=len(a), replace=True)
        differences[sample] = abs(_score(metric, rows_b[chosen].sum(0)) - _score(metric, rows_a[chosen].sum(0)))
    result: np.ndarray[Any, Any] = differences - differences.mean()
    return result


def _randomized_differences(
    metric: SacrebleuMetric, a: "np.ndarray[Any, Any]", b: "np.ndarray[Any, Any]", num_trials: int
) -> "np.ndarray[Any, Any]":
    """Differences between two outputs, each of which takes every sentence at random from A or from B."""
    total = a.sum(0) + b.sum(0)
    differences = []
    for is_from_a in _coins(num_trials, len(a)):
        mixed = is_from_a @ a + ~is_from_a @ b
        differences.append(abs(_score(metric, mixed) - _score(metric, total - mixed)))
    return np.array(differences)


def _coins(num_trials: int, num_sentences: int) -> "Iterator[np.ndarray[Any, Any]]":
    """A coin flip for every sentence in every trial."""
    generator = np.random.default_rng(BOOTSTRAP_SEED)
    for first in range(0, num_trials, TRIALS_TOGETHER):
        together = min(TRIALS_TOGETHER, num_trials - first)
        yield from generator.integers(2, size=(together, num_sentences), dtype=bool)


def _score(metric: SacrebleuMetric, statistics: "np.ndarray[Any, Any]") -> float:
    return float(metric._compute_score_from_stats(list(statistics)).score)


@dataclass(frozen=True)
class Difference:
    line: int  # counted from 0
    score_a: float  # chrF of the sentence
    score_b: float


def largest_differences(
    output_a: Sequence[str], output_b: Sequence[str], references: Sequence[str] | Sequence[Sequence[str]], count: int
) -> list[Difference]:
    """The sentences on which the outputs differ most by chrF, the metric that is most meaningful for one sentence."""
    streams = reference_streams(output_a, references)
    metric = METRICS["chrf"].make("", None)
    differences = []
    for line, (a, b) in enumerate(zip(output_a, output_b, strict=True)):
        if a != b:
            of_line = [stream[line] for stream in streams]
            scores = (metric.sentence_score(text, of_line).score for text in (a, b))
            differences.append(Difference(line, *map(float, scores)))
    return sorted(differences, key=lambda d: (-abs(d.score_a - d.score_b), d.line))[:count]
