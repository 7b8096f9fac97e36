"""The Transformer's decoder one position at a time, as a search runs it: `DecoderLayer` arranged for small steps.

Letters: B sentences, K hypotheses of each, R = B · K rows, S source length, N cache entries, D model size, H heads,
L layers, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor, nn

from translator.attention.multihead import MultiHeadAttention
from translator.attention.positions import RelativePositionBias
from translator.kernels import decoding as kernels
from translator.kernels.choice import use_kernels
from translator.kernels.key_value_cache import KeyValueCache
from translator.models.base import Memory, State
from translator.models.transformer_layers import DecoderLayer

# Added to a score, it makes the weight exactly zero, since e^-750 already is, even in double precision. It fits half
# precision too.
MASKED_SCORE = -30_000.0
STEPS_OF_ROOM = 16  # that a new cache has


class StepLayer:
    """A decoder layer with everything looked up that a step needs of it."""

    def __init__(self, layer: DecoderLayer) -> None:
        self.self_attention, self.cross_attention = layer.self_attention, layer.cross_attention
        residuals = (layer.self_residual, layer.cross_residual, layer.feedforward_residual)
        ends = [kernels.residual(residual.norm, residual.pre_norm) for residual in residuals]
        (self.enter_self, self.leave_self), (self.enter_cross, self.leave_cross), (self.enter_ff, self.leave_ff) = ends
        weight, bias = layer.cross_attention.input_projection.weight, layer.cross_attention.input_projection.bias
        size = weight.shape[1]
        self.project_query = kernels.linear(weight[:size], bias[:size])
        linears = (
            layer.self_attention.input_projection,  # to 3D: queries, keys and values
            layer.self_attention.output_projection,
            layer.cross_attention.output_projection,
            layer.feedforward.inner,
            layer.feedforward.outer,
        )
        self.project, self.self_output, self.cross_output, self.inner, self.outer = (
            kernels.linear(linear.weight, linear.bias) for linear in linears
        )
        self.activate = layer.feedforward.activate


class StepDecoder:
    """The decoder's layers, the bias of their self-attention and what comes after them."""

    def __init__(
        self,
        layers: Sequence[DecoderLayer],
        relative_bias: RelativePositionBias | None,
        final_norm: nn.Module,
        output_weight: Tensor,
    ) -> None:
        self.layers = [StepLayer(layer) for layer in layers]
        self.relative_bias = relative_bias
        self.normalize = kernels.normalization(final_norm)
        self.project = kernels.vocabulary_projection(output_weight)

    def logits(self, x: Tensor) -> Tensor:
        """(R, D) to (R, V)."""
        return self.project(self.normalize(x))


class CrossAttentionCache:
    """Keys and values of the source, and the bias that masks its padding.

    Their views are made here, once for all steps, since every call from Python counts in a step.
    """

    def __init__(self, cache: KeyValueCache, bias: Tensor) -> None:
        self.cache = cache  # the values of padding are zero
        self.bias = bias  # (B, H, 1, S), added to scores: 0, or MASKED_SCORE for padding
        self.num_sentences, self.num_heads = bias.shape[:2]
        self.layers = cache.layers(cache.length)  # L times (B·H, S, …)
        self.joint_bias = bias.flatten(0, 1)  # (B·H, 1, S)

    def select(self, sentences: Tensor) -> "CrossAttentionCache":
        return CrossAttentionCache(
            self.cache.select(sentences, self.cache.length), self.bias.index_select(0, sentences)
        )


@dataclass(frozen=True)
class TransformerState(State):
    """A hypothesis may see those entries of its sentence's cache that it came through; `bias` masks the others."""

    decoder: StepDecoder
    source: CrossAttentionCache
    cache: KeyValueCache  # keys and values of the target
    positions: Tensor  # (N,), the step at which each entry was written; (0,) where no bias depends on it
    bias: Tensor | None = None  # (R, N): 0, or MASKED_SCORE; None while every sentence has one hypothesis
    num_entries: int = 0  # N
    length: int = 0  # tokens fed so far

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> Self:
        source, cache, bias = self.source, self.cache, self.bias
        if sentences is not None:
            source, cache = source.select(sentences), cache.select(sentences, self.num_entries)
        if bias is not None:
            bias = bias.index_select(0, rows)
        elif rows.shape[0] > source.num_sentences:
            bias = source.bias.new_zeros(rows.shape[0], self.num_entries)
        return replace(self, source=source, cache=cache, bias=bias)

    def extended(self, num_new: int) -> Self:
        """With an entry, yet to be written, for one more token of each of `num_new` hypotheses of every sentence."""
        cache = self.cache.with_room(self.num_entries, num_new, STEPS_OF_ROOM * num_new)
        cache.length += num_new
        bias, positions, num_sentences = self.bias, self.positions, self.source.num_sentences
        if bias is not None or num_new > 1:
            if bias is None:
                bias = self.source.bias.new_zeros(num_sentences * num_new, self.num_entries)
            own = bias.new_full((num_new, num_new), MASKED_SCORE).fill_diagonal_(0)
            bias = torch.cat((bias, own.repeat(num_sentences, 1)), 1)  # (R, N + K)
        if self.decoder.relative_bias is not None:
            positions = torch.cat((positions, positions.new_full((num_new,), self.length)))
        num_entries, length = self.num_entries + num_new, self.length + 1
        return replace(self, cache=cache, bias=bias, positions=positions, num_entries=num_entries, length=length)

    def self_attention_bias(self) -> Tensor:
        """What is added to the scores of self-attention: (B·H, K, N), or () where that is nothing."""
        bias, num_sentences, num_heads = (
            self.source.bias.new_zeros(()),
            self.source.num_sentences,
            self.source.num_heads,
        )
        if self.bias is not None:
            bias = self.bias.view(num_sentences, 1, -1, self.num_entries)  # (B, 1, K, N)
        if self.decoder.relative_bias is not None:
            bias = bias + self.decoder.relative_bias(self.positions[-1:], self.positions)  # (B, H, K, N)
        return bias.expand(num_sentences, num_heads, -1, -1).flatten(0, 1) if bias.ndim else bias


