"""The Transformer's decoder one position at a time, as the search runs it: `DecoderLayer` arranged for small steps.

Letters: B sentences, K hypotheses of each, R = B · K rows, S source length, N slots, D model size, H heads, L layers.
"""

import math

import torch
from torch import Tensor

from translator.attention.multihead import KeyValue, MultiHeadAttention
from translator.models.base import Memory
from translator.models.transformer_bound import StepDecoder
from translator.models.transformer_state import HIDDEN, Source, TransformerState, by_layer

SMALLEST_PRODUCT = 400  # multiplications in a matrix product that torch leaves to a fast library on CPUs


def start_state(decoder: StepDecoder, memory: Memory) -> TransformerState:
    """The state before the first step, with one hypothesis for each sentence."""
    attentions = [layer.cross_attention for layer in decoder.layers]
    padding = ~memory.mask[:, None, :, None]  # (B, 1, S, 1)
    keys, values = zip(*(attention.project_memory(memory.states) for attention in attentions), strict=True)
    # Zeros, so that a source of nothing but padding gives nothing, however the weights fall.
    tables = KeyValue(torch.stack(keys), torch.stack(values).masked_fill_(padding, 0))
    bias = tables.values.new_zeros(memory.mask.shape).masked_fill_(~memory.mask, HIDDEN)
    return TransformerState(decoder, Source(tables, bias[:, None, None].repeat(1, tables.values.shape[2], 1, 1)))


def decode_step(
    x: Tensor, state: TransformerState, need_weights: bool
) -> tuple[Tensor, TransformerState, list[Tensor]]:
    """Feeds x (R, D) to all layers; gives the last one's output, the new state, attention to the source (R, H, S)."""
    source = state.source
    num_sentences, num_heads = source.num_sentences, source.num_heads
    num_new = x.shape[0] // num_sentences  # K
    offset, first_new = state.length, state.num_slots
    state = state.extended(num_new)
    assert state.slots is not None
    seen = KeyValue(*(table[:, :, :, : state.num_slots] for table in state.slots.tables))  # (L, B, H, N, …)
    new_keys, new_values = (table[:, :, :, first_new:].unbind() for table in seen)  # L times (B, H, K, …)
    slot_bias = x.new_zeros(())
    if state.slot_bias is not None:
        slot_bias = state.slot_bias.view(num_sentences, 1, num_new, -1).expand(-1, num_heads, -1, -1).flatten(0, 1)
    all_weights = []
    for number, (layer, slots) in enumerate(zip(state.decoder.layers, by_layer(seen), strict=True)):
        attention = layer.self_attention
        projected = layer.project(layer.self_branch.enter(x))  # (R, 3D)
        heads = projected.view(num_sentences, num_new, 3, num_heads, attention.head_size).permute(2, 0, 3, 1, 4)
        queries, keys, values = heads.unbind()  # each (B, H, K, D/H)
        if attention.rotary is not None:  # which takes positions along the last dimension but one
            queries = attention.rotary(queries.unsqueeze(-2), offset).squeeze(-2)
            keys = attention.rotary(keys.unsqueeze(-2), offset).squeeze(-2)
        new_keys[number].copy_(attention.score.prepare(keys))
        new_values[number].copy_(values)
        queries = queries.reshape(num_sentences * num_heads, num_new, attention.head_size)
        attended, _ = _attend(attention, queries, slots, slot_bias)
        x = layer.self_branch.leave(x, layer.self_output(_merge_heads(attended, num_sentences)))

        queries = _split_heads(layer.project_query(layer.cross_branch.enter(x)), num_sentences, num_heads)
        attended, weights = _attend(layer.cross_attention, queries, source.layers[number], source.joint_bias)
        x = layer.cross_branch.leave(x, layer.cross_output(_merge_heads(attended, num_sentences)))
        if need_weights:
            visible = weights.unflatten(0, (num_sentences, num_heads)) * (source.bias == 0)  # (B, H, K, S)
            all_weights.append(visible.transpose(1, 2).flatten(0, 1))
        inner = layer.activate(layer.inner(layer.feedforward_branch.enter(x)))
        x = layer.feedforward_branch.leave(x, layer.outer(inner))
    return x, state, all_weights


def _split_heads(x: Tensor, num_sentences: int, num_heads: int) -> Tensor:
    """(R, D) to (B·H, K, D/H)."""
    num_rows, size = x.shape
    if num_rows == num_sentences:  # K = 1, and nothing to be reordered
        return x.view(-1, 1, size // num_heads)
    return x.view(num_sentences, -1, num_heads, size // num_heads).transpose(1, 2).flatten(0, 1)


def _merge_heads(heads: Tensor, num_sentences: int) -> Tensor:
    """(B·H, K, D/H) to (R, D)."""
    num_queries, head_size = heads.shape[1:]
    if num_queries == 1:
        return heads.view(num_sentences, -1)
    heads = heads.view(num_sentences, -1, num_queries, head_size).transpose(1, 2)  # (B, K, H, D/H)
    return heads.reshape(num_sentences * num_queries, -1)


def _attend(attention: MultiHeadAttention, queries: Tensor, table: KeyValue, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Attention of queries (B·H, K, D/H) to keys and values (B·H, N, …): heads (B·H, K, D/H), weights (B·H, K, N)."""
    num_queries, (num_keys, head_size) = queries.shape[1], table.values.shape[1:]
    scale = 1 / math.sqrt(head_size)
    # On CPUs torch multiplies the smallest matrices in a plain loop, several times slower than products and sums.
    is_small = num_queries == 1 and num_keys * head_size < SMALLEST_PRODUCT and queries.is_cpu
    if not attention.is_scaled_dot:
        scores = attention.score(queries, table.keys) + bias  # (B·H, K, N)
    elif is_small:
        scores = torch.add(bias, (queries * table.keys).sum(-1).unsqueeze(1), alpha=scale)
    else:
        scores = torch.baddbmm(bias, queries, table.keys.transpose(1, 2), alpha=scale)
    weights = torch.softmax(scores, dim=-1)
    if is_small:
        return (weights.transpose(1, 2) * table.values).sum(1, keepdim=True), weights
    return torch.bmm(weights, table.values), weights
