"""How well a query fits a key: five score functions with one signature.

Letters: T queries (positions of a target or hypotheses of a beam), S keys, Dq and Dk their sizes, A the size of a
prepared key. Leading dimensions (sentences, heads) are arbitrary and broadcast.
"""

import math

import torch
from torch import Tensor, nn

from translator.kernels.additive_score import additive_score
from translator.kernels.choice import use_kernels

SCORES = ("additive", "dot", "scaled_dot", "cosine", "gaussian")


class ScoreFunction(nn.Module):
    """score(q, k) for all pairs of queries and keys, in two parts, so that keys asked many times are prepared once."""

    def prepare(self, keys: Tensor) -> Tensor:
        """Does what does not depend on the query: (…, S, Dk) to (…, S, A)."""
        return keys

    def forward(self, queries: Tensor, prepared: Tensor) -> Tensor:
        """Queries (…, T, Dq) and prepared keys (…, S, A) to scores (…, T, S)."""
        raise NotImplementedError


class AdditiveScore(ScoreFunction):
    """w_v^T tanh(W_q q + W_k k): Bahdanau et al. 2015 (arXiv:1409.0473), section 3.1 and appendix A.1.2.

    There the names are v_a, W_a, U_a, the query is the decoder's state s_{i-1} and the keys are the annotations h_j.
    """

    def __init__(self, query_size: int, key_size: int, hidden_size: int) -> None:
        super().__init__()
        self.query_projection = nn.Linear(query_size, hidden_size, bias=False)  # W_q
        self.key_projection = nn.Linear(key_size, hidden_size, bias=False)  # W_k
        self.energy = nn.Linear(hidden_size, 1, bias=False)  # w_v^T

    def prepare(self, keys: Tensor) -> Tensor:
        result: Tensor = self.key_projection(keys)  # (…, S, A)
        return result

    def forward(self, queries: Tensor, prepared: Tensor) -> Tensor:
        projected = self.query_projection(queries)  # (…, T, A)
        if use_kernels(projected, prepared):
            return additive_score(projected, prepared, self.energy.weight)
        # In place, since (…, T, S, A) is A times as large as the scores; the gradient does not need the sum.
        pairs = (projected.unsqueeze(-2) + prepared.unsqueeze(-3)).tanh_()
        result: Tensor = self.energy(pairs).squeeze(-1)
        return result


class DotScore(ScoreFunction):
    """q^T k: Luong et al. 2015 (arXiv:1508.04025), the `dot` of section 3.1."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def forward(self, queries: Tensor, prepared: Tensor) -> Tensor:
        return queries @ prepared.transpose(-2, -1)


class ScaledDotScore(DotScore):
    """q^T k / √D: Vaswani et al. 2017 (arXiv:1706.03762), section 3.2.1, equation 1."""

    def forward(self, queries: Tensor, prepared: Tensor) -> Tensor:
        # √D divides the queries: they are fewer numbers than the scores, and half precision does not overflow.
        return super().forward(queries / math.sqrt(self.size), prepared)


class CosineScore(ScoreFunction):
    """β q^T k / (|q| |k|): content addressing with key strength β, Graves et al. 2014 (arXiv:1410.5401), section 3.3.1.

    β is learned through its logarithm and so stays positive. It starts at √D: the cosine of two random directions
    varies by 1/√D, so the first scores vary by 1, as the scaled dot's do.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.log_strength = nn.Parameter(torch.tensor(math.log(size) / 2))  # ln β

    def prepare(self, keys: Tensor) -> Tensor:
        return _directions(keys)

    def forward(self, queries: Tensor, prepared: Tensor) -> Tensor:
        return (self.log_strength.exp() * _directions(queries)) @ prepared.transpose(-2, -1)


def _directions(vectors: Tensor) -> Tensor:
    """x / |x|. A zero vector has no direction: it is taken as infinitely long, which gives zero and a zero gradient."""
    lengths = torch.linalg.vector_norm(vectors, dim=-1, keepdim=True)
    result: Tensor = vectors / lengths.masked_fill(lengths < torch.finfo(lengths.dtype).tiny, float("inf"))
    return result


class GaussianScore(ScoreFunction):
    """-|(q - k) w|² / 2, whose softmax is the Gaussian-kernel regression of Nadaraya 1964 and Watson 1964.

    w, the inverse width of the kernel in each dimension, is 1 (non-parametric regression) or learned, starting at
    D^(-1/4), which makes the part w² q^T k as large as the scaled dot.

    With a = q w and b = k w the square is expanded into one inner product, so that no differences are held in memory:
        -|a - b|²/2 = a·b - |a|²/2 - |b|²/2 = [a, -|a|²/2, 1] · [b, 1, -|b|²/2]
    Vectors much farther from the origin than from each other lose digits in it and should be centred by the caller.
    """

    def __init__(self, size: int, learnable: bool = True) -> None:
        super().__init__()
        self.inverse_width: Tensor  # w
        if learnable:
            self.inverse_width = nn.Parameter(torch.full((size,), size**-0.25))
        else:
            self.register_buffer("inverse_width", torch.ones(size), persistent=False)

    def prepare(self, keys: Tensor) -> Tensor:
        scaled = keys * self.inverse_width  # b
        half_square = scaled.square().sum(dim=-1, keepdim=True) / 2  # (…, S, 1)
        return torch.cat((scaled, torch.ones_like(half_square), -half_square), dim=-1)  # (…, S, D + 2)

    def forward(self, queries: Tensor, prepared: Tensor) -> Tensor:
        scaled = queries * self.inverse_width  # a
        half_square = scaled.square().sum(dim=-1, keepdim=True) / 2  # (…, T, 1)
        return torch.cat((scaled, -half_square, torch.ones_like(half_square)), dim=-1) @ prepared.transpose(-2, -1)


def make_score(name: str, query_size: int, key_size: int, hidden_size: int) -> ScoreFunction:
    """The score called `name`. Only the additive one has a hidden size and can compare vectors of different sizes."""
    if name not in SCORES:
        raise ValueError(f"score={name}: must be one of {', '.join(SCORES)}")
    if name == "additive":
        return AdditiveScore(query_size, key_size, hidden_size)
    if query_size != key_size:
        raise ValueError(f"score={name}: needs equal sizes, not {query_size} and {key_size}; use score=additive")
    one_size = {"dot": DotScore, "scaled_dot": ScaledDotScore, "cosine": CosineScore, "gaussian": GaussianScore}
    return one_size[name](query_size)
