"""The verdict: corpus scores with confidence intervals, and scores by the length of the source."""

from collections.abc import Sequence
from typing import Any

from translator.evaluation.metrics import score_corpus
from translator.evaluation.texts import length_classes
from translator.report.material import HeldOut

METRICS_SHOWN = ("bleu", "chrf")
NUM_BOOTSTRAP = 1_000


def corpus_scores(hypotheses: Sequence[str], held_out: HeldOut) -> dict[str, Any]:
    """BLEU and chrF with sacrebleu's signature and 95 % interval (bootstrap)."""
    scores = score_corpus(
        hypotheses,
        held_out.references,
        held_out.target_language,
        metrics=METRICS_SHOWN,
        num_bootstrap=NUM_BOOTSTRAP,
    )
    return scores.to_dict()


def scores_by_length(hypotheses: Sequence[str], held_out: HeldOut) -> list[dict[str, Any]]:
    """The same scores for short and for long sources; without intervals."""
    rows = []
    for name, indices in length_classes(held_out.sources).items():
        scores = score_corpus(
            [hypotheses[index] for index in indices],
            [held_out.references[index] for index in indices],
            held_out.target_language,
            metrics=METRICS_SHOWN,
        )
        rows.append({"length": name.replace("-", "–"), "num_sentences": len(indices), **scores.values})
    return rows