def start_state(decoder: StepDecoder, memory: Memory) -> TransformerState:
    """The state before the first step, with one hypothesis for each sentence."""
    attentions = [layer.cross_attention for layer in decoder.layers]
    padding = ~memory.mask[:, None, :, None]  # (B, 1, S, 1)
    keys, values = zip(*(attention.project_memory(memory.states) for attention in attentions), strict=True)
    # Zeros, so that a source of nothing but padding gives nothing, however the weights fall.
    cache = KeyValueCache(torch.stack(keys), torch.stack(values).masked_fill_(padding, 0), memory.mask.shape[1])
    bias = cache.values.new_zeros(memory.mask.shape).masked_fill_(~memory.mask, MASKED_SCORE)
    source = CrossAttentionCache(cache, bias[:, None, None].repeat(1, cache.values.shape[2], 1, 1))
    positions = torch.empty(0, dtype=torch.long, device=bias.device)
    return TransformerState(decoder, source, cache.empty(source.num_sentences, 0), positions)


def decode_step(
    x: Tensor, state: TransformerState, need_weights: bool
) -> tuple[Tensor, TransformerState, list[Tensor]]:
    """Feeds x (R, D) to all layers; gives the last one's output, the new state, attention to the source (R, H, S)."""
    source = state.source
    num_sentences, num_heads = source.num_sentences, source.num_heads
    num_new = x.shape[0] // num_sentences  # K
    position, first_new = state.length, state.num_entries
    state = state.extended(num_new)
    new_entries = state.cache.entries(first_new, state.num_entries)  # L times (B, H, K, …)
    target_layers, target_bias = state.cache.layers(state.num_entries), state.self_attention_bias()
    all_weights = []
    for number, layer in enumerate(state.decoder.layers):
        attention = layer.self_attention
        projected = layer.project(layer.enter_self(x))  # (R, 3D)
        heads = projected.view(num_sentences, num_new, 3, num_heads, attention.head_size).permute(2, 0, 3, 1, 4)
        queries, keys, values = heads.unbind()  # each (B, H, K, D/H)
        if attention.rotary is not None:  # which takes positions along the last dimension but one
            queries = attention.rotary(queries.unsqueeze(-2), position).squeeze(-2)
            keys = attention.rotary(keys.unsqueeze(-2), position).squeeze(-2)
        new_keys, new_values = new_entries[number]
        new_keys.copy_(attention.score.prepare(keys))
        new_values.copy_(values)
        queries = queries.reshape(num_sentences * num_heads, num_new, attention.head_size)
        attended, _ = attend(attention, queries, *target_layers[number], target_bias)
        x = layer.leave_self(x, layer.self_output(kernels.merge_heads(attended, num_sentences)))

        queries = kernels.split_heads(layer.project_query(layer.enter_cross(x)), num_sentences, num_heads)
        attended, weights = attend(layer.cross_attention, queries, *source.layers[number], source.joint_bias)
        x = layer.leave_cross(x, layer.cross_output(kernels.merge_heads(attended, num_sentences)))
        if need_weights:
            visible = weights.unflatten(0, (num_sentences, num_heads)) * (source.bias == 0)  # (B, H, K, S)
            all_weights.append(visible.transpose(1, 2).flatten(0, 1))
        x = layer.leave_ff(x, layer.outer(layer.activate(layer.inner(layer.enter_ff(x)))))
    return x, state, all_weights


def attend(
    attention: MultiHeadAttention, queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor
) -> tuple[Tensor, Tensor]:
    """Attention of queries (B·H, K, D/H) to keys and values (B·H, N, …): heads (B·H, K, D/H), weights (B·H, K, N)."""
    fast = use_kernels(queries)
    if fast and attention.is_scaled_dot:
        scores = kernels.scaled_dot_scores(queries, keys, bias)
    else:
        scores = attention.score(queries, keys) + bias
    weights = torch.softmax(scores, dim=-1)
    return kernels.weighted_sum(weights, values) if fast else weights @ values, weights
