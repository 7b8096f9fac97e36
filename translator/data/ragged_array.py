"""Rows of different lengths in one array: four bytes per id, where a list of Python ints takes about forty."""

from collections.abc import Sequence
from itertools import chain

import numpy as np


class RaggedArray:
    """Concatenated rows of ids."""

    def __init__(self, ids: np.ndarray, lengths: np.ndarray) -> None:
        self.ids = ids  # int32
        self.lengths = lengths  # int32
        self.offsets = np.append(0, np.cumsum(lengths, dtype=np.int64))

    @classmethod
    def from_rows(cls, rows: Sequence[Sequence[int]]) -> "RaggedArray":
        lengths = np.fromiter(map(len, rows), dtype=np.int32, count=len(rows))
        return cls(np.fromiter(chain.from_iterable(rows), dtype=np.int32, count=int(lengths.sum())), lengths)

    @classmethod
    def joined(cls, parts: Sequence["RaggedArray"]) -> "RaggedArray":
        return cls(np.concatenate([part.ids for part in parts]), np.concatenate([part.lengths for part in parts]))

    @classmethod
    def to_be_filled(cls, lengths: np.ndarray) -> "RaggedArray":
        return cls(np.empty(int(lengths.sum(dtype=np.int64)), dtype=np.int32), lengths)

    def fill(self, start: int, rows: Sequence[np.ndarray]) -> None:
        """Copies the rows to the positions from `start` on; they must have the lengths given at creation."""
        np.concatenate(rows, out=self.ids[self.offsets[start] : self.offsets[start + len(rows)]])

    def rows(self, positions: np.ndarray) -> list[np.ndarray]:
        ids = self.ids
        bounds = zip(self.offsets[positions].tolist(), self.offsets[positions + 1].tolist(), strict=True)
        return [ids[first:end] for first, end in bounds]
