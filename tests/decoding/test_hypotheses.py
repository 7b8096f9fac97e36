"""How long an output may be, and what makes hypotheses of different lengths comparable."""

import pytest
import torch

from translator.decoding.hypotheses import length_limits, length_penalty
from translator.schema.decode import LengthPenalty, SearchOptions

SOURCE_MASK = torch.arange(11) < torch.tensor([[11], [5], [1], [0]])  # 10, 4, 0 and 0 pieces before EOS


def test_limits_grow_with_the_source() -> None:
    options = SearchOptions(max_length_ratio=1.5, max_length_extra=3, min_length=2, min_length_ratio=0.5)
    assert length_limits(SOURCE_MASK, options, None) == ([5, 2, 2, 2], [18, 9, 3, 3])


def test_a_prefix_is_added_to_what_may_be_written() -> None:
    options = SearchOptions(max_length_ratio=0, max_length_extra=2)
    prefixes = [[7, 8, 9], [], [7], []]
    assert length_limits(SOURCE_MASK, options, prefixes) == ([1] * 4, [5, 2, 3, 2])


def test_an_output_may_always_have_one_piece() -> None:
    options = SearchOptions(max_length_ratio=0, max_length_extra=0, min_length=9)
    assert length_limits(SOURCE_MASK, options, None) == ([1] * 4, [1] * 4)


@pytest.mark.parametrize(
    ("name", "alpha", "expected"),
    [("none", 1.0, 1.0), ("average", 0.0, 1.0), ("average", 1.0, 7.0), ("average", 0.5, 7**0.5), ("gnmt", 1.0, 2.0)],
)
def test_length_penalties(name: str, alpha: float, expected: float) -> None:
    options = SearchOptions(length_penalty=LengthPenalty(name), alpha=alpha)
    assert length_penalty(7.0, options) == pytest.approx(expected)
