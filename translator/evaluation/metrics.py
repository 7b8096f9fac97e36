"""BLEU, chrF, chrF++ and TER from sacrebleu, with the signatures that make a figure reproducible."""

import importlib.util
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sacrebleu.metrics.base import Metric as SacrebleuMetric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import estimate_ci

from translator.errors import UserError
from translator.languages import CHINESE, JAPANESE, KOREAN, SOUTHEAST_ASIAN, is_written_without_spaces, language_subtag

Streams = Sequence[Sequence[str]]  # whole reference texts, one or several
BOOTSTRAP_SEED = 12345  # sacrebleu's own default; it is part of the signature


@dataclass(frozen=True)
class BleuTokenizer:
    name: str  # as sacrebleu knows it
    warning: str | None = None  # for anyone who compares the figure with others


def bleu_tokenizer(target_language: str) -> BleuTokenizer:
    """The tokenizer commonly used to report BLEU for a language."""
    language = language_subtag(target_language)
    if language in CHINESE:
        return BleuTokenizer("zh")
    for languages, name, package, extra in (
        (JAPANESE, "ja-mecab", "MeCab", "ja"),
        (KOREAN, "ko-mecab", "mecab_ko", "ko"),
    ):
        if language in languages:
            if importlib.util.find_spec(package) is not None:
                return BleuTokenizer(name)
            return BleuTokenizer(
                "char",
                f"BLEU is over characters and not comparable with published figures: the tokenizer {name} is not "
                f"installed (pip install 'sacrebleu[{extra}]')",
            )
    if language in SOUTHEAST_ASIAN:
        return BleuTokenizer(
            "char", f"BLEU is over characters: {target_language} has no spaces and sacrebleu has no tokenizer for it"
        )
    return BleuTokenizer("13a")


@dataclass(frozen=True)
class Metric:
    """A metric as sacrebleu understands the word. `make(target_language, references)` gives an instance of it.

    `references`, where they are given, are prepared once for many hypotheses.
    """

    label: str  # for people
    make: Callable[[str, Streams | None], SacrebleuMetric]
    lower_is_better: bool = False
    is_quick: bool = True  # enough to be computed at every validation


# All metrics by the names that scores have everywhere: here, in metrics.json, in TensorBoard, in `trainer.best_metric`.
# sacrebleu warns about hypotheses that look tokenised; what a model writes is no reason to warn (force=True).
METRICS: dict[str, Metric] = {
    "bleu": Metric(
        "BLEU", lambda language, refs: BLEU(tokenize=bleu_tokenizer(language).name, force=True, references=refs)
    ),
    "chrf": Metric("chrF", lambda language, refs: CHRF(word_order=0, references=refs)),
    "chrf_pp": Metric("chrF++", lambda language, refs: CHRF(word_order=2, references=refs)),
    "bleu_lc": Metric(  # much of the older literature lower-cases its text
        "BLEU lc",
        lambda language, refs: BLEU(
            lowercase=True, tokenize=bleu_tokenizer(language).name, force=True, references=refs
        ),
        is_quick=False,
    ),
    "ter": Metric(
        "TER",
        lambda language, refs: TER(asian_support=is_written_without_spaces(language), references=refs),
        lower_is_better=True,
        is_quick=False,  # it takes many times as long as the others together
    ),
}


def quick_metrics() -> list[str]:
    return [name for name, metric in METRICS.items() if metric.is_quick]


def describe_scores(values: Mapping[str, float]) -> str:
    """The values of some metrics on one line."""
    return "  ".join(f"{METRICS[name].label} {value:.2f}" for name, value in values.items())


@dataclass(frozen=True)
class MetricScore:
    value: float
    signature: str
    low: float | None = None  # the 95 % confidence interval, where it was asked for
    high: float | None = None


