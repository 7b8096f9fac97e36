"""Projection to the vocabulary and label-smoothed cross-entropy, a few hundred positions at a time.

Letters: N positions, n positions of a chunk, D size of a state, V vocabulary.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

_CHUNK = 512  # positions projected at once: their logits stay in the processor's cache


def chunked_cross_entropy(
    states: Tensor,  # (N, D)
    weight: Tensor,  # (V, D)
    bias: Tensor | None,  # (V,)
    targets: Tensor,  # (N,)
    label_smoothing: float,
) -> tuple[Tensor, Tensor]:
    """The smoothed loss and the negative log-likelihood, each summed over the positions; only the loss has a gradient.

    With logits z and target y the loss of a position is (1 - ε) · -log p_y + ε/V · Σ_v -log p_v.
    """
    if not torch.is_grad_enabled():  # an autograd function cannot tell, and would compute unused gradients
        weight, bias = weight.detach(), None if bias is None else bias.detach()
    result: tuple[Tensor, Tensor] = _ChunkedCrossEntropy.apply(states, weight, bias, targets, label_smoothing)
    return result


class _ChunkedCrossEntropy(torch.autograd.Function):
    """The logits of a whole batch (4,096 × 6,000 floats) would travel through main memory about ten times.

    A chunk's stay in the cache, and its gradient softmax(z) - (1 - ε)·onehot(y) - ε/V is used up at once, so the
    forward pass makes the gradients of states, weight and bias and the backward pass only scales them. The constant ε/V
    is never subtracted from the (N, V) matrix: its share of each product is a rank-one term.
    """

    @staticmethod
    def forward(
        ctx: Any, states: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, label_smoothing: float
    ) -> tuple[Tensor, Tensor]:
        need_gradient = any(ctx.needs_input_grad[:3])
        vocab_size = weight.shape[0]
        weight_sum = weight.sum(0)  # (D,)
        bias_sum = bias.sum() if bias is not None else weight.new_zeros(())
        uniform = label_smoothing / vocab_size
        grad_states = torch.empty_like(states) if need_gradient else None
        grad_weight = torch.zeros_like(weight) if need_gradient else None
        grad_bias = torch.zeros_like(bias) if need_gradient and bias is not None else None
        loss_sum, nll_sum = states.new_zeros(()), states.new_zeros(())

        for start in range(0, len(states), _CHUNK):
            chunk, wanted = states[start : start + _CHUNK], targets[start : start + _CHUNK, None]  # (n, D), (n, 1)
            logits = F.linear(chunk, weight, bias)  # (n, V)
            target_logits = logits.gather(1, wanted).squeeze(1)  # (n,)
            highest = logits.amax(1)  # (n,)
            probabilities = torch.softmax(logits, 1)
            # The highest probability is at least 1 / V, so its logarithm is safe where that of p_y may not be.
            log_normalizer = highest - probabilities.amax(1).log()  # (n,) = logsumexp(z)
            nll = (log_normalizer - target_logits).sum()
            # Σ_n Σ_v z_v without another pass over (n, V).
            logit_sum = (chunk @ weight_sum).sum() + bias_sum * len(chunk)
            nll_sum += nll
            loss_sum += (1 - label_smoothing) * nll + label_smoothing * log_normalizer.sum() - uniform * logit_sum
            if grad_states is None or grad_weight is None:
                continue
            gradient = probabilities.scatter_add_(1, wanted, probabilities.new_full(wanted.shape, label_smoothing - 1))
            torch.mm(gradient, weight, out=grad_states[start : start + _CHUNK])
            grad_weight.addmm_(gradient.t(), chunk)
            if grad_bias is not None:
                grad_bias += gradient.sum(0)

        if grad_states is not None and grad_weight is not None:
            grad_states -= uniform * weight_sum
            grad_weight -= uniform * states.sum(0)
            if grad_bias is not None:
                grad_bias -= uniform * len(states)
            ctx.save_for_backward(*(g for g in (grad_states, grad_weight, grad_bias) if g is not None))
        ctx.mark_non_differentiable(nll_sum)
        return loss_sum, nll_sum

    @staticmethod
    def backward(ctx: Any, grad_loss: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        grads: list[Tensor | None] = [saved * grad_loss for saved in ctx.saved_tensors]
        grads += [None] * (5 - len(grads))
        return tuple(grads)
