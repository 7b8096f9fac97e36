"""Tokenised corpora as memory-mapped Arrow tables, read a few rows or a block at a time."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from translator.data.arrow_columns import ArrowLengths, ArrowLists, release
from translator.data.examples import Table
from translator.data.ragged_array import RaggedArray
from translator.data.row_parts import split_by_part

ARROW_NAME, DESCRIPTION_NAME = "pairs.arrow", "table.json"
SOURCE_LENGTHS_NAME, TARGET_LENGTHS_NAME = "source_lengths.npy", "target_lengths.npy"
COPIED_TOGETHER = 2**12  # rows; their pages are resident while they are copied


class TokenizedCorpus:
    """Token ids of pairs: sources with EOS, targets with neither BOS nor EOS. They live in the page cache alone.

    Lengths are as in a batch: with EOS on both sides.
    """

    FILES = (ARROW_NAME, SOURCE_LENGTHS_NAME, TARGET_LENGTHS_NAME, DESCRIPTION_NAME)

    def __init__(
        self,
        parts: Sequence[ArrowLists],  # concatenated; columns source and target
        source_lengths: ArrowLengths,
        target_lengths: ArrowLengths,
        *,
        num_dropped: int,  # pairs longer than `max_pieces`
        cleaning_report: dict[str, Any] | None = None,
    ) -> None:
        assert sum(map(len, parts)) == len(source_lengths) == len(target_lengths)
        self.parts = list(parts)
        self.source_lengths = source_lengths
        self.target_lengths = target_lengths
        self.num_dropped = num_dropped
        self.cleaning_report = cleaning_report  # of the reading that the table was built from

    @classmethod
    def open(cls, folder: Path) -> "TokenizedCorpus":
        description = json.loads((folder / DESCRIPTION_NAME).read_text(encoding="utf-8"))
        return cls(
            [ArrowLists(folder / ARROW_NAME)],
            ArrowLengths.open(folder / SOURCE_LENGTHS_NAME),
            ArrowLengths.open(folder / TARGET_LENGTHS_NAME),
            num_dropped=description["num_dropped"],
            cleaning_report=description["cleaning_report"],
        )

    def __len__(self) -> int:
        return len(self.source_lengths)

    def rows(self, indices: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Source and target ids of these rows, as views of the memory-mapped files."""
        return self._column(0, indices), self._column(1, indices)

    def pair_numbers(self, indices: np.ndarray) -> np.ndarray:
        """Which pairs of the corpus these rows are."""
        return indices

    def release(self) -> None:
        """Releases the pages that were read. Views stay valid: their pages are mapped again on access."""
        for part in self.parts:
            release(part.mapping)

    def _column(self, column: int, indices: np.ndarray) -> list[np.ndarray]:
        if len(self.parts) == 1:
            return self.parts[0].rows(column, indices)
        rows: dict[int, np.ndarray] = {}
        for part, positions, inside in split_by_part([len(part) for part in self.parts], indices):
            rows.update(zip(positions.tolist(), self.parts[part].rows(column, inside), strict=True))
        return [rows[position] for position in range(len(indices))]


def join_tokenized(tables: Sequence[TokenizedCorpus]) -> TokenizedCorpus:
    """One table with the rows of all tables, in order."""
    if len(tables) == 1:
        return tables[0]
    return TokenizedCorpus(
        [part for table in tables for part in table.parts],
        ArrowLengths([part for table in tables for part in table.source_lengths.parts]),
        ArrowLengths([part for table in tables for part in table.target_lengths.parts]),
        num_dropped=sum(table.num_dropped for table in tables),
    )


class LoadedRows:
    """Copies of some rows of a table, which take a fraction of the memory of their pages."""

    def __init__(self, table: Table, indices: np.ndarray) -> None:
        self._indices = np.unique(indices)
        self._source = RaggedArray.to_be_filled(table.source_lengths[self._indices])
        self._target = RaggedArray.to_be_filled(table.target_lengths[self._indices] - 1)  # without EOS
        for start in range(0, len(self._indices), COPIED_TOGETHER):
            sources, targets = table.rows(self._indices[start : start + COPIED_TOGETHER])
            self._source.fill(start, sources)
            self._target.fill(start, targets)
            table.release()

    def rows(self, indices: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """As `TokenizedCorpus.rows`, for loaded rows."""
        positions = np.searchsorted(self._indices, indices)
        return self._source.rows(positions), self._target.rows(positions)