@dataclass(frozen=True)
class Scores:
    """The scores of one output, by the names in METRICS; only those that were asked for."""

    by_metric: dict[str, MetricScore]
    num_sentences: int
    num_references: int
    warning: str | None = None

    def __getitem__(self, metric: str) -> float:
        if metric not in self.by_metric:
            raise ValueError(f"{METRICS[metric].label} was not computed; ask for it with metrics=('{metric}', …)")
        return self.by_metric[metric].value

    @property
    def values(self) -> dict[str, float]:
        return {name: score.value for name, score in self.by_metric.items()}

    @property
    def signatures(self) -> dict[str, str]:
        return {name: score.signature for name, score in self.by_metric.items()}

    def to_dict(self) -> dict[str, Any]:
        """For JSON: {"bleu": {"value": …, "signature": …, "low": …, "high": …}, …, "num_sentences": …}."""
        scores = {
            name: {key: value for key, value in asdict(score).items() if value is not None}
            for name, score in self.by_metric.items()
        }
        rest = {"num_sentences": self.num_sentences, "num_references": self.num_references}
        return scores | rest | ({"warning": self.warning} if self.warning else {})


def reference_streams(
    hypotheses: Sequence[str], references: Sequence[str] | Sequence[Sequence[str]]
) -> list[list[str]]:
    """References in either form as a list of whole reference texts; their lengths are checked."""
    streams: list[list[str]] = []
    for stream in references if references and not isinstance(references[0], str) else [references]:
        streams.append([*stream])  # type: ignore[list-item]
    for number, lines in enumerate(streams, start=1):
        if len(lines) != len(hypotheses):
            raise UserError(
                f"reference {number} has {len(lines)} sentences and the hypothesis {len(hypotheses)}: they must be "
                "the same sentences, one in each line"
            )
    if not hypotheses:
        raise UserError("there is nothing to score: the hypothesis has no sentences")
    return streams


def _interval(metric: SacrebleuMetric, statistics: list[list[float]], num_bootstrap: int) -> tuple[float, float]:
    """The 95 % confidence interval as sacrebleu computes it, with the same random numbers.

    Its own function holds all resamplings at once, which is too much for large test sets, and stops with an error
    when a resampling of a small one has a score of exactly 0.
    """
    metric.n_bootstrap, metric.seed = num_bootstrap, str(BOOTSTRAP_SEED)  # for the signature
    generator = np.random.default_rng(BOOTSTRAP_SEED)
    rows = np.array(statistics, dtype=np.float32)
    scores = []
    for _ in range(num_bootstrap):
        chosen = generator.choice(len(rows), size=len(rows), replace=True)
        scores.append(float(metric._compute_score_from_stats(rows[chosen].sum(0)).score))
    mean, half_width = estimate_ci(np.array(scores))
    return float(mean - half_width), float(mean + half_width)


def score_corpus(
    hypotheses: Sequence[str],
    references: Sequence[str] | Sequence[Sequence[str]],
    target_language: str,
    *,
    metrics: Collection[str] | None = None,
    num_bootstrap: int = 0,
) -> Scores:
    """Scores detokenised hypotheses against one reference text, or a list of several.

    With `num_bootstrap` resamplings (1,000 is usual) each score has a 95 % confidence interval. Without
    `metrics` the quick ones are computed.
    """
    streams = reference_streams(hypotheses, references)
    results: dict[str, MetricScore] = {}
    for name in quick_metrics() if metrics is None else metrics:
        metric = METRICS[name].make(target_language, streams)
        statistics = metric._extract_corpus_statistics(list(hypotheses), None)
        value = float(metric._aggregate_and_compute(statistics).score)
        low, high = _interval(metric, statistics, num_bootstrap) if num_bootstrap > 0 else (None, None)
        results[name] = MetricScore(value, str(metric.get_signature()), low, high)
    warning = bleu_tokenizer(target_language).warning if "bleu" in results else None
    return Scores(results, len(hypotheses), len(streams), warning)
