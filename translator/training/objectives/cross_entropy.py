"""Label-smoothed cross-entropy over the real target positions (Szegedy et al. 2016, section 7).

With N real positions, V classes, smoothing ε, logits z and target y the loss of a position is

    (1 - ε) · -log p_y  +  ε / V · Σ_v -log p_v       where  -log p_v = logsumexp(z) - z_v

which is what `F.cross_entropy(..., label_smoothing=ε, reduction="sum")` computes. Padding is left out before the
projection to the vocabulary, so it costs nothing.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from translator.models.base import Seq2Seq
from translator.schema.training import OptimConfig
from translator.training.interfaces import LossOutput, TrainingBatch

_CHUNK = 512  # positions projected at once on the CPU: their logits stay in the cache


def build(options: OptimConfig) -> "CrossEntropy":
    return CrossEntropy(options.label_smoothing)


class CrossEntropy:
    """Label-smoothed cross-entropy of the reference's pieces."""

    def __init__(self, label_smoothing: float = 0.0) -> None:
        if not 0 <= label_smoothing < 1:
            raise ValueError(f"label_smoothing must be at least 0 and less than 1, not {label_smoothing}")
        self.label_smoothing = label_smoothing

    def __call__(self, model: Seq2Seq, batch: TrainingBatch, *, teacher_forcing: float = 1.0) -> LossOutput:
        # The model is called, not its methods, so that wrappers such as torch.compile's see the whole forward pass.
        decoded = model(batch.source, batch.source_mask, batch.target_in, teacher_forcing=teacher_forcing)
        positions = real_positions(batch.target_mask, batch.num_target_tokens)  # (N,)
        states = decoded.states.flatten(0, 1).index_select(0, positions)  # (N, D)
        targets = batch.target_out.flatten().index_select(0, positions)  # (N,)
        loss_sum, nll_sum = smoothed_cross_entropy(
            states, model.output_weight, model.output_bias, targets, self.label_smoothing
        )
        return LossOutput(loss_sum, {"nll": nll_sum.detach()}, batch.num_target_tokens)


def real_positions(mask: Tensor, num_tokens: int) -> Tensor:
    """The places of the True ones in the flattened mask, in order.

    A GPU that has to count them makes the CPU wait for it. Their number is known, so a stable sort brings them first.
    """
    return mask.flatten().int().argsort(descending=True, stable=True)[:num_tokens]  # (N,)


def smoothed_cross_entropy(
    states: Tensor,  # (N, D)
    weight: Tensor,  # (V, D)
    bias: Tensor | None,  # (V,)
    targets: Tensor,  # (N,)
    label_smoothing: float,
) -> tuple[Tensor, Tensor]:
    """The smoothed loss and the negative log-likelihood, each summed over the positions."""
    if not torch.is_grad_enabled():  # an autograd function is not told, and would make gradients that nobody wants
        weight, bias = weight.detach(), None if bias is None else bias.detach()
    is_mixed = states.dtype != weight.dtype or torch.is_autocast_enabled(states.device.type)
    if states.device.type == "cpu" and not is_mixed and not torch.compiler.is_compiling():
        return _ChunkedCrossEntropy.apply(states, weight, bias, targets, label_smoothing)
    logits = F.linear(states, weight, bias)  # (N, V)
    if logits.dtype in (torch.float16, torch.bfloat16):
        logits = logits.float()  # half precision is not enough for the sum over V
    loss_sum = F.cross_entropy(logits, targets, label_smoothing=label_smoothing, reduction="sum")
    if label_smoothing == 0:
        return loss_sum, loss_sum
    return loss_sum, F.cross_entropy(logits.detach(), targets, reduction="sum")


class _ChunkedCrossEntropy(torch.autograd.Function):
    """Projection, softmax and gradient of a few hundred positions at a time.

    The logits of a whole batch (4,096 × 6,000 floats) would travel through main memory about ten times. A chunk's
    stay in the cache, and its gradient softmax(z) - (1 - ε)·onehot(y) - ε/V is used up at once, so the forward pass
    makes the gradients of states, weight and bias and the backward pass only scales them. The constant ε/V is never
    subtracted from the (N, V) matrix: its share of each product is a rank-one term.
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
