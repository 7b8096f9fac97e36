"""Estimates how long a validation will take, in a small fraction of that time."""

from dataclasses import replace
from itertools import islice

from translator.models.base import Seq2Seq
from translator.training.two_way import AnyValidator, parts_of
from translator.training.validation import Validator

_NUM_TRANSLATED = 64  # sentences whose translation is timed
_NUM_DRAWN = 2  # pictures that are timed; a single one would be dominated by the cost they share


def estimate_validation(validator: AnyValidator, model: Seq2Seq) -> float:
    """Seconds, the same on all ranks: the loss of a batch, the translation of a few sentences, two pictures.

    Each is multiplied by how often a validation does it. The sentences are spread over the set.
    """
    return sum(_estimate(part, model) for part in parts_of(validator))


def _estimate(validator: Validator, model: Seq2Seq) -> float:
    nothing = replace(validator, batches=(), sources=(), references=(), translate_lines=None, num_samples=0)
    num_batches = sum(1 for _ in validator.batches)
    loss = replace(nothing, batches=list(islice(validator.batches, validator.ranks.count)))(model).seconds
    seconds = loss * num_batches / validator.ranks.count
    if validator.translate_lines is None:
        return seconds
    every = slice(None, None, max(1, len(validator.sources) // _NUM_TRANSLATED))
    sample = replace(
        nothing,
        sources=validator.sources[every],
        references=validator.references[every],
        translate_lines=validator.translate_lines,
    )
    seconds += sample(model).seconds * validator.size / max(1, sample.size)
    if validator.num_samples and validator.draw_attention:
        num_drawn = min(_NUM_DRAWN, validator.num_samples)
        drawn = slice(0, num_drawn)
        pictures = replace(
            sample, sources=validator.sources[drawn], references=validator.references[drawn], num_samples=num_drawn
        )
        seconds += pictures(model).seconds * validator.num_samples / num_drawn
    return seconds
