"""Hypotheses, how their scores are made comparable, and how long they may be."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from translator.schema.decode import LengthPenalty, SearchOptions

if TYPE_CHECKING:  # a server of exported models has no torch
    from torch import Tensor

LOWEST_SCORE = -1e9  # in place of minus infinity and of what is not a number
Length = TypeVar("Length", float, "Tensor")


class Hypothesis(NamedTuple):
    ids: list[int]  # without BOS and EOS
    score: float  # the log-probability of the pieces and of EOS
    normalized_score: float  # the score divided by the length penalty: what hypotheses are ranked by
    model_score: float | None = None  # the normalised score by the model, where something else decides on the rank


def hypothesis(ids: list[int], score: float, normalized_score: float) -> Hypothesis:
    """A hypothesis whose scores are numbers that every format can hold, even if the model has diverged."""
    scores = (one if math.isfinite(one) else LOWEST_SCORE for one in (score, normalized_score))
    return Hypothesis(ids, *scores)


def is_normalized(options: SearchOptions) -> bool:
    """Whether hypotheses are compared by anything but their log-probability."""
    return options.length_penalty is not LengthPenalty.none and options.alpha > 0


def length_penalty(length: Length, options: SearchOptions) -> Length | float:
    """What the log-probability of a hypothesis is divided by; its length counts EOS."""
    if not is_normalized(options):
        return 1.0
    is_gnmt = options.length_penalty is LengthPenalty.gnmt
    base = (5 + length) / 6 if is_gnmt else length  # GNMT: Wu et al. 2016, equation 14
    penalty: Length | float = base**options.alpha
    return penalty


def length_limits(
    source_mask: "Tensor", options: SearchOptions, prefixes: Sequence[Sequence[int]] | None
) -> tuple[list[int], list[int]]:
    """The minimum and maximum number of pieces, without EOS, of every sentence's output.

    A forced prefix is always written in full, and does not count towards the maximum.
    """
    source_lengths = (source_mask.sum(1) - 1).clamp_min(0).tolist()  # without the source's EOS
    shortest, longest = [], []
    for sentence, length in enumerate(source_lengths):
        minimum, maximum = length_limit(length, options, len(prefixes[sentence]) if prefixes else 0)
        shortest.append(minimum)
        longest.append(maximum)
    return shortest, longest


def length_limit(source_length: int, options: SearchOptions, prefix_length: int = 0) -> tuple[int, int]:
    """The limits of one sentence, whose source has so many pieces without EOS."""
    maximum = prefix_length + max(1, int(options.max_length_ratio * source_length + options.max_length_extra))
    minimum = max(options.min_length, int(options.min_length_ratio * source_length))
    return min(minimum, maximum), maximum
