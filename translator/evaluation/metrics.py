"""BLEU, chrF, chrF++ and TER from sacrebleu, with the signatures that make a figure reproducible."""

import importlib.util
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import estimate_ci

from translator.errors import UserError
from translator.languages import CHINESE, JAPANESE, KOREAN, SOUTHEAST_ASIAN, is_written_without_spaces, language_subtag

METRICS = ("bleu", "chrf", "chrf_pp", "ter")
QUICK_METRICS = ("bleu", "chrf", "chrf_pp")  # TER takes many times as long as the others together
LOWER_IS_BETTER = frozenset({"ter"})
BOOTSTRAP_SEED = 12345  # sacrebleu's own default; it is part of the signature
NAMES = {"bleu": "BLEU", "chrf": "chrF", "chrf_pp": "chrF++", "ter": "TER"}


@dataclass(frozen=True)
class BleuTokenizer:
    name: str  # as sacrebleu knows it
    warning: str | None = None  # what someone who compares the figure with others should know


def bleu_tokenizer(target_language: str) -> BleuTokenizer:
    """The tokenizer with which BLEU of a language is commonly reported."""
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
class MetricScore:
    value: float
    signature: str
    low: float | None = None  # the 95 % confidence interval, where it was asked for
    high: float | None = None


@dataclass(frozen=True)
class Scores:
    """The scores of one output, by the names in METRICS. What was not asked for is not there."""

    by_metric: dict[str, MetricScore]
    num_sentences: int
    num_references: int
    warning: str | None = None

    @property
    def bleu(self) -> float:
        return self._value("bleu")

    @property
    def chrf(self) -> float:
        return self._value("chrf")

    @property
    def chrf_pp(self) -> float:
        return self._value("chrf_pp")

    @property
    def ter(self) -> float:
        return self._value("ter")

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

    def _value(self, name: str) -> float:
        if name not in self.by_metric:
            raise ValueError(f"{NAMES[name]} was not computed; ask for it with metrics=('{name}', …)")
        return self.by_metric[name].value


def make_metric(
    name: str, target_language: str, references: Sequence[Sequence[str]] | None = None
) -> BLEU | CHRF | TER:
    """One of sacrebleu's metrics, set up for a target language; `references` are prepared once for many hypotheses."""
    # sacrebleu warns about hypotheses that look tokenised. What a model writes is no reason to warn.
    if name == "bleu":
        return BLEU(tokenize=bleu_tokenizer(target_language).name, force=True, references=references)
    if name == "chrf":
        return CHRF(word_order=0, references=references)
    if name == "chrf_pp":
        return CHRF(word_order=2, references=references)
    if name == "ter":
        return TER(asian_support=is_written_without_spaces(target_language), references=references)
    raise ValueError(f"metric {name}: give one of {', '.join(METRICS)}")


def reference_streams(
    hypotheses: Sequence[str], references: Sequence[str] | Sequence[Sequence[str]]
) -> list[list[str]]:
    """References as a list of whole reference texts, whatever of the two forms they came in; lengths checked."""
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


def _interval(metric: BLEU | CHRF | TER, statistics: list[list[float]], num_bootstrap: int) -> tuple[float, float]:
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
    metrics: Sequence[str] = QUICK_METRICS,
    num_bootstrap: int = 0,
) -> Scores:
    """Scores detokenised hypotheses against one reference text, or a list of several.

    With `num_bootstrap` resamplings (1,000 is usual) each score has a 95 % confidence interval.
    """
    streams = reference_streams(hypotheses, references)
    results: dict[str, MetricScore] = {}
    for name in metrics:
        metric = make_metric(name, target_language, streams)
        statistics = metric._extract_corpus_statistics(list(hypotheses), None)
        value = float(metric._aggregate_and_compute(statistics).score)
        low, high = _interval(metric, statistics, num_bootstrap) if num_bootstrap > 1 else (None, None)
        results[name] = MetricScore(value, str(metric.get_signature()), low, high)
    warning = bleu_tokenizer(target_language).warning if "bleu" in metrics else None
    return Scores(results, len(hypotheses), len(streams), warning)
