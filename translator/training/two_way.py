"""Validation of a model that translates in several directions: each one separately, and the mean of all."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self

from translator.data.batching import Batch
from translator.models.base import Seq2Seq
from translator.training.validation import Validator
from translator.training.validation_result import TextScores, ValidationResult


@dataclass
class DirectionValidators:
    """A validator for each direction, by its name (en-de), that of the run's data.source and data.target first."""

    validators: dict[str, Validator]
    note: Callable[[ValidationResult], None] = lambda result: None  # called with every result

    @property
    def main(self) -> Validator:
        return next(iter(self.validators.values()))

    @property
    def size(self) -> int:
        return sum(validator.size for validator in self.validators.values())

    # Everything besides the result is that of the first direction.

    @property
    def batches(self) -> Iterable[Batch]:
        return self.main.batches

    @property
    def sources(self) -> Sequence[str]:
        return self.main.sources

    @property
    def references(self) -> Sequence[str]:
        return self.main.references

    def limited(self, sentences: slice) -> Self:
        limited = {name: validator.limited(sentences) for name, validator in self.validators.items()}
        return replace(self, validators=limited)

    def __call__(self, model: Seq2Seq) -> ValidationResult:
        result = mean_result({name: validator(model) for name, validator in self.validators.items()})
        self.note(result)
        return result


AnyValidator = Validator | DirectionValidators


def parts_of(validator: AnyValidator) -> list[Validator]:
    """The validator of each direction."""
    return [validator] if isinstance(validator, Validator) else list(validator.validators.values())


def mean_result(by_direction: dict[str, ValidationResult]) -> ValidationResult:
    """The unweighted mean of every figure over the directions; samples of all of them."""
    results = list(by_direction.values())
    scored = [result.scores for result in results if result.scores is not None]
    return ValidationResult(
        loss=_mean([result.loss for result in results]),
        parts=_means([result.parts for result in results]),
        num_tokens=sum(result.num_tokens for result in results),
        scores=_mean_scores(scored) if len(scored) == len(results) else None,
        samples=[sample for result in results for sample in result.samples],
        images=[image for result in results for image in result.images],
        seconds=sum(result.seconds for result in results),
        by_direction=by_direction,
    )


def _mean_scores(scores: Sequence[TextScores]) -> TextScores:
    """A signature that differs between the directions, as those of BLEU may, is a list of all."""
    signatures = {
        name: " | ".join(dict.fromkeys(one.signatures[name] for one in scores)) for name in scores[0].signatures
    }
    return TextScores(_means([one.values for one in scores]), signatures, _means([one.rates for one in scores]))


def _means(figures: Sequence[dict[str, float]]) -> dict[str, float]:
    return {name: _mean([one[name] for one in figures]) for name in figures[0]}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
