"""Round-trip of rows of different lengths."""

import numpy as np

from translator.data.ragged_array import RaggedArray

ROWS = [[4, 5, 6], [], [7], [8, 9]]


def test_rows_can_be_read_in_any_order() -> None:
    array = RaggedArray.from_rows(ROWS)
    assert array.ids.dtype == np.int32
    assert [row.tolist() for row in array.rows(np.array([3, 0, 1, 0, 2]))] == [[8, 9], [4, 5, 6], [], [4, 5, 6], [7]]


def test_joined_arrays_hold_the_rows_of_all() -> None:
    joined = RaggedArray.joined([RaggedArray.from_rows(ROWS[:1]), RaggedArray.from_rows(ROWS[1:])])
    assert [row.tolist() for row in joined.rows(np.arange(4))] == ROWS


def test_an_array_can_be_filled_piece_by_piece() -> None:
    array = RaggedArray.to_be_filled(np.array([3, 0, 1, 2], dtype=np.int32))
    array.fill(2, [np.array(row, dtype=np.int32) for row in ROWS[2:]])
    array.fill(0, [np.array(row, dtype=np.int32) for row in ROWS[:2]])
    assert [row.tolist() for row in array.rows(np.arange(4))] == ROWS
