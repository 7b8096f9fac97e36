"""Dropout from random bytes.

torch draws one random number for each element on the CPU, which made dropout the most expensive operation of a small
model's training step. Here eight random bytes come from each draw of torch's own generator, so results still follow
from the seed and the generator's state.

With bytes the rate is a multiple of 1/256: the one nearest to the rate asked for. The kept elements are scaled by the
rate that is really applied, so the expectation is exact.
"""

from typing import Any

import torch
from torch import Tensor

_LEVELS = 256  # values of a byte


def byte_dropout(x: Tensor, p: float) -> Tensor:
    """`F.dropout(x, p)` with other random numbers."""
    result: Tensor = _ByteDropout.apply(x, _threshold(p))
    return result


def byte_dropout_add(residual: Tensor, x: Tensor, p: float) -> Tensor:
    """residual + dropout(x), in one pass over memory."""
    result: Tensor = _ByteDropoutAdd.apply(residual, x, _threshold(p))
    return result


def _threshold(p: float) -> int:
    """How many of the 256 values of a byte mean "drop"."""
    return min(max(round(p * _LEVELS), 1), _LEVELS - 1)


def _scale(threshold: int) -> float:
    return _LEVELS / (_LEVELS - threshold)


def _keep(shape: torch.Size, threshold: int) -> Tensor:
    """A random int8 mask of the shape: 1 = keep, 0 = drop.

    The byte is compared by clamping it between two neighbouring values, which torch does many times faster than `>=`.
    """
    numel = shape.numel()
    words = torch.empty((numel + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
    bytes_ = words.view(torch.int8)[:numel].view(shape)  # uniform over -128 … 127
    lowest_kept = threshold - _LEVELS // 2
    return bytes_.clamp_(lowest_kept - 1, lowest_kept).sub_(lowest_kept - 1)


class _ByteDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, threshold: int) -> Tensor:
        keep = _keep(x.shape, threshold)
        ctx.save_for_backward(keep)
        ctx.scale = _scale(threshold)
        return keep.to(x.dtype).mul_(ctx.scale).mul_(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (keep,) = ctx.saved_tensors
        return keep.to(grad.dtype).mul_(ctx.scale).mul_(grad), None


class _ByteDropoutAdd(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, residual: Tensor, x: Tensor, threshold: int) -> Tensor:
        keep = _keep(x.shape, threshold)
        ctx.save_for_backward(keep)
        ctx.scale = _scale(threshold)
        return torch.addcmul(residual, x, keep.to(x.dtype), value=ctx.scale)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        (keep,) = ctx.saved_tensors
        return grad, keep.to(grad.dtype).mul_(ctx.scale).mul_(grad), None
