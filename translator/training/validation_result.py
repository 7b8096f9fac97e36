"""What a validation found: the loss and its parts, scores, samples and pictures."""

import math
from dataclasses import dataclass, field
from typing import Any

from translator.evaluation.metrics import METRICS

COLLAPSE_RATE = 0.3  # of the translations: more that are empty, copied or repetitive than this is worth a warning


@dataclass(frozen=True)
class TextScores:
    """What scoring returns for a list of hypotheses."""

    values: dict[str, float]  # by metric
    signatures: dict[str, str] = field(default_factory=dict)  # metric: sacreBLEU signature
    rates: dict[str, float] = field(default_factory=dict)  # empty, copied, repeating …: share of the hypotheses


@dataclass(frozen=True)
class Sample:
    source: str
    reference: str
    hypothesis: str


@dataclass(frozen=True)
class ValidationResult:
    loss: float  # smoothed as in training, for each target token
    parts: dict[str, float]  # of the loss, for each target token; `nll` among them
    num_tokens: int
    scores: TextScores | None  # None where nothing is translated
    samples: list[Sample]
    images: list[Any]  # (height, width, 3) uint8 arrays, attention of the samples
    seconds: float
    by_direction: dict[str, "ValidationResult"] = field(default_factory=dict)  # all figures above are their means

    @property
    def perplexity(self) -> float:
        return perplexity(self.parts["nll"])

    def score(self, metric: str) -> float:
        """The loss or the value of a metric, with the sign that makes higher better; non-finite values are worst."""
        if metric == "loss":
            score = -self.loss
        else:
            assert self.scores is not None, "a text metric needs translations"
            value = self.scores.values[metric]
            score = -value if METRICS[metric].lower_is_better else value
        return score if math.isfinite(score) else -math.inf

    def figures(self) -> dict[str, Any]:
        """For metrics.json: plain numbers and signatures."""
        figures: dict[str, Any] = {"loss": self.loss, **self.parts, "perplexity": self.perplexity}
        if self.scores is not None:
            figures |= {**self.scores.values, "signatures": self.scores.signatures, "rates": self.scores.rates}
        if self.by_direction:
            figures["directions"] = {name: result.figures() for name, result in self.by_direction.items()}
        return figures

    def warnings(self) -> list[str]:
        rates = self.scores.rates if self.scores is not None else {}
        return [f"{rate:.0%} of the translations are {kind}" for kind, rate in rates.items() if rate > COLLAPSE_RATE]


def perplexity(nll: float) -> float:
    return math.exp(min(nll, 700.0))  # a wildly wrong model must not overflow
