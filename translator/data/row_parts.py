"""Rows of a table that consists of several parts."""

from collections.abc import Iterator, Sequence

import numpy as np


def split_by_part(sizes: Sequence[int], rows: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """For each part that contains some of the rows: its number, their positions in `rows`, their rows in the part."""
    ends = np.cumsum(sizes)
    part_of_row = np.searchsorted(ends, rows, side="right")
    for part in np.unique(part_of_row).tolist():
        positions = np.flatnonzero(part_of_row == part)
        yield part, positions, rows[positions] - (ends[part] - sizes[part])
