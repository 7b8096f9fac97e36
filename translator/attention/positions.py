"""Where in the sentence a vector stands: sinusoidal, learned, rotary or no positions.

Letters: B sentences, T positions, D the size of the vectors. `offset` is the position of the first vector, for decoders
that go on one position at a time.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

TABLE_LENGTH = 1024  # positions computed once, when the module is made; later ones are computed when they occur


def _angles(size: int, offset: int, length: int) -> Tensor:
    """p / 10000^(2i/D) for positions p and pairs i (T, D/2): the arguments of sine and cosine in Vaswani et al. 2017.

    In float64 on the CPU, whatever device they are used on: at position 5,000 float32 would already lose four digits,
    and a position has the same encoding whether it comes from the table or not.
    """
    positions = torch.arange(offset, offset + length, dtype=torch.float64, device="cpu")
    pairs = torch.arange(0, size, 2, dtype=torch.float64, device="cpu")
    return positions.unsqueeze(1) / 10000 ** (pairs / size)


def _sinusoids(size: int, offset: int, length: int) -> Tensor:
    angles = _angles(size, offset, length)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)  # (T, D), sine and cosine taking turns


def _require_even(size: int, what: str) -> None:
    if size % 2:
        raise ValueError(f"{what}={size}: must be even, since positions turn pairs of dimensions")


class NoPositions(nn.Module):
    """Leaves the embeddings alone."""

    def forward(self, embeddings: Tensor, offset: int = 0) -> Tensor:
        return embeddings


class SinusoidalPositions(nn.Module):
    """PE(p, 2i) = sin(p / 10000^(2i/D)), PE(p, 2i+1) = cos(p / 10000^(2i/D)): Vaswani et al. 2017, section 3.5.

    There is no last position.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        _require_even(size, "size")
        self.size = size
        self.table: Tensor
        self.register_buffer("table", _like_default(_sinusoids(size, 0, TABLE_LENGTH)), persistent=False)

    def encoding(self, length: int, offset: int = 0) -> Tensor:
        """The encodings (T, D) of `length` positions from `offset` on."""
        if offset + length <= TABLE_LENGTH:
            return self.table[offset : offset + length]
        return _sinusoids(self.size, offset, length).to(self.table)

    def forward(self, embeddings: Tensor, offset: int = 0) -> Tensor:
        return embeddings + self.encoding(embeddings.shape[-2], offset).to(embeddings.dtype)  # (B, T, D)


class LearnedPositions(nn.Module):
    """A learned vector for each of `max_positions` positions; all later positions share the last one.

    A long sentence is therefore no error, but its end is read without order: let `max_positions` cover the corpus.
    """

    def __init__(self, size: int, max_positions: int) -> None:
        super().__init__()
        self.max_positions = max_positions
        self.weight = nn.Parameter(torch.empty(max_positions, size))
        nn.init.normal_(self.weight, std=size**-0.5)

    def encoding(self, length: int, offset: int = 0) -> Tensor:
        """The vectors (T, D) of `length` positions from `offset` on."""
        if offset + length <= self.max_positions:
            return self.weight[offset : offset + length]
        positions = torch.arange(offset, offset + length, device=self.weight.device)
        return F.embedding(positions.clamp(max=self.max_positions - 1), self.weight)

    def forward(self, embeddings: Tensor, offset: int = 0) -> Tensor:
        return embeddings + self.encoding(embeddings.shape[-2], offset).to(embeddings.dtype)  # (B, T, D)


class RotaryPositions(nn.Module):
    """Turns queries and keys by angles that grow with the position: Su et al. 2021 (arXiv:2104.09864), section 3.2.

    Two vectors turned by p and r have the inner product of one turned by p - r and one not turned, so scores know
    nothing but the distance. The paper pairs dimension 2i with 2i + 1; here i goes with i + D/2, which is the same up
    to the order of the rows of the projection before it and lets the halves be read as they lie in memory.
    """

    def __init__(self, head_size: int) -> None:
        super().__init__()
        _require_even(head_size, "head_size")
        self.head_size = head_size
        angles = _angles(head_size, 0, TABLE_LENGTH)
        self.cosines: Tensor
        self.sines: Tensor
        self.register_buffer("cosines", _like_default(angles.cos()), persistent=False)
        self.register_buffer("sines", _like_default(angles.sin()), persistent=False)

    def _rotations(self, length: int, offset: int) -> tuple[Tensor, Tensor]:
        """Cosines and sines (T, D/2) of the angles at `length` positions from `offset` on."""
        if offset + length <= TABLE_LENGTH:
            return self.cosines[offset : offset + length], self.sines[offset : offset + length]
        angles = _angles(self.head_size, offset, length)
        return angles.cos().to(self.cosines), angles.sin().to(self.sines)

    def forward(self, heads: Tensor, offset: int = 0) -> Tensor:
        """Queries or keys (…, T, D) with each position turned by its angles."""
        cosines, sines = (table.to(heads.dtype) for table in self._rotations(heads.shape[-2], offset))
        first, second = heads.chunk(2, dim=-1)  # (…, T, D/2) each
        return torch.cat((first * cosines - second * sines, second * cosines + first * sines), dim=-1)


def _like_default(table: Tensor) -> Tensor:
    """The table as a new parameter would be: of the default type, on the default device (which may be `meta`)."""
    return table.to(torch.get_default_device(), torch.get_default_dtype())
