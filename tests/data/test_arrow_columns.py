"""Lists and lengths read from mapped files against what was written."""

from pathlib import Path

import numpy as np
import pyarrow
import pytest

from translator.data.arrow_columns import ArrowLengths, ArrowLists
from translator.data.row_parts import split_by_part

SOURCES = [[1, 2, 3], [], [4], [5, 6], [], [7, 8, 9, 10]]
TARGETS = [[-1], [-2, -3], [], [-4], [-5], []]


@pytest.mark.parametrize("batch_rows", [1, 2, 4, 6])
def test_lists_are_those_that_were_written(tmp_path: Path, batch_rows: int) -> None:
    columns = {"source": SOURCES, "target": TARGETS}
    table = pyarrow.table({name: pyarrow.array(rows, pyarrow.list_(pyarrow.int32())) for name, rows in columns.items()})
    with pyarrow.ipc.new_stream(str(tmp_path / "rows.arrow"), table.schema) as writer:
        writer.write_table(table, max_chunksize=batch_rows)
    lists = ArrowLists(tmp_path / "rows.arrow")
    assert len(lists) == 6
    wanted = np.array([5, 0, 1, 4, 3, 3, 2])
    assert [row.tolist() for row in lists.rows(0, wanted)] == [SOURCES[row] for row in wanted]
    assert [row.tolist() for row in lists.rows(1, wanted)] == [TARGETS[row] for row in wanted]


def test_lengths_of_several_tables_are_concatenated(tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(0, 100, 9_000, dtype=np.int32)  # more than one read
    parts = []
    for number, part in enumerate(np.split(values, [10, 10, 4_500])):
        np.save(tmp_path / f"{number}.npy", part)
        parts += ArrowLengths.open(tmp_path / f"{number}.npy").parts if len(part) else []
    lengths = ArrowLengths(parts)
    assert (len(lengths), lengths.sum()) == (9_000, values.sum())
    rows = np.random.default_rng(1).permutation(9_000)
    np.testing.assert_array_equal(lengths[rows], values[rows])


def test_rows_are_split_by_the_part_that_holds_them() -> None:
    sizes, rows = [3, 0, 2, 4], np.array([8, 0, 4, 3, 2, 8])
    owners = [(part, place) for part, size in enumerate(sizes) for place in range(size)]
    found = [(0, 0)] * len(rows)
    for part, positions, places in split_by_part(sizes, rows):
        for position, place in zip(positions.tolist(), places.tolist(), strict=True):
            found[position] = (part, place)
    assert found == [owners[row] for row in rows]
