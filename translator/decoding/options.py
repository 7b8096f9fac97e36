"""What a search is asked for, and what it gives back."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from torch import Tensor

from translator.errors import require

Length = TypeVar("Length", float, Tensor)


@dataclass(frozen=True)
class Sampling:
    """Draws from the model's distribution in place of looking for its best answer."""

    temperature: float = 1.0  # below 1 the likely pieces become likelier
    top_k: int = 0  # only among so many likeliest pieces; 0 = all
    top_p: float = 1.0  # only among the fewest pieces that hold this share of the probability (Holtzman et al. 2020)
    seed: int = 1

    def __post_init__(self) -> None:
        require(self.temperature > 0, "temperature", self.temperature, "must be greater than 0")
        require(self.top_k >= 0, "top_k", self.top_k, "must not be negative; 0 switches it off")
        require(0 < self.top_p <= 1, "top_p", self.top_p, "must be above 0 and at most 1")


@dataclass(frozen=True)
class SearchOptions:
    beam_size: int = 5  # 1 is greedy search
    num_hypotheses: int = 1  # how many are given back for each sentence; for sampling, how many are drawn
    length_penalty: str = "average"  # what the log-probability is divided by: none, average or gnmt
    alpha: float = 1.0  # exponent of the length penalty
    max_length_ratio: float = 2.0  # pieces of the output for each piece of the source …
    max_length_extra: int = 20  # … and so many more
    min_length: int = 1  # the fewest pieces of an output; 0 allows an empty one
    min_length_ratio: float = 0.0  # the same for each piece of the source; the larger of the two counts
    no_repeat_ngram: int = 0  # no n pieces in a row come twice; 0 = off
    repetition_penalty: float = 1.0  # above 1, pieces already written become less likely
    forbidden: tuple[tuple[int, ...], ...] = ()  # sequences of pieces that are never completed
    sampling: Sampling | None = None

    def __post_init__(self) -> None:
        require(self.beam_size >= 1, "beam_size", self.beam_size, "must be at least 1")
        require(self.num_hypotheses >= 1, "num_hypotheses", self.num_hypotheses, "must be at least 1")
        require(
            self.sampling is not None or self.num_hypotheses <= self.beam_size,
            "num_hypotheses",
            self.num_hypotheses,
            f"a beam of {self.beam_size} cannot give more hypotheses than that; widen the beam",
        )
        require(
            self.length_penalty in LENGTH_PENALTIES,
            "length_penalty",
            self.length_penalty,
            f"give one of {', '.join(LENGTH_PENALTIES)}",
        )
        for name in NOT_NEGATIVE:
            require(getattr(self, name) >= 0, name, getattr(self, name), "must not be negative")
        require(self.repetition_penalty > 0, "repetition_penalty", self.repetition_penalty, "must be greater than 0")
        require(all(self.forbidden), "forbidden", self.forbidden, "a forbidden sequence needs at least one piece")

    @property
    def is_normalized(self) -> bool:
        """Whether hypotheses are compared by anything but their log-probability."""
        return self.length_penalty != "none" and self.alpha > 0

    def penalty(self, length: Length) -> Length | float:
        """What the log-probability of so many pieces, the end counted, is divided by."""
        if not self.is_normalized:
            return 1.0
        base = length if self.length_penalty == "average" else (5 + length) / 6  # GNMT: Wu et al. 2016, equation 14
        return base**self.alpha


LENGTH_PENALTIES = ("none", "average", "gnmt")
NOT_NEGATIVE = ("alpha", "max_length_ratio", "max_length_extra", "min_length", "min_length_ratio", "no_repeat_ngram")


class Hypothesis(NamedTuple):
    ids: list[int]  # without BOS and EOS
    score: float  # the log-probability of the pieces and of EOS
    normalized_score: float  # the score divided by the length penalty: what hypotheses are ordered by


def length_limits(
    source_mask: Tensor, options: SearchOptions, prefixes: Sequence[Sequence[int]] | None
) -> tuple[list[int], list[int]]:
    """The fewest and the most pieces, EOS not counted, of every sentence's output.

    They depend on the sentence alone and never on its neighbours. A forced prefix is always written out, and as
    many pieces may follow it as the options allow without it.
    """
    source_lengths = (source_mask.sum(1) - 1).clamp_min(0).tolist()  # the source's EOS is not counted
    shortest, longest = [], []
    for sentence, length in enumerate(source_lengths):
        prefix_length = len(prefixes[sentence]) if prefixes else 0
        most = max(1, int(options.max_length_ratio * length + options.max_length_extra))
        longest.append(most + prefix_length)
        least = max(options.min_length, int(options.min_length_ratio * length))
        shortest.append(min(least, longest[-1]))
    return shortest, longest
