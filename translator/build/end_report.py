"""The report written when training ends: quick, because nothing is translated for it, and never a reason to fail."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from translator.build.data import PreparedData
from translator.build.report import count_training_text
from translator.config import Config
from translator.evaluation.metrics import METRICS
from translator.files.atomic import write_text
from translator.files.explain import reason
from translator.report.material import HeldOut, RunMaterial
from translator.runs.directory import RunDirectory
from translator.runs.hypotheses import store_hypotheses
from translator.schema.data import Directions
from translator.training.two_way import AnyValidator, DirectionValidators
from translator.training.validation_result import TextScores, ValidationResult

QUICK_PAIRS = 30_000  # of the training text, whose words are counted
_SHARE_OF_TIME = 0.03  # at most this share of trainer.max_time is reserved for the report
# Measured on one core of a machine that trains the demo corpus: seconds for starting, for each thousand sentences of
# the held-out set and for each thousand pairs of training text; twice as much is reserved.
_SECONDS = 1.0, 1.5, 0.09
_MOST_EQUALS = 2  # enough to know that the scores do not identify them
_Scored = tuple[dict[str, float], list[str]]  # scores by metric, and the translations that have them
Score = Callable[[list[str], list[str], list[str]], TextScores]


@dataclass
class KeptTranslations:
    """The translations that validations made, as far as they may be those of the final weights: the best ones."""

    num_sentences: int = 0
    _best: dict[str, tuple[float, list[_Scored]]] = field(default_factory=dict)  # by metric, and all that are as good
    _latest: _Scored = field(default_factory=lambda: ({}, []))
    _held: list[str] = field(default_factory=list)

    def watch(self, validator: AnyValidator) -> AnyValidator:
        """The same validator, which leaves its translations here.

        Of two directions those of the first are kept, with the scores that decide about the weights: the mean of both.
        """
        self.num_sentences = len(validator.sources)
        if isinstance(validator, DirectionValidators):
            (name, main), *others = validator.validators.items()
            main = main if main.score is None else replace(main, score=self._watched(main.score, self._hold))
            return replace(validator, validators={name: main, **dict(others)}, note=self._keep_held)
        return (
            validator
            if validator.score is None
            else replace(validator, score=self._watched(validator.score, self._keep))
        )

    def _watched(self, score: Score, keep: Callable[[dict[str, float], list[str]], None]) -> Score:
        def watched(hypotheses: list[str], references: list[str], sources: list[str]) -> TextScores:
            scores = score(hypotheses, references, sources)
            if len(sources) == self.num_sentences:  # not a sample that only measures time
                keep(scores.values, hypotheses)
            return scores

        return watched

    def _hold(self, values: dict[str, float], hypotheses: list[str]) -> None:
        """Until the scores of the other direction are known as well."""
        self._held = hypotheses

    def _keep_held(self, result: ValidationResult) -> None:
        if self._held and result.scores is not None:
            self._keep(result.scores.values, self._held)
        self._held = []

    def _keep(self, values: dict[str, float], hypotheses: list[str]) -> None:
        for metric, value in values.items():
            goodness = -value if METRICS[metric].lower_is_better else value
            best = self._best.get(metric)
            if best is None or goodness > best[0]:
                self._best[metric] = goodness, [(values, hypotheses)]
            elif goodness == best[0] and len(best[1]) < _MOST_EQUALS:
                best[1].append((values, hypotheses))
        self._latest = values, hypotheses

    def with_scores(self, figures: dict[str, Any]) -> list[str] | None:
        """The translations that have exactly these scores.

        None where an earlier process made them, or where others have the same scores, as happens with models that
        have hardly begun to learn.
        """
        candidates = [*chain.from_iterable(equals for _, equals in self._best.values()), self._latest]
        found = [texts for values, texts in candidates if values and values.items() <= figures.items()]
        return found[0] if found and all(texts == found[0] for texts in found) else None


def reserved_seconds(config: Config, num_sentences: int) -> float:
    """How much of `trainer.max_time` the report at the end needs."""
    limit = config.trainer.max_seconds
    if limit is None or not config.trainer.report:
        return 0.0
    return min(2 * core_seconds(num_sentences), _SHARE_OF_TIME * limit)


def core_seconds(num_sentences: int) -> float:
    """How long the report takes on an idle core."""
    start, per_thousand_sentences, per_thousand_pairs = _SECONDS
    return start + per_thousand_sentences * num_sentences / 1_000 + per_thousand_pairs * QUICK_PAIRS / 1_000


@dataclass(frozen=True)
class EndReport:
    """Writes report.html and the final weights' translations into the folder of a run that has just been trained."""

    config: Config
    data: PreparedData
    run: RunDirectory
    notify: Callable[[str], None]
    is_late: Callable[[], bool]  # polled: there is no more time, or the user wants to stop

    def keep(self, split: str, held_out: AnyValidator, hypotheses: Sequence[str] | None) -> None:
        """Stores the translations, if there are any; a failure only causes a warning."""
        try:
            if hypotheses is not None:
                store_hypotheses(self.run, split, hypotheses, held_out.sources, self.config.decode)
        except (OSError, ValueError) as error:
            self.notify(f"warning: the translations could not be stored ({reason(error)})")

    def write(self, split: str, held_out: AnyValidator, hypotheses: Sequence[str] | None) -> Path | None:
        """The page, or None if it is switched off, there was no time, or it failed, which only causes a warning."""
        command = f"python -m translator.report {self.run.path}"
        path = self.run.report
        try:
            if not self.config.trainer.report:
                return None
            if self.is_late():
                self.notify(f"no time was left for the report; make it with {command}")
                return None
            write_text(path, self._page(split, held_out, hypotheses, command))
            self.notify(f"report       {path}")
        except Exception as error:  # a failed report must not fail a successful training run
            self.notify(f"warning: the report could not be written ({reason(error)}); make it with {command}")
            return None
        return path

    def _page(self, split: str, held_out: AnyValidator, hypotheses: Sequence[str] | None, command: str) -> str:
        # Only now: training must not wait for these imports when it starts.
        from translator.report.gather import gather_figures
        from translator.report.page import report_page

        languages = self.config.data.source, self.config.data.target
        name = getattr(self.data.raw, split).name
        material = RunMaterial(self.run.path.resolve().name, self.run, self.config, list(hypotheses or []) or None)
        material.direction = "-".join(languages) if self.config.data.directions is Directions.both else None
        if self.data.train_tables:  # a streamed corpus is not read again
            pairs = chain.from_iterable(corpus for corpus, _ in self.data.cleaned.train)
            material.training = count_training_text(self.config, pairs, QUICK_PAIRS, self.is_late)
        judged = HeldOut(name, list(held_out.sources), list(held_out.references), *languages)
        return report_page(gather_figures(judged, [material], full_command=command, is_late=self.is_late))
