"""Random choices from a seeded generator."""

from collections.abc import Sequence
from random import Random
from typing import TypeVar

Choice = TypeVar("Choice")


class Dice:
    """Draws from a seeded generator. Options are sequences, never sets, so that a seed is reproducible everywhere."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed).random

    def chance(self, probability: float) -> bool:
        """True with the given probability."""
        return self._random() < probability

    def pick(self, options: Sequence[Choice]) -> Choice:
        """One of the options, all equally likely."""
        return options[int(self._random() * len(options))]

    def weighted(self, options: Sequence[tuple[Choice, float]]) -> Choice:
        """One of the options, with probability proportional to its weight; weights need not sum to one."""
        total = 0.0
        for _, weight in options:
            total += weight
        remaining = self._random() * total
        for option, weight in options:
            remaining -= weight
            if remaining < 0:
                return option
        return options[-1][0]

    def number(self, low: int, high: int) -> int:
        """An integer from low to high, both inclusive."""
        return low + int(self._random() * (high - low + 1))
