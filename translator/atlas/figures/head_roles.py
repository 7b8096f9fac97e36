"""What each head looks at, by rules that can be checked: shares of its attention, averaged over many pieces.

Letters: L layers, H heads, S source pieces and EOS, T target pieces and EOS.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from translator.atlas.figures.recorded_attention import STACKS, RecordedPair, Weights
from translator.data.tokenizer import Tokenizer
from translator.decoding.alignment import piece_words, word_attention
from translator.evaluation.alignment import GoldAlignment
from translator.languages import alignment_tokens

# A head has a role if this share of its attention goes there on average. The attention to one piece of ten would be
# 0.1 if it were spread evenly.
SMALLEST_SHARE = 0.4
# Otherwise it is diffuse if its entropy is at least this share of the largest possible one, and mixed if not.
SMALLEST_SPREAD = 0.75
ROLES = {
    "encoder": ("previous", "same", "next", "end"),
    "decoder": ("previous", "same", "begin"),
    "cross": ("alignment", "end"),
}
# In the decoder, row 0 can see only itself, and row 1 only the beginning and itself.
FIRST_QUERY = {"encoder": 0, "decoder": 2, "cross": 0}
Shares = dict[str, Any]  # by role and "spread": arrays (L, H)


def head_roles(
    pairs: Sequence[RecordedPair], tokenizer: Tokenizer, gold: Sequence[GoldAlignment] | None
) -> dict[str, list[list[dict[str, Any]]]]:
    """For each stack, layer and head: its role, the shares it was chosen by, and the spread, from 0 to 1."""
    result = {}
    for stack in STACKS:
        shares = {role: _mean([_part(stack, role)(pair.weights[stack]) for pair in pairs]) for role in _simple(stack)}
        if stack == "cross" and gold is not None:
            shares["alignment"] = _mean(
                [_aligned(pair, truth, tokenizer) for pair, truth in zip(pairs, gold, strict=True)]
            )
        spread = _mean([_spread(stack, pair.weights[stack]) for pair in pairs])
        layers, heads = pairs[0].weights[stack].shape[:2]
        result[stack] = [
            [
                _described({role: share[layer, head] for role, share in shares.items()}, spread[layer, head])
                for head in range(heads)
            ]
            for layer in range(layers)
        ]
    return result


def role_of(shares: dict[str, float], spread: float) -> str:
    """The rule: the largest share if it is large enough, else diffuse or mixed."""
    role = max(shares, key=lambda name: shares[name])
    if shares[role] >= SMALLEST_SHARE:
        return role
    return "diffuse" if spread >= SMALLEST_SPREAD else "mixed"


def _described(shares: dict[str, float], spread: float) -> dict[str, Any]:
    plain = {name: float(share) for name, share in shares.items()}
    return {"role": role_of(plain, float(spread)), "shares": plain, "spread": float(spread)}


def _simple(stack: str) -> list[str]:
    return [role for role in ROLES[stack] if role != "alignment"]


def _mean(parts: Sequence[Weights]) -> Weights:
    """The mean of (L, H, N) over all N of all sentences: (L, H)."""
    return np.asarray(np.concatenate(parts, axis=-1).astype(np.float64).mean(-1))


def _part(stack: str, role: str) -> Callable[[Weights], Weights]:
    """A function from weights (L, H, T, S) to those that count for the role: (L, H, N), one for each query."""

    def select(weights: Weights) -> Weights:
        num_queries, num_keys = weights.shape[2:]
        last = num_queries if stack == "decoder" else num_queries - 1  # what EOS looks at is of no interest
        queries = np.arange(FIRST_QUERY[stack], last)
        keys = {
            "previous": queries - 1,
            "same": queries,
            "next": queries + 1,
            "begin": np.zeros_like(queries),
            "end": np.full_like(queries, num_keys - 1),
        }[role]
        exists = (keys >= 0) & (keys < num_keys)
        return weights[:, :, queries[exists], keys[exists]]

    return select


def _spread(stack: str, weights: Weights) -> Weights:
    """The entropy of each query's weights, relative to that of equal weights on everything it may see: (L, H, N)."""
    num_queries, num_keys = weights.shape[2:]
    last = num_queries if stack == "decoder" else num_queries - 1
    rows = weights[:, :, FIRST_QUERY[stack] : last].astype(np.float64)
    logs = np.log2(rows, out=np.zeros_like(rows), where=rows > 0)
    visible = np.arange(FIRST_QUERY[stack], last) + 1 if stack == "decoder" else np.full(rows.shape[2], num_keys)
    return np.asarray(-(rows * logs).sum(-1) / np.log2(visible))


def _aligned(pair: RecordedPair, gold: GoldAlignment, tokenizer: Tokenizer) -> Weights:
    """The attention of each target word to the source words of its gold alignment: (L, H, words that have one)."""
    weights = pair.weights["cross"][:, :, :-1, :-1]  # EOS is not a word
    source_words, source_shares = piece_words(tokenizer.source_pieces(pair.source_ids[:-1]), alignment_tokens)
    target_words, target_shares = piece_words(tokenizer.target_pieces(pair.target_ids[:-1]), alignment_tokens)
    is_gold = np.zeros((len(target_words), len(source_words)))
    for source, target in gold.possible:
        if source < len(source_words) and target < len(target_words):
            is_gold[target, source] = 1
    between_words = word_attention(torch.from_numpy(weights), source_shares, target_shares).numpy()  # (L, H, Wt, Ws)
    return np.asarray((between_words * is_gold).sum(-1)[:, :, is_gold.any(1)])
