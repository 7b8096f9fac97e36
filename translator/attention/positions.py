"""Positions in the sentence: sinusoidal, learned, rotary, relative or none.

Letters: B sentences, T positions, D the size of the vectors. `offset` is the position of the first vector.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

TABLE_LENGTH = 1024  # positions computed once, when the module is made; later ones are computed when they occur
NUM_BUCKETS, MAX_DISTANCE = 32, 128  # of relative positions


class NoPositions(nn.Module):
    """Leaves the embeddings alone."""

    def forward(self, embeddings: Tensor, offset: int = 0) -> Tensor:
        return embeddings


class LearnedPositions(nn.Module):
    """A learned vector for each of `max_positions` positions; all later ones share the last, and so have no order."""

    def __init__(self, size: int, max_positions: int) -> None:
        super().__init__()
        self.max_positions = max_positions
        self.weight = nn.Parameter(torch.empty(max_positions, size))
        nn.init.normal_(self.weight, std=size**-0.5)

    def encoding(self, length: int, offset: int = 0) -> Tensor:
        """The vectors (T, D) of `length` positions from `offset` on."""
        positions = torch.arange(offset, offset + length, device=self.weight.device)
        return F.embedding(positions.clamp(max=self.max_positions - 1), self.weight)

    def forward(self, embeddings: Tensor, offset: int = 0) -> Tensor:
        return embeddings + self.encoding(embeddings.shape[-2], offset).to(embeddings.dtype)  # (B, T, D)


class SinusoidalPositions(nn.Module):
    """PE(p, 2i) = sin(p / 10000^(2i/D)), PE(p, 2i+1) = cos(p / 10000^(2i/D)): Vaswani et al. 2017, section 3.5.

    There is no last position. The angles are always computed in float64 on the CPU: at position 5,000 float32 would
    already lose four digits, and a position has the same encoding whether it comes from the table or not.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        if size % 2:
            raise ValueError(f"size={size}: must be even, since positions rotate pairs of dimensions")
        self.size = size
        # As a new parameter would be: of the default type, on the default device (which may be `meta`).
        table = self._compute(0, TABLE_LENGTH).to(torch.get_default_device(), torch.get_default_dtype())
        self.table: Tensor
        self.register_buffer("table", table, persistent=False)

    def encoding(self, length: int, offset: int = 0) -> Tensor:
        """The table's rows (T, D) of `length` positions from `offset` on."""
        if offset + length <= TABLE_LENGTH:
            return self.table[offset : offset + length]
        return self._compute(offset, length).to(self.table)

    def _compute(self, offset: int, length: int) -> Tensor:
        positions = torch.arange(offset, offset + length, dtype=torch.float64, device="cpu")
        pairs = torch.arange(0, self.size, 2, dtype=torch.float64, device="cpu")
        angles = positions.unsqueeze(1) / 10000 ** (pairs / self.size)  # (T, D/2)
        return self._arrange(angles.sin(), angles.cos())

    def _arrange(self, sines: Tensor, cosines: Tensor) -> Tensor:
        return torch.stack((sines, cosines), dim=-1).flatten(1)  # (T, D)

    def forward(self, embeddings: Tensor, offset: int = 0) -> Tensor:
        return embeddings + self.encoding(embeddings.shape[-2], offset).to(embeddings.dtype)  # (B, T, D)


class RotaryPositions(SinusoidalPositions):
    """Rotates queries and keys by the same angles: Su et al. 2021 (arXiv:2104.09864), section 3.2.

    The inner product of two rotated vectors depends on their distance only, not on their positions. The paper pairs
    dimension 2i with 2i + 1; here i goes with i + D/2, which is the same up to the order of the rows of the projection
    before it and lets the halves be read as they lie in memory.
    """

    def _arrange(self, sines: Tensor, cosines: Tensor) -> Tensor:
        return torch.cat((sines, cosines), dim=-1)  # (T, D)

    def forward(self, heads: Tensor, offset: int = 0) -> Tensor:
        """Queries or keys (…, T, D) with each position rotated by its angles."""
        sines, cosines = self.encoding(heads.shape[-2], offset).to(heads.dtype).chunk(2, dim=-1)  # (T, D/2) each
        first, second = heads.chunk(2, dim=-1)  # (…, T, D/2) each
        return torch.cat((first * cosines - second * sines, second * cosines + first * sines), dim=-1)


class RelativePositionBias(nn.Module):
    """A learned number for each head and range of distances, added to the scores of all layers of a stack.

    Raffel et al. 2020 (arXiv:1910.10683, T5), section 2.1: half of the buckets are single distances, the other half
    logarithmic ranges, the last one open. A bidirectional bias gives half of the buckets to each direction.
    """

    def __init__(self, model_size: int, num_heads: int, *, bidirectional: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(NUM_BUCKETS, num_heads))
        nn.init.normal_(self.weight, std=model_size**-0.5)
        num_ranges = NUM_BUCKETS // 2 if bidirectional else NUM_BUCKETS
        before = [_bucket(distance, num_ranges) for distance in range(MAX_DISTANCE + 1)]
        after = [num_ranges + bucket if bidirectional else 0 for bucket in before[1:]]
        self.buckets: Tensor  # of the offsets -MAX_DISTANCE … MAX_DISTANCE from query to key
        self.register_buffer("buckets", torch.tensor(before[::-1] + after), persistent=False)

    def forward(self, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        """Positions (T,) of queries and (S,) of keys to the bias (1, H, T, S)."""
        offsets = (key_positions - query_positions.unsqueeze(1)).clamp(-MAX_DISTANCE, MAX_DISTANCE)
        bias = F.embedding(self.buckets[offsets + MAX_DISTANCE], self.weight)  # (T, S, H)
        return bias.permute(2, 0, 1).unsqueeze(0)

    def within(self, length: int) -> Tensor:
        """The bias (1, H, T, T) between the positions of a sequence."""
        positions = torch.arange(length, device=self.buckets.device)
        return self.forward(positions, positions)


def _bucket(distance: int, num_buckets: int) -> int:
    """The bucket of a distance of at least 0 in one direction."""
    num_exact = num_buckets // 2
    if distance < num_exact:
        return distance
    share = math.log(distance / num_exact) / math.log(MAX_DISTANCE / num_exact)  # of the way to the maximum distance
    return min(num_exact + int(share * (num_buckets - num_exact)), num_buckets - 1)


def make_additive_positions(name: str, size: int, max_positions: int) -> nn.Module:
    """What is added to the embeddings; rotary positions act on queries and keys instead, relative ones on scores."""
    if name == "sinusoidal":
        return SinusoidalPositions(size)
    if name == "learned":
        return LearnedPositions(size, max_positions)
    if name in ("rotary", "relative", "none"):
        return NoPositions()
    raise ValueError(f"positions must be one of sinusoidal, learned, rotary, relative or none, not {name}")
