"""Consistency: two passes over each pair, which differ in what is dropped, should predict the same.

R-Drop (Liang et al. 2021, arXiv:2106.14448) passes each pair through the model twice with different dropout. With the
two predictions p and q of a position, the loss of the position is

    (CE(p) + CE(q)) / 2  +  w · (KL(p‖q) + KL(q‖p)) / 2

which is equation 4 of the paper divided by two, so w is half its α; the scale is then that of one pass. With a cutoff
some pieces' embeddings are zeroed in the second pass, as in SimCut (Gao et al. 2022, arXiv:2206.02368).

The sum over positions is additive over pairs, like that of the plain loss. In evaluation there is no dropout, so both
passes would be the same: the loss is then the plain one, of one pass, and can be compared with that of other runs.
"""

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from translator.kernels.choice import use_kernels
from translator.kernels.consistency import ConsistencySums, chunked_consistency
from translator.models.base import Kept, Seq2Seq
from translator.schema.training import OptimConfig
from translator.training.interfaces import NO_MOMENT, LossOutput, Moment, TrainingBatch
from translator.training.objectives.cross_entropy import CrossEntropy, real_positions

# Positions of each pass whose logits are in memory at once, several times over. In the backward pass they are computed
# again, which is a third more work for this projection.
_CHUNK = 1_024


def build(options: OptimConfig) -> "ConsistencyLoss":
    consistency = options.consistency
    return ConsistencyLoss(
        options.label_smoothing, consistency.weight, consistency.cutoff, consistency.start, consistency.ramp
    )


class ConsistencyLoss:
    """The plain loss until `start`, then consistency with a weight that grows over `ramp`; both are shares of a run."""

    def __init__(
        self, label_smoothing: float, weight: float, cutoff: float = 0.0, start: float = 0.0, ramp: float = 0.0
    ) -> None:
        self.plain = CrossEntropy(label_smoothing)
        self.weight = weight
        self.cutoff = cutoff
        self.start = start
        self.ramp = ramp

    def weight_at(self, share_done: float) -> float:
        if share_done < self.start:
            return 0.0
        return self.weight * (min(1.0, (share_done - self.start) / self.ramp) if self.ramp > 0 else 1.0)

    def __call__(self, model: Seq2Seq, batch: TrainingBatch, moment: Moment = NO_MOMENT) -> LossOutput:
        weight = self.weight_at(moment.share_done) if model.training else 0.0
        if weight == 0:
            return self.plain(model, batch, moment)
        # One batch of 2B rows, and one pass through the model: dropout differs between all rows anyway.
        decoded = model(
            *(_twice(part) for part in (batch.source, batch.source_mask, batch.target_in)),
            teacher_forcing=moment.teacher_forcing,
            kept=self._kept(batch) if self.cutoff > 0 else None,
        )
        positions = real_positions(batch.target_mask, batch.num_target_tokens)  # (N,)
        both = torch.cat([positions, positions + batch.target_mask.numel()])  # (2N,)
        states = decoded.states.flatten(0, 1).index_select(0, both).unflatten(0, (2, -1))  # (2, N, D)
        targets = batch.target_out.flatten().index_select(0, positions)  # (N,)
        sums = consistency(states, model.output_weight, model.output_bias, targets, self.plain.label_smoothing, weight)
        parts = {"nll": sums.nll.detach(), "divergence": sums.divergence.detach()}
        return LossOutput(sums.loss, parts, batch.num_target_tokens)

    def _kept(self, batch: TrainingBatch) -> Kept:
        """All pieces in the first B rows; in the others each is cut with the probability of the cutoff."""
        return Kept(*(
            torch.cat([torch.ones_like(ids, dtype=torch.bool), torch.rand(ids.shape, device=ids.device) >= self.cutoff])
            for ids in (batch.source, batch.target_in)
        ))  # fmt: skip


def _twice(rows: Tensor) -> Tensor:
    return torch.cat([rows, rows])


def consistency(
    states: Tensor,  # (2, N, D)
    weight: Tensor,  # (V, D)
    bias: Tensor | None,  # (V,)
    targets: Tensor,  # (N,)
    label_smoothing: float,
    divergence_weight: float,
) -> ConsistencySums:
    """The loss and its parts, each summed over the positions."""
    if use_kernels(states, weight):
        return chunked_consistency(states, weight, bias, targets, label_smoothing, divergence_weight)

    def sums(states: Tensor, targets: Tensor) -> ConsistencySums:
        return _sums(states, weight, bias, targets, label_smoothing, divergence_weight)

    if len(targets) <= _CHUNK:
        return sums(states, targets)
    chunks = zip(states.split(_CHUNK, dim=1), targets.split(_CHUNK), strict=True)
    found = [checkpoint(sums, *chunk, use_reentrant=False, preserve_rng_state=False) for chunk in chunks]
    return ConsistencySums(*(torch.stack(parts).sum() for parts in zip(*found, strict=True)))


def _sums(
    states: Tensor,  # (2, N, D)
    weight: Tensor,  # (V, D)
    bias: Tensor | None,  # (V,)
    targets: Tensor,  # (N,)
    label_smoothing: float,
    divergence_weight: float,
) -> ConsistencySums:
    log_probs = F.linear(states, weight, bias).log_softmax(-1, dtype=_at_least_single(states))  # (2, N, V)
    nll = -log_probs.gather(2, targets.expand(2, -1).unsqueeze(2)).sum() / 2
    smooth = -log_probs.mean(-1).sum() / 2
    (p, q), (log_p, log_q) = log_probs.exp(), log_probs
    divergence = ((p - q) * (log_p - log_q)).sum() / 2  # KL(p‖q) + KL(q‖p) = Σ (p - q) (log p - log q)
    loss = (1 - label_smoothing) * nll + label_smoothing * smooth + divergence_weight * divergence
    return ConsistencySums(loss, nll.detach(), divergence.detach())


def _at_least_single(states: Tensor) -> torch.dtype:
    return torch.promote_types(states.dtype, torch.float32)  # half precision is not enough for the sum over V
