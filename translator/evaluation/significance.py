"""Whether one output is better than another, or only luckier: paired tests from sacrebleu."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sacrebleu.significance import PairedTest

from translator.evaluation.metrics import METRICS, quick_metrics, reference_streams


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
        """A, B, or nothing where they are the same."""
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
    """Both paired tests for each metric, by default for the quick ones.

    The random numbers are sacrebleu's, so that the figures can be reproduced.
    """
    streams = reference_streams(output_a, references)
    reference_streams(output_b, references)
    systems: list[tuple[str, Sequence[str]]] = [("A", list(output_a)), ("B", list(output_b))]
    comparisons = []
    for name in quick_metrics() if metrics is None else metrics:
        results: dict[str, tuple[Any, str]] = {}
        for test, num_samples in (("bs", num_bootstrap), ("ar", num_randomizations)):
            metric = METRICS[name].make(target_language, streams)
            signatures, scores = PairedTest(systems, {name: metric}, None, test, num_samples)()
            (label,) = signatures
            results[test] = scores[label], str(signatures[label])
        (score_a, bootstrap), signature = results["bs"]
        (_, randomization), _ = results["ar"]
        comparisons.append(
            Comparison(
                metric=name,
                score_a=float(score_a.score),
                score_b=float(bootstrap.score),
                p_bootstrap=float(bootstrap.p_value),
                p_randomization=float(randomization.p_value),
                signature=signature,
            )
        )
    return comparisons


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
