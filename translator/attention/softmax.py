"""The softmax over what may be attended to, and nothing else.

Masks are boolean, True = may be attended to. T is the number of queries, S the number of keys.
"""

from typing import Any

import torch
from torch import Tensor


def lengths_to_mask(lengths: Tensor, max_length: int | None = None) -> Tensor:
    """Lengths (…,) to a mask (…, S) that is True on the first `lengths` positions of each row.

    Without `max_length`, S is the greatest length, which has to be fetched from the device.
    """
    if max_length is None:
        max_length = int(lengths.max()) if lengths.numel() else 0
    return torch.arange(max_length, device=lengths.device) < lengths.unsqueeze(-1)  # (…, S)


def masked_softmax(scores: Tensor, mask: Tensor | None) -> Tensor:
    """The weights exp(score) / Σ exp(score), the sum running over the positions where `mask` is True.

    `scores` is (…, T, S) and `mask` anything that broadcasts to it. Elsewhere weight and gradient are exactly zero. A
    row in which nothing may be attended to is all zeros too, and neither it nor its gradient is ever NaN.
    """
    return torch.softmax(scores, dim=-1) if mask is None else _MaskedSoftmax.apply(scores, mask)


class _MaskedSoftmax(torch.autograd.Function):
    """One pass over the scores before torch's softmax and one over the weights after it, none in the backward.

    The gradient of a softmax, w (g - Σ w g), is zero wherever the weight w is, so what was masked in the forward needs
    no mask in the backward. With `masked_fill`, left to autograd, forward and backward together took twice as long.
    """

    @staticmethod
    def forward(scores: Tensor, mask: Tensor) -> Tensor:
        any_allowed = mask.any(dim=-1, keepdim=True)  # (…, T, 1), or smaller: it broadcasts like the mask
        # -inf fits every floating-point type and makes the weight exactly zero whatever the other scores are. An empty
        # row must not be all -inf, which would be NaN: it is filled with zeros and its uniform weights removed below.
        fill = torch.where(any_allowed, float("-inf"), 0.0).to(scores.dtype)
        weights = torch.softmax(torch.where(mask, scores, fill), dim=-1)  # (…, T, S)
        weights *= any_allowed
        return weights

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(output)
        ctx.scores_dtype = inputs[0].dtype  # under autocast the weights may be of a wider type

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (weights,) = ctx.saved_tensors
        (gradient,) = gradients
        result = torch._softmax_backward_data(gradient, weights, -1, weights.dtype)
        return result.to(ctx.scores_dtype), None
