"""The evaluation report of one output, as text for people and as JSON for programs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from translator.evaluation.alignment import AlignmentScores
from translator.evaluation.diagnostics import Diagnostics, diagnose
from translator.evaluation.metrics import METRICS, Scores, reference_streams, score_corpus
from translator.evaluation.texts import length_classes


@dataclass(frozen=True)
class Evaluation:
    target_language: str
    scores: Scores
    by_length: dict[str, Scores]  # by the length of the source in words; empty without a source
    diagnostics: Diagnostics | None  # needs a source
    alignment: AlignmentScores | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "target_language": self.target_language,
            **self.scores.to_dict(),
            "by_source_length": {name: scores.to_dict() for name, scores in self.by_length.items()},
            "diagnostics": self.diagnostics.to_dict() if self.diagnostics else None,
            "alignment": self.alignment.to_dict() if self.alignment else None,
        }

    def __str__(self) -> str:
        lines = [
            f"{_number(self.scores.num_sentences, 'sentence')}, {_number(self.scores.num_references, 'reference')}"
        ]
        for name, score in self.scores.by_metric.items():
            interval = "" if score.low is None else f"  95 %: {score.low:5.1f} – {score.high:5.1f}"
            lines.append(f"{METRICS[name].label:7}{score.value:7.2f}{interval}  {score.signature}")
        if self.scores.warning:
            lines.append(f"Warning: {self.scores.warning}.")
        if self.by_length:
            lines += ["", "Source length  sentences   BLEU   chrF"]
            for name, scores in self.by_length.items():
                lines.append(f"{name:>13}{scores.num_sentences:11,}{scores['bleu']:7.2f}{scores['chrf']:7.2f}")
        if self.diagnostics:
            rates = {name: getattr(self.diagnostics, name) for name in ("empty", "copied", "repeating")}
            lines += ["", "Outputs: " + ", ".join(f"{100 * rate:.2f} % {name}" for name, rate in rates.items())]
        if self.alignment:
            found = self.alignment
            lines += [
                "",
                f"Alignment: AER {100 * found.error_rate:.1f} %, precision {100 * found.precision:.1f} %, recall "
                f"{100 * found.recall:.1f} % ({found.num_pairs:,} pairs found, {found.num_sure:,} to be found)",
            ]
        return "\n".join(lines)


def evaluate_texts(
    hypotheses: Sequence[str],
    references: Sequence[str] | Sequence[Sequence[str]],
    target_language: str,
    *,
    sources: Sequence[str] | None = None,
    num_bootstrap: int = 1_000,
    alignment: AlignmentScores | None = None,
) -> Evaluation:
    streams = reference_streams(hypotheses, references)
    by_length = {}
    for name, indices in length_classes(sources or []).items():
        chosen = [hypotheses[index] for index in indices]
        by_length[name] = score_corpus(
            chosen, [[stream[i] for i in indices] for stream in streams], target_language, metrics=("bleu", "chrf")
        )
    return Evaluation(
        target_language,
        score_corpus(hypotheses, streams, target_language, metrics=METRICS, num_bootstrap=num_bootstrap),
        by_length,
        diagnose(sources, hypotheses) if sources is not None else None,
        alignment,
    )


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
