"""Memory-mapped files whose pages are resident only while in use.

Once read, the pages of a mapping count as resident memory of the process until the system needs it for something else:
after an epoch the whole corpus would be resident. So pages are released after use; they stay in the page cache, from
which the next access maps them again.
"""

import mmap
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow

from translator.data.row_parts import split_by_part

HEADERS_BETWEEN_RELEASES = 64
LENGTHS_BETWEEN_RELEASES = 2**12


def release(mapping: mmap.mmap) -> None:
    """Releases the pages of a read-only mapping, where the system supports it. Views of it stay valid."""
    if hasattr(mmap, "MADV_DONTNEED"):
        mapping.madvise(mmap.MADV_DONTNEED)


class ArrowLists:
    """Columns of lists of int32 in an Arrow stream file.

    Arrow's own objects for a column take about a kilobyte per record batch, so only the positions of their buffers in
    the file are kept. Access is many times faster than with `Dataset.__getitem__`.
    """

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self.mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._int32 = np.frombuffer(self.mapping, dtype=np.int32, count=len(self.mapping) // 4)
        buffer = pyarrow.py_buffer(self.mapping)
        ends, places = [0], []
        for number, batch in enumerate(pyarrow.ipc.open_stream(buffer)):
            ends.append(ends[-1] + len(batch))
            # The buffers of a list column: validity and offsets of the lists, then validity and data of the values.
            wanted = [part for column in batch.columns for part in column.buffers()[1::2]]
            places.append([(part.address - buffer.address) // 4 if part else 0 for part in wanted])
            if number % HEADERS_BETWEEN_RELEASES == 0:
                release(self.mapping)
        self._ends = np.array(ends)
        self._places = np.array(places)  # (record batches, 2 × columns), in units of int32
        release(self.mapping)

    def __len__(self) -> int:
        return int(self._ends[-1])

    def rows(self, column: int, indices: np.ndarray) -> list[np.ndarray]:
        """Views of the lists in these rows."""
        batches = np.searchsorted(self._ends, indices, side="right") - 1
        offsets = self._places[batches, 2 * column] + indices - self._ends[batches]
        values = self._places[batches, 2 * column + 1]
        firsts, ends = values + self._int32[offsets], values + self._int32[offsets + 1]
        int32 = self._int32
        return [int32[first:end] for first, end in zip(firsts.tolist(), ends.tolist(), strict=True)]


class ArrowLengths:
    """Row lengths of one or more concatenated tables, indexed by arrays of row numbers."""

    def __init__(self, parts: Sequence[np.memmap]) -> None:
        self.parts = list(parts)

    @classmethod
    def open(cls, path: Path) -> "ArrowLengths":
        return cls([np.load(path, mmap_mode="r")])

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        lengths = np.empty(len(rows), dtype=np.int32)
        for start in range(0, len(rows), LENGTHS_BETWEEN_RELEASES):
            some = rows[start : start + LENGTHS_BETWEEN_RELEASES]
            for part, positions, inside in split_by_part([len(part) for part in self.parts], some):
                lengths[start + positions] = self.parts[part][inside]
            self._release()
        return lengths

    def sum(self) -> int:
        rows = np.arange(LENGTHS_BETWEEN_RELEASES)
        starts = range(0, len(self), LENGTHS_BETWEEN_RELEASES)
        return sum(int(self[rows[: len(self) - start] + start].sum(dtype=np.int64)) for start in starts)

    def _release(self) -> None:
        for part in self.parts:
            assert isinstance(part.base, mmap.mmap)
            release(part.base)
