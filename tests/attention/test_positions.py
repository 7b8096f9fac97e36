"""Positional encodings against their formulas and the identities they are designed to satisfy."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from translator.attention.positions import (
    TABLE_LENGTH,
    LearnedPositions,
    NoPositions,
    RelativePositionBias,
    RotaryPositions,
    SinusoidalPositions,
)

FAR = [0, 1, 7, TABLE_LENGTH - 2, TABLE_LENGTH, 5 * TABLE_LENGTH]  # inside the table, across its end, and beyond it


def sinusoidal_by_hand(position: int, size: int) -> np.ndarray:
    row = np.empty(size)
    for i in range(size // 2):
        angle = position / 10000 ** (2 * i / size)
        row[2 * i], row[2 * i + 1] = math.sin(angle), math.cos(angle)
    return row


@pytest.mark.parametrize("offset", FAR)
def test_sinusoidal_encoding_equals_its_formula(offset: int) -> None:
    encoding = SinusoidalPositions(12).encoding(5, offset)
    expected = np.stack([sinusoidal_by_hand(offset + p, 12) for p in range(5)])
    np.testing.assert_allclose(encoding.numpy(), expected, atol=1e-7)


@pytest.mark.parametrize("shift", [1, 5, 100])
@pytest.mark.parametrize("position", [0, 3, 900, 3000])
def test_sinusoidal_shift_is_a_linear_map_independent_of_the_position(position: int, shift: int) -> None:
    """PE(p + k) = M_k PE(p), where M_k rotates each pair of dimensions by an angle proportional to k."""
    size = 16
    positions = SinusoidalPositions(size).double()
    turn = np.zeros((size, size))
    for i in range(size // 2):
        angle = shift / 10000 ** (2 * i / size)
        pair = slice(2 * i, 2 * i + 2)
        turn[pair, pair] = [[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]]
    here = positions.encoding(1, position)[0].numpy()
    there = positions.encoding(1, position + shift)[0].numpy()
    np.testing.assert_allclose(turn @ here, there, atol=1e-6)


ADDITIVE = [
    pytest.param(SinusoidalPositions(8), id="sinusoidal"),
    pytest.param(LearnedPositions(8, 16), id="learned"),
    pytest.param(NoPositions(), id="none"),
]
ALL = [*ADDITIVE, pytest.param(RotaryPositions(8), id="rotary")]


@pytest.mark.parametrize("positions", ALL)
def test_a_long_sequence_equals_its_parts(positions: nn.Module) -> None:
    """The encoding of a position does not depend on how many positions are computed at once."""
    vectors = torch.randn(2, TABLE_LENGTH + 40, 8)
    whole = positions(vectors)
    for start, end in [
        (0, 3),
        (3, 20),
        (20, 21),
        (TABLE_LENGTH - 5, TABLE_LENGTH + 5),
        (TABLE_LENGTH + 1, len(vectors[0])),
    ]:
        torch.testing.assert_close(positions(vectors[:, start:end], start), whole[:, start:end], rtol=0, atol=1e-6)


@pytest.mark.parametrize("positions", ALL)
def test_any_length_is_accepted(positions: nn.Module) -> None:
    assert positions(torch.randn(1, 6000, 8)).isfinite().all()
    assert positions(torch.randn(1, 1, 8), 10**6).isfinite().all()


@pytest.mark.parametrize("positions", ADDITIVE[:2])
def test_the_encoding_is_added(positions: SinusoidalPositions | LearnedPositions) -> None:
    embeddings = torch.randn(3, 5, 8)
    torch.testing.assert_close(positions(embeddings, 2) - embeddings, positions.encoding(5, 2).expand(3, 5, 8))


def test_no_positions_changes_nothing() -> None:
    embeddings = torch.randn(3, 5, 8)
    assert NoPositions()(embeddings, 4) is embeddings


def test_positions_beyond_the_last_learned_one_share_its_encoding() -> None:
    positions = LearnedPositions(4, 6)
    encoding = positions.encoding(5, 4)  # positions 4 … 8; 5 is the last with its own row
    assert torch.equal(encoding, positions.weight[[4, 5, 5, 5, 5]])
    encoding.sum().backward()
    assert positions.weight.grad is not None
    assert positions.weight.grad[:, 0].tolist() == [0, 0, 0, 0, 1, 4]


def rotated_by_hand(vector: np.ndarray, position: int) -> np.ndarray:
    half = len(vector) // 2
    result = np.empty_like(vector)
    for i in range(half):
        turn = complex(vector[i], vector[i + half]) * np.exp(1j * position / 10000 ** (i / half))
        result[i], result[i + half] = turn.real, turn.imag
    return result


@pytest.mark.parametrize("offset", FAR)
def test_rotary_equals_its_formula(offset: int) -> None:
    heads = torch.randn(2, 3, 4, 6, dtype=torch.float64)
    rotated = RotaryPositions(6)(heads, offset).numpy()
    for b, h, t in np.ndindex(2, 3, 4):
        np.testing.assert_allclose(rotated[b, h, t], rotated_by_hand(heads[b, h, t].numpy(), offset + t), atol=1e-6)


@pytest.mark.parametrize("shift", [1, 17, 2000])
def test_rotary_scores_depend_on_the_distance_only(shift: int) -> None:
    rotary = RotaryPositions(8).double()
    query, key = torch.randn(5, 8, dtype=torch.float64), torch.randn(7, 8, dtype=torch.float64)
    here = rotary(query, 3) @ rotary(key, 9).T
    there = rotary(query, 3 + shift) @ rotary(key, 9 + shift).T
    torch.testing.assert_close(here, there, rtol=0, atol=1e-5)
    assert not torch.allclose(here, rotary(query, 4) @ rotary(key, 9).T, atol=1e-2)  # another distance


def test_rotary_preserves_norms() -> None:
    heads = torch.randn(2, 50, 8, dtype=torch.float64)
    torch.testing.assert_close(RotaryPositions(8).double()(heads).norm(dim=-1), heads.norm(dim=-1), rtol=1e-6, atol=0)


def bucket_by_hand(offset: int, bidirectional: bool) -> int:
    """Section 2.1 of Raffel et al.: 32 buckets; per direction half are exact, half logarithmic up to distance 128.

    The edges of the logarithmic buckets are compared in integer arithmetic: distance d is at or beyond the edge
    e · (128 / e)^(k / n) if d^n ≥ e^(n - k) · 128^k.
    """
    size = 16 if bidirectional else 32
    first = size if bidirectional and offset > 0 else 0
    distance = abs(offset) if bidirectional else max(-offset, 0)
    exact = size // 2
    if distance < exact:
        return first + distance
    ranges = size - exact
    edges = [k for k in range(1, ranges) if distance**ranges >= exact ** (ranges - k) * 128**k]
    return first + exact + len(edges)


@pytest.mark.parametrize("bidirectional", [True, False])
def test_relative_buckets_are_those_of_the_paper(bidirectional: bool) -> None:
    bias = RelativePositionBias(8, 3, bidirectional=bidirectional)
    keys = np.arange(700)
    for query in (0, 1, 7, 8, 15, 16, 90, 350, 699):
        actual = bias(torch.tensor([query]), torch.from_numpy(keys))  # (1, H, 1, S)
        buckets = np.array([bucket_by_hand(int(key) - query, bidirectional) for key in keys])
        np.testing.assert_array_equal(actual[0, :, 0].detach().numpy(), bias.weight.detach().numpy()[buckets].T)
    assert {bucket_by_hand(offset, bidirectional) for offset in range(-200, 201)} == (
        set(range(32)) - {16} if bidirectional else set(range(32))  # distance 0 has one bucket, not two
    )


def test_relative_bias_depends_on_the_distance_only() -> None:
    bias = RelativePositionBias(8, 3, bidirectional=True)
    positions = torch.arange(40)
    assert bias.within(40).shape == (1, 3, 40, 40)
    assert torch.equal(bias(positions + 1000, positions + 1000), bias.within(40))


def test_relative_buckets_are_not_in_the_state_dict() -> None:
    assert set(RelativePositionBias(8, 3, bidirectional=True).state_dict()) == {"weight"}


def test_relative_bias_on_the_meta_device_and_compiled() -> None:
    with torch.device("meta"):
        assert RelativePositionBias(8, 3, bidirectional=False).within(5).device.type == "meta"
    bias = RelativePositionBias(8, 3, bidirectional=False)
    compiled = torch.compile(lambda: bias.within(5), fullgraph=True, backend="eager")
    assert torch.equal(compiled(), bias.within(5))


@pytest.mark.parametrize("make", [SinusoidalPositions, RotaryPositions])
def test_odd_sizes_are_refused(make: type[nn.Module]) -> None:
    with pytest.raises(ValueError, match=r"size=7: must be even"):
        make(7)


@pytest.mark.parametrize("positions", ALL)
def test_tables_are_not_in_the_state_dict(positions: nn.Module) -> None:
    assert set(positions.state_dict()) == {name for name, _ in positions.named_parameters()}


@pytest.mark.parametrize("length", [4, TABLE_LENGTH + 4])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize(
    "make", [lambda: SinusoidalPositions(8), lambda: LearnedPositions(8, 5), lambda: RotaryPositions(8)]
)
def test_output_has_the_dtype_of_the_input(make: type[nn.Module], dtype: torch.dtype, length: int) -> None:
    vectors = torch.randn(2, length, 8, dtype=dtype)
    assert make()(vectors).dtype == dtype
    assert make().to(dtype)(vectors).dtype == dtype


@pytest.mark.parametrize("length", [4, TABLE_LENGTH + 4])
def test_meta_device(length: int) -> None:
    with torch.device("meta"):
        modules = [SinusoidalPositions(8), LearnedPositions(8, 5), RotaryPositions(8), NoPositions()]
        vectors = torch.randn(2, length, 8)
    for module in modules:
        assert module(vectors).device.type == "meta"
        assert all(tensor.device.type == "meta" for tensor in (*module.parameters(), *module.buffers()))


@pytest.mark.parametrize("length", [4, TABLE_LENGTH + 4])
@pytest.mark.parametrize("positions", ALL)
def test_compiles_as_one_graph(positions: nn.Module, length: int) -> None:
    def run(module: nn.Module, vectors: Tensor) -> Tensor:
        return module(vectors, 2)

    vectors = torch.randn(2, length, 8)
    compiled = torch.compile(run, fullgraph=True, backend="aot_eager", dynamic=False)
    torch.testing.assert_close(compiled(positions, vectors), run(positions, vectors))
