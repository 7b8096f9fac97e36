"""The Transformer's decoder one position at a time, as a search runs it: `DecoderLayer` arranged for small steps.

Letters: B sentences, K hypotheses of each, R = B · K rows, S source length, N cache entries, D model size, H heads.
"""

from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from translator.attention.multihead import MultiHeadAttention
from translator.kernels import decoding as kernels
from translator.kernels.choice import use_kernels
from translator.kernels.key_value_cache import CrossAttentionCache, KeyValue, KeyValueCache, Storage
from translator.models.base import Memory, State


@dataclass(frozen=True)
class TransformerState(State):
    decoder: kernels.StepDecoder
    source: CrossAttentionCache
    target: KeyValueCache
    length: int = 0  # tokens fed so far

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> Self:
        source = self.source if sentences is None else self.source.select(sentences)
        return replace(self, source=source, target=self.target.select(rows, sentences))


def start_state(decoder: kernels.StepDecoder, memory: Memory) -> TransformerState:
    """The state before the first step, with one hypothesis for each sentence."""
    attentions = [layer.cross_attention for layer in decoder.layers]
    keys, values = zip(*(attention.project_memory(memory.states) for attention in attentions), strict=True)
    # With zeros, attention to a source of nothing but padding has no effect.
    visible_values = torch.stack(values).masked_fill_(~memory.mask[:, None, :, None], 0)
    num_sentences, length = memory.mask.shape
    source = Storage(torch.stack(keys), visible_values, length)
    target = KeyValueCache(source.empty(num_sentences, 0))
    return TransformerState(decoder, CrossAttentionCache(source, memory.mask), target)


def decode_step(
    x: Tensor, state: TransformerState, need_weights: bool
) -> tuple[Tensor, TransformerState, list[Tensor]]:
    """Feeds x (R, D) to all layers; gives the last one's output, the new state, attention to the source (R, H, S)."""
    source, num_sentences, num_heads = state.source, state.source.num_sentences, state.source.num_heads
    num_hypotheses = x.shape[0] // num_sentences  # K
    target = state.target.extended(num_hypotheses)
    attention_step = kernels.attend if use_kernels(x) else attend
    target_bias, all_weights = target.attention_bias(state.decoder.relative_bias), []
    layers = zip(state.decoder.layers, target.newest(), target.layers(), source.layers, strict=True)
    for layer, new, seen, memory in layers:
        attention = layer.self_attention
        projected = layer.project(layer.enter_self(x))  # (R, 3D)
        heads = projected.view(num_sentences, num_hypotheses, 3, num_heads, attention.head_size).permute(2, 0, 3, 1, 4)
        queries, keys, values = heads.unbind()  # each (B, H, K, D/H)
        if attention.rotary is not None:  # which takes positions along the last dimension but one
            queries = attention.rotary(queries.unsqueeze(-2), state.length).squeeze(-2)
            keys = attention.rotary(keys.unsqueeze(-2), state.length).squeeze(-2)
        new.keys.copy_(attention.score.prepare(keys))
        new.values.copy_(values)
        queries = queries.reshape(num_sentences * num_heads, num_hypotheses, attention.head_size)
        attended, _ = attention_step(attention, queries, seen, target_bias)
        x = layer.leave_self(x, layer.self_output(kernels.merge_heads(attended, num_sentences)))

        queries = kernels.split_heads(layer.project_query(layer.enter_cross(x)), num_sentences, num_heads)
        attended, weights = attention_step(layer.cross_attention, queries, memory, source.bias)
        x = layer.leave_cross(x, layer.cross_output(kernels.merge_heads(attended, num_sentences)))
        if need_weights:
            visible = weights.unflatten(0, (num_sentences, num_heads)) * source.mask[:, None, None]  # (B, H, K, S)
            all_weights.append(visible.transpose(1, 2).flatten(0, 1))
        x = layer.leave_feedforward(x, layer.outer(layer.activate(layer.inner(layer.enter_feedforward(x)))))
    return x, TransformerState(state.decoder, source, target, state.length + 1), all_weights


def attend(attention: MultiHeadAttention, queries: Tensor, cache: KeyValue, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Attention of queries (B·H, K, D/H) to keys and values (B·H, N, …): heads (B·H, K, D/H), weights (B·H, K, N)."""
    weights = torch.softmax(attention.score(queries, cache.keys) + bias, dim=-1)
    return weights @ cache.values, weights
