"""Reversing each sentence of a padded batch within its own length, with a gradient of its own.

It is used on every device: nothing about it is special to CPUs.
"""

from typing import Any

import torch
from torch import Tensor


def reverse(sequence: Tensor, reversal: Tensor) -> Tensor:
    """The steps `reversal` (S, B) of a sequence (S, B, D): at (s, b) stands what stood at (reversal[s, b], b).

    Reversing twice must change nothing, as is the case for `reversal` from `reversed_steps`.
    """
    result: Tensor = _Reverse.apply(sequence, reversal)
    return result


def reversed_steps(lengths: Tensor, num_steps: int) -> Tensor:
    """Which step of each sentence stands where when the sentence is reversed and its padding stays in place: (S, B)."""
    steps = torch.arange(num_steps, device=lengths.device).unsqueeze(1)  # (S, 1)
    return torch.where(steps < lengths, lengths - 1 - steps, steps)


class _Reverse(torch.autograd.Function):
    """The gradient is the gradient from above, reversed likewise.

    Autograd would not know that each number goes to a place of its own, and would add them up element by element.
    """

    @staticmethod
    def forward(sequence: Tensor, reversal: Tensor) -> Tensor:
        num_rows = sequence.shape[1]
        rows = reversal * num_rows + torch.arange(num_rows, device=reversal.device)  # (S, B)
        return sequence.flatten(0, 1).index_select(0, rows.flatten()).view_as(sequence)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(inputs[1])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (reversal,) = ctx.saved_tensors
        return _Reverse.forward(gradients[0], reversal), None
