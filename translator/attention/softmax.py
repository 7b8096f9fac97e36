"""The softmax over what may be attended to, and nothing else.

Masks are boolean, True = may be attended to. T is the number of queries, S the number of keys.
"""

import torch
from torch import Tensor

from translator.kernels.choice import use_kernels
from translator.kernels.softmax import fused_masked_softmax


def masked_softmax(scores: Tensor, mask: Tensor | None) -> Tensor:
    """The weights exp(score) / Σ exp(score), the sum running over the positions where `mask` is True.

    `scores` is (…, T, S) and `mask` anything that broadcasts to it. Elsewhere weight and gradient are exactly zero. A
    row in which nothing may be attended to is all zeros too, and neither it nor its gradient is ever NaN.
    """
    if mask is None:
        return torch.softmax(scores, dim=-1)
    if use_kernels(scores):
        return fused_masked_softmax(scores, mask)
    # The softmax of a row that is all -inf would be NaN, so an empty row gets zeros, and later loses its weights.
    is_empty = ~mask.any(dim=-1, keepdim=True)  # (…, T, 1)
    masked = scores.masked_fill(~mask, float("-inf")).masked_fill(is_empty, 0.0)
    return torch.softmax(masked, dim=-1).masked_fill(is_empty, 0.0)  # (…, T, S)
