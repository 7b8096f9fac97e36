"""The rows of an epoch, cut into blocks so that memory does not grow with the corpus.

A corpus that fits into one block is shuffled as a whole. A larger one is divided into runs of neighbouring rows: the
runs are reshuffled in each epoch, and runs from all over the corpus form a block, whose rows are then batched and
shuffled together. Only the runs are ever listed in full, and only the pages of one block are in use.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np

BLOCK_ROWS = 2**16  # maximum per block, raised only if BLOCK_BATCHES need more
BLOCK_BATCHES = 256  # with fewer, padding grows: on Multi30k from 1.4 % to 2.7 % with half as many
RUN_ROWS = 512


@dataclass(frozen=True, eq=False)
class Runs:
    """Rows in mostly ascending order, stored as runs of consecutive rows."""

    firsts: np.ndarray  # int64, the first row of each run
    sizes: np.ndarray  # int64

    @classmethod
    def of_part(cls, first: int, num_rows: int, run_rows: int) -> Self:
        """The `num_rows` rows from `first` on."""
        starts = np.arange(0, num_rows, run_rows)
        return cls(first + starts, np.minimum(run_rows, num_rows - starts))

    @classmethod
    def joined(cls, parts: Sequence["Runs"]) -> Self:
        return cls(np.concatenate([part.firsts for part in parts]), np.concatenate([part.sizes for part in parts]))

    def __len__(self) -> int:
        """The number of rows."""
        return int(self.sizes.sum())

    def shuffled(self, rng: np.random.Generator) -> "Runs":
        order = rng.permutation(len(self.firsts))
        return Runs(self.firsts[order], self.sizes[order])

    def between(self, start: int, stop: int) -> "Runs":
        """The rows at the positions from `start` up to, but not including, `stop`."""
        ends = np.cumsum(self.sizes)
        begins = ends - self.sizes
        new_begins, new_ends = np.clip(start, begins, ends), np.clip(stop, begins, ends)
        kept = new_begins < new_ends
        return Runs((self.firsts + new_begins - begins)[kept], (new_ends - new_begins)[kept])

    def rows(self) -> np.ndarray:
        begins = np.cumsum(self.sizes) - self.sizes
        return (np.repeat(self.firsts - begins, self.sizes) + np.arange(len(self))).astype(np.int32)


class EpochBlocks:
    """The rows of each block of each epoch, before batching: a pure function of (seed, epoch).

    `parts` are the concatenated corpora as (number of rows, weight); see `BatchSampler`.
    """

    def __init__(self, parts: Sequence[tuple[int, float]], *, seed: int, block_rows: int) -> None:
        self._parts = [(num_rows, Fraction(weight).limit_denominator(10**6)) for num_rows, weight in parts]
        self._seed = seed
        num_rows = sum(num_rows for num_rows, _ in self._parts)
        rows_per_epoch = max(1, int(sum(num_rows * weight for num_rows, weight in self._parts)))
        self.num_blocks = -(-rows_per_epoch // block_rows)
        self._run_rows = 1 if max(num_rows, rows_per_epoch) <= block_rows else RUN_ROWS

    def rows(self, epoch: int, block: int) -> np.ndarray:
        """The row numbers of a block, int32."""
        runs = self._runs(epoch)
        if self.num_blocks > 1:
            runs = runs.shuffled(np.random.default_rng([self._seed, epoch, 0, 1]))
        start, stop = (len(runs) * number // self.num_blocks for number in (block, block + 1))
        return runs.between(start, stop).rows()

    def _runs(self, epoch: int) -> Runs:
        chosen: list[Runs] = []
        first = 0
        for part, (num_rows, weight) in enumerate(self._parts):
            runs = Runs.of_part(first, num_rows, self._run_rows)
            num_whole, share = divmod(weight, 1)
            chosen += [runs] * int(num_whole)
            if share:
                # A window cycles through a fixed order, so every row appears equally often.
                fixed = runs.shuffled(np.random.default_rng([self._seed, part, 1]))
                start, stop = (int(number * share * num_rows) for number in (epoch, epoch + 1))
                start, stop = start % num_rows, start % num_rows + stop - start
                chosen += [fixed.between(start, stop), fixed.between(0, stop - num_rows)]
            first += num_rows
        return Runs.joined(chosen)
