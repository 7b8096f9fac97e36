"""Forced decoding: how likely a model finds a given translation, and what it attends to."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from translator.ids import BOS, EOS, PAD
from translator.models.base import Seq2Seq


class Forced(NamedTuple):
    score: float  # the log-probability of the pieces and of EOS
    piece_scores: list[float]  # of each piece and, last, of EOS
    attention: Tensor | None  # (T, S): of each piece and EOS, averaged over layers and heads


@torch.inference_mode()
def score_targets(
    model: Seq2Seq,
    source: Tensor,  # (B, S)
    source_mask: Tensor,  # (B, S)
    targets: Sequence[Sequence[int]],  # pieces without BOS and EOS
    *,
    need_attention: bool = False,
) -> list[Forced]:
    """The log-probabilities of given targets under a model in evaluation mode, and its attention if asked for."""
    longest = max(map(len, targets)) + 1
    target_in = torch.full((len(targets), longest), PAD)
    target_out = torch.full((len(targets), longest), PAD)
    for row, target in enumerate(targets):
        target_in[row, : len(target) + 1] = torch.tensor([BOS, *target])
        target_out[row, : len(target) + 1] = torch.tensor([*target, EOS])
    target_out = target_out.to(source.device)
    decoded = model(source, source_mask, target_in.to(source.device), need_weights=need_attention)
    # Position by position: the logits of all positions at once would take too much memory.
    columns = []
    for position in range(longest):
        logits = model.project(decoded.states[:, position])  # (B, V)
        dtype = torch.float32 if logits.dtype in (torch.float16, torch.bfloat16) else logits.dtype
        log_probs = torch.log_softmax(logits, dim=-1, dtype=dtype)
        columns.append(log_probs.gather(1, target_out[:, position, None]).squeeze(1))
    scores = torch.stack(columns, 1).tolist()  # (B, T)
    attention = decoded.attention.mean((1, 2)).float().cpu() if decoded.attention is not None else None  # (B, T, S)
    source_lengths = source_mask.sum(1).tolist()
    results = []
    for row, target in enumerate(targets):
        piece_scores = scores[row][: len(target) + 1]
        weights = None if attention is None else attention[row, : len(target) + 1, : source_lengths[row]]
        results.append(Forced(sum(piece_scores), piece_scores, weights))
    return results
