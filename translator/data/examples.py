"""How pairs become training examples: which side is the source, and which tags stand in front of it.

A tag is a piece that no text contains, such as <2de> ("translate into German") or <bt> ("back-translated"): a control
symbol of SentencePiece, reserved when the tokenizer is trained. Tables hold plain pairs; tags are added and sides
swapped when rows are read, so one table serves all readings.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from translator.data.batching import Lengths
from translator.data.row_parts import split_by_part
from translator.ids import EOS

Rows = list[np.ndarray]
_END = np.array([EOS], dtype=np.int32)


def tag_piece(name: str) -> str:
    """The piece of a tag, by the name that options use."""
    return f"<{name}>"


def language_tag(language: str) -> str:
    """The name of the tag that asks for a translation into this language (Johnson et al. 2017, section 3)."""
    return f"2{language}"


@dataclass(frozen=True)
class Reading:
    """One way of reading pairs as examples."""

    tags: tuple[int, ...] = ()  # ids in front of every source
    is_reversed: bool = False  # the target is the source

    @property
    def is_plain(self) -> bool:
        return self == Reading()

    def __call__(self, sources: Rows, targets: Rows) -> tuple[Rows, Rows]:
        """Sources have EOS and targets do not, before and after."""
        if self.is_reversed:
            sources, targets = [np.concatenate([row, _END]) for row in targets], [row[:-1] for row in sources]
        if self.tags:
            tags = np.array(self.tags, dtype=np.int32)
            sources = [np.concatenate([tags, row]) for row in sources]
        return sources, targets


class Table(Protocol):
    """Token ids of pairs, by row: a `TokenizedCorpus`, or a view of some."""

    @property
    def source_lengths(self) -> Lengths: ...
    @property
    def target_lengths(self) -> Lengths: ...
    def __len__(self) -> int: ...
    def rows(self, indices: np.ndarray) -> tuple[Rows, Rows]: ...
    def pair_numbers(self, indices: np.ndarray) -> np.ndarray: ...
    def release(self) -> None: ...


class ReadTable:
    """A table whose pairs are read in one way."""

    def __init__(self, table: Table, reading: Reading) -> None:
        self.table = table
        self.reading = reading
        lengths = table.source_lengths, table.target_lengths
        source_lengths, self.target_lengths = lengths[::-1] if reading.is_reversed else lengths
        self.source_lengths: Lengths = _LongerBy(source_lengths, len(reading.tags))

    def __len__(self) -> int:
        return len(self.table)

    def rows(self, indices: np.ndarray) -> tuple[Rows, Rows]:
        return self.reading(*self.table.rows(indices))

    def pair_numbers(self, indices: np.ndarray) -> np.ndarray:
        return self.table.pair_numbers(indices)

    def release(self) -> None:
        self.table.release()


class ReadTables:
    """A concatenation of tables in which the same `num_pairs` pairs occur several times, read in different ways."""

    def __init__(self, tables: Sequence[ReadTable], num_pairs: int) -> None:
        self.tables = list(tables)
        self.num_pairs = num_pairs
        self.source_lengths: Lengths = _JoinedLengths([table.source_lengths for table in tables])
        self.target_lengths: Lengths = _JoinedLengths([table.target_lengths for table in tables])

    def __len__(self) -> int:
        return sum(map(len, self.tables))

    def rows(self, indices: np.ndarray) -> tuple[Rows, Rows]:
        sources: dict[int, np.ndarray] = {}
        targets: dict[int, np.ndarray] = {}
        for part, positions, inside in split_by_part([len(table) for table in self.tables], indices):
            for found, rows in zip((sources, targets), self.tables[part].rows(inside), strict=True):
                found.update(zip(positions.tolist(), rows, strict=True))
        order = range(len(indices))
        return [sources[position] for position in order], [targets[position] for position in order]

    def pair_numbers(self, indices: np.ndarray) -> np.ndarray:
        numbers: np.ndarray = indices % self.num_pairs
        return numbers

    def release(self) -> None:
        for table in self.tables:
            table.release()


def read_in_ways(tables: Sequence[Table], ways: Sequence[Sequence[Reading]]) -> ReadTables:
    """All rows of the tables, once in each way; a way has a reading for each table."""
    views = [ReadTable(table, reading) for way in ways for table, reading in zip(tables, way, strict=True)]
    return ReadTables(views, sum(map(len, tables)))


class _LongerBy:
    def __init__(self, lengths: Lengths, extra: int) -> None:
        self.lengths = lengths
        self.extra = extra

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        lengths: np.ndarray = self.lengths[rows] + np.int32(self.extra)
        return lengths

    def sum(self) -> int:
        return self.lengths.sum() + self.extra * len(self)


class _JoinedLengths:
    def __init__(self, parts: Sequence[Lengths]) -> None:
        self.parts = list(parts)

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        lengths = np.empty(len(rows), dtype=np.int32)
        for part, positions, inside in split_by_part([len(part) for part in self.parts], rows):
            lengths[positions] = self.parts[part][inside]
        return lengths

    def sum(self) -> int:
        return sum(part.sum() for part in self.parts)
