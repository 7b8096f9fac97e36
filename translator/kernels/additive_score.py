"""The additive score with σ in place of tanh, which takes four times as long in torch on CPUs."""

import torch
from torch import Tensor
from torch.nn import functional as F


def additive_score(queries: Tensor, keys: Tensor, energy: Tensor) -> Tensor:
    """w^T tanh(q + k), from projected queries (…, T, A), projected keys (…, S, A) and w^T (1, A) to (…, T, S).

    tanh(x) = 2 σ(2x) - 1, so the score is 2 w^T σ(2q + 2k) - Σ w.
    """
    # (…, T, S, A) is A times as large as the scores, so there is only one of it, which σ overwrites.
    pairs = torch.add(2 * queries.unsqueeze(-2), keys.unsqueeze(-3), alpha=2).sigmoid_()
    return 2 * F.linear(pairs, energy).squeeze(-1) - energy.sum()
