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
    heads: Tensor | None = None  # (L, H, T, S): the same before averaging
    likeliest: list[list[tuple[int, float]]] | None = None  # of each position: ids and log-probabilities, best first


@torch.inference_mode()
def score_targets(
    model: Seq2Seq,
    source: Tensor,  # (B, S)
    source_mask: Tensor,  # (B, S)
    targets: Sequence[Sequence[int]],  # pieces without BOS and EOS
    *,
    need_attention: bool = False,
    need_heads: bool = False,
    num_likeliest: int = 0,
) -> list[Forced]:
    """The log-probabilities of given targets under a model in evaluation mode.

    On request also its attention, and the pieces that it finds likeliest at every position.
    """
    longest = max(map(len, targets)) + 1
    target_in = torch.full((len(targets), longest), PAD)
    target_out = torch.full((len(targets), longest), PAD)
    for row, target in enumerate(targets):
        target_in[row, : len(target) + 1] = torch.tensor([BOS, *target])
        target_out[row, : len(target) + 1] = torch.tensor([*target, EOS])
    target_out = target_out.to(source.device)
    decoded = model(source, source_mask, target_in.to(source.device), need_weights=need_attention or need_heads)
    # Position by position: the logits of all positions at once would take too much memory.
    columns, likeliest = [], []
    for position in range(longest):
        logits = model.project(decoded.states[:, position])  # (B, V)
        dtype = torch.float32 if logits.dtype in (torch.float16, torch.bfloat16) else logits.dtype
        log_probs = torch.log_softmax(logits, dim=-1, dtype=dtype)
        columns.append(log_probs.gather(1, target_out[:, position, None]).squeeze(1))
        if num_likeliest > 0:
            values, ids = log_probs.topk(min(num_likeliest, log_probs.size(1)))  # (B, n)
            rows = zip(ids.tolist(), values.tolist(), strict=True)
            likeliest.append([list(zip(*row, strict=True)) for row in rows])
    scores = torch.stack(columns, 1).tolist()  # (B, T)
    heads = decoded.attention  # (B, L, H, T, S)
    mean = heads.mean((1, 2)).float().cpu() if heads is not None and need_attention else None  # (B, T, S)
    source_lengths = source_mask.sum(1).tolist()
    results = []
    for row, target in enumerate(targets):
        length, source_length = len(target) + 1, source_lengths[row]
        piece_scores = scores[row][:length]
        weights = None if mean is None else mean[row, :length, :source_length]
        own_heads = (
            heads[row, :, :, :length, :source_length].float().cpu() if heads is not None and need_heads else None
        )
        own_likeliest = [column[row] for column in likeliest[:length]] if num_likeliest else None
        results.append(Forced(sum(piece_scores), piece_scores, weights, own_heads, own_likeliest))
    return results
