"""Projection to the vocabulary, cross-entropy and divergence of two passes over the same targets, in chunks.

Letters: N positions, n positions of a chunk, D size of a state, V vocabulary; p and q are the two predictions.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

_CHUNK = 128  # positions of each pass that are projected at once: the logits of both stay in the processor's cache


class ConsistencySums(NamedTuple):
    """Sums over the positions; only the loss has a gradient."""

    loss: Tensor  # ()
    nll: Tensor  # (), the mean of both passes
    divergence: Tensor  # (), (KL(p‖q) + KL(q‖p)) / 2, without its weight


def chunked_consistency(
    states: Tensor,  # (2, N, D)
    weight: Tensor,  # (V, D)
    bias: Tensor | None,  # (V,)
    targets: Tensor,  # (N,)
    label_smoothing: float,
    divergence_weight: float,
) -> ConsistencySums:
    """The mean of both smoothed cross-entropies plus w times half the symmetric divergence (KL(p‖q) + KL(q‖p)) / 2."""
    if not torch.is_grad_enabled():  # an autograd function cannot tell, and would compute unused gradients
        weight, bias = weight.detach(), None if bias is None else bias.detach()
    return ConsistencySums(
        *_ChunkedConsistency.apply(states, weight, bias, targets, label_smoothing, divergence_weight)
    )


class _ChunkedConsistency(torch.autograd.Function):
    """As `_ChunkedCrossEntropy`: the forward pass makes the gradients, and the backward pass only scales them.

    With r = log p - log q and K = KL(p‖q) the gradient of KL(p‖q) + KL(q‖p) with respect to p's logits is

        p · (r - K) + p - q

    and that with respect to q's is its mirror image. Together with the cross-entropy's, where h = w / 2:

        p · (1/2 + h (1 + r - K)) - h q - (1 - ε)/2 · onehot(y) - ε/(2V)
    """

    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        label_smoothing: float,
        divergence_weight: float,
    ) -> tuple[Tensor, Tensor, Tensor]:
        need_gradient = any(ctx.needs_input_grad[:3])
        num_positions, half = states.shape[1], divergence_weight / 2
        weight_sum = weight.sum(0)  # (D,)
        bias_sum = bias.sum() if bias is not None else weight.new_zeros(())
        uniform = label_smoothing / weight.shape[0]
        grad_states = torch.empty_like(states) if need_gradient else None
        grad_weight = torch.zeros_like(weight) if need_gradient else None
        grad_bias = torch.zeros_like(bias) if need_gradient and bias is not None else None
        nll_sum, smooth_sum, divergence_sum = (states.new_zeros(()) for _ in range(3))

        for start in range(0, num_positions, _CHUNK):
            rows = slice(start, start + _CHUNK)
            chunk = states[:, rows]  # (2, n, D)
            wanted = targets[rows].expand(2, -1).unsqueeze(2)  # (2, n, 1)
            logits = F.linear(chunk, weight, bias)  # (2, n, V)
            probabilities, log_normalizer = _softmax(logits)  # (2, n, V), (2, n)
            nll_sum += (log_normalizer - logits.gather(2, wanted).squeeze(2)).sum() / 2
            smooth_sum += log_normalizer.sum() / 2
            p, q = probabilities
            ratio, other = logits  # their memory: r takes the place of p's logits
            ratio.sub_(other).sub_((log_normalizer[0] - log_normalizer[1])[:, None])
            divergences = _row_products(probabilities, ratio)  # (2, n): KL(p‖q), -KL(q‖p)
            divergences[1].neg_()
            divergence_sum += divergences.sum() / 2
            if grad_states is None or grad_weight is None:
                continue
            constant = (0.5 + half - half * divergences).unsqueeze(2)  # (2, n, 1)
            torch.sub(constant[1], ratio, alpha=half, out=other)
            torch.add(constant[0], ratio, alpha=half, out=ratio)
            gradient = logits.mul_(probabilities)
            ratio.sub_(q, alpha=half)
            other.sub_(p, alpha=half)
            gradient.scatter_add_(2, wanted, gradient.new_full(wanted.shape, (label_smoothing - 1) / 2))
            for copy in (0, 1):
                torch.mm(gradient[copy], weight, out=grad_states[copy, rows])
            grad_weight.addmm_(gradient.flatten(0, 1).t(), chunk.flatten(0, 1))
            if grad_bias is not None:
                grad_bias += gradient.sum((0, 1))

        # Σ_n Σ_v z_v without another pass over the logits.
        logit_sum = (states.sum((0, 1)) @ weight_sum) / 2 + bias_sum * num_positions
        loss_sum = (1 - label_smoothing) * nll_sum + label_smoothing * smooth_sum - uniform * logit_sum
        loss_sum = loss_sum + divergence_weight * divergence_sum
        if grad_states is not None and grad_weight is not None:
            # The constant ε/(2V) is never subtracted from the logits' gradient: its share is a rank-one term.
            grad_states -= uniform / 2 * weight_sum
            grad_weight -= uniform / 2 * states.sum((0, 1))
            if grad_bias is not None:
                grad_bias -= uniform * num_positions
            ctx.save_for_backward(*(g for g in (grad_states, grad_weight, grad_bias) if g is not None))
        ctx.mark_non_differentiable(nll_sum, divergence_sum)
        return loss_sum, nll_sum, divergence_sum

    @staticmethod
    def backward(ctx: Any, grad_loss: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        grads: list[Tensor | None] = [saved * grad_loss for saved in ctx.saved_tensors]
        grads += [None] * (6 - len(grads))
        return tuple(grads)


def _softmax(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Probabilities (…, V) and logsumexp(z) (…)."""
    probabilities = torch.softmax(logits, -1)
    # The highest probability is at least 1 / V, so its logarithm is safe where those of others may not be.
    return probabilities, logits.amax(-1) - probabilities.amax(-1).log()


def _row_products(first: Tensor, second: Tensor) -> Tensor:
    """Σ_v a_v b_v of rows (2, n, V) with rows (n, V): (2, n)."""
    rows = first.transpose(0, 1)  # (n, 2, V)
    return torch.bmm(rows, second.unsqueeze(2)).squeeze(2).t().contiguous()
