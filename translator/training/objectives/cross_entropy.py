"""Label-smoothed cross-entropy over the real target positions (Szegedy et al. 2016, section 7).

With N real positions, V classes, smoothing ε, logits z and target y the loss of a position is

    (1 - ε) · -log p_y  +  ε / V · Σ_v -log p_v       where  -log p_v = logsumexp(z) - z_v

which is what `F.cross_entropy(..., label_smoothing=ε, reduction="sum")` computes. Padding is left out before the
projection to the vocabulary, so it costs nothing.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from translator.kernels.choice import use_kernels
from translator.kernels.cross_entropy import chunked_cross_entropy
from translator.models.base import Seq2Seq
from translator.schema.training import OptimConfig
from translator.training.interfaces import NO_MOMENT, LossOutput, Moment, TrainingBatch


def build(options: OptimConfig) -> "CrossEntropy":
    return CrossEntropy(options.label_smoothing)


class CrossEntropy:
    """Label-smoothed cross-entropy of the reference's pieces."""

    def __init__(self, label_smoothing: float = 0.0) -> None:
        if not 0 <= label_smoothing < 1:
            raise ValueError(f"label_smoothing must be at least 0 and less than 1, not {label_smoothing}")
        self.label_smoothing = label_smoothing

    def __call__(self, model: Seq2Seq, batch: TrainingBatch, moment: Moment = NO_MOMENT) -> LossOutput:
        # The model is called, not its methods, so that wrappers such as torch.compile's see the whole forward pass.
        decoded = model(batch.source, batch.source_mask, batch.target_in, teacher_forcing=moment.teacher_forcing)
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
    if use_kernels(states, weight):
        return chunked_cross_entropy(states, weight, bias, targets, label_smoothing)
    logits = F.linear(states, weight, bias)  # (N, V)
    if logits.dtype in (torch.float16, torch.bfloat16):
        logits = logits.float()  # half precision is not enough for the sum over V
    loss_sum = F.cross_entropy(logits, targets, label_smoothing=label_smoothing, reduction="sum")
    if label_smoothing == 0:
        return loss_sum, loss_sum.detach()
    return loss_sum, F.cross_entropy(logits.detach(), targets, reduction="sum")
