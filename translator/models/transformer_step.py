"""The Transformer's decoder one position at a time, as the search runs it.

The formulas are those of `DecoderLayer`; the arrangement is for many small steps. The hypotheses of a sentence share
one table of keys and values, to which each step adds a slot for each hypothesis. A hypothesis sees only the slots it
came through, so choosing and repeating hypotheses changes who sees what, and moves no keys or values. The table is
copied only when sentences leave the batch or it is full.

Letters: B sentences, K hypotheses of each, R = B · K rows, S source length, N slots, D model size, H heads, L layers,
A size of a prepared key, C = A + D/H what a key and its value take together.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor
from torch.nn import functional as F

from translator.attention.multihead import MultiHeadAttention
from translator.models.base import Memory, State
from translator.models.transformer_layers import DecoderLayer

# Added to a score, it makes the weight exactly zero, since e^-750 already is, even in double precision. It fits half
# precision too.
HIDDEN = -30_000.0
ROOM = 16  # steps that a new table has room for
SMALLEST_PRODUCT = 400  # multiplications in a matrix product that torch leaves to a fast library on CPUs


class Slots:
    """A table with room for more slots than are in use. States that share it know how many of the slots are theirs."""

    def __init__(self, table: Tensor, num_used: int) -> None:
        self.table = table  # (L, B, H, N or more, C)
        self.num_used = num_used

    @classmethod
    def empty(cls, like: Tensor, num_slots: int, num_used: int = 0) -> "Slots":
        """A table of so many slots, of which the first are about to be filled, for memories (L, B, H, S, C)."""
        num_layers, num_sentences, num_heads, _, size = like.shape
        return cls(like.new_empty(num_layers, num_sentences, num_heads, num_slots, size), num_used)

    def with_room(self, num_slots: int, num_new: int) -> "Slots":
        """Itself, if nobody has written behind the first `num_slots` and there is room; else a copy that has room."""
        if self.num_used == num_slots and num_slots + num_new <= self.table.shape[3]:
            return self
        copy = Slots.empty(self.table, num_slots + ROOM * num_new, num_slots)
        copy.table[:, :, :, :num_slots] = self.table[:, :, :, :num_slots]
        return copy

    def select(self, sentences: Tensor, num_slots: int) -> "Slots":
        """The first `num_slots` of these sentences, with as much room behind them as there was."""
        kept = Slots.empty(self.table[:, : sentences.shape[0]], self.table.shape[3], num_slots)
        torch.index_select(self.table[:, :, :, :num_slots], 1, sentences, out=kept.table[:, :, :, :num_slots])
        return kept


@dataclass(frozen=True)
class TransformerState(State):
    memory: Tensor  # (L, B, H, S, C), keys and values of the source; the values of padding are zero
    memory_bias: Tensor  # (B, H, 1, S), added to scores: 0, or HIDDEN for padding
    slots: Slots | None = None  # keys and values of the target, after the first step
    slot_bias: Tensor | None = None  # (R, N): 0, or HIDDEN; None while every sentence has one hypothesis
    num_slots: int = 0  # N
    length: int = 0  # tokens fed so far

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> Self:
        memory, memory_bias, slots, slot_bias = self.memory, self.memory_bias, self.slots, self.slot_bias
        if sentences is not None:
            memory = memory.index_select(1, sentences)
            memory_bias = memory_bias.index_select(0, sentences)
            slots = slots.select(sentences, self.num_slots) if slots is not None else None
        if slot_bias is not None:
            slot_bias = slot_bias.index_select(0, rows)
        elif rows.shape[0] > memory_bias.shape[0]:
            slot_bias = memory_bias.new_zeros(rows.shape[0], self.num_slots)
        return type(self)(memory, memory_bias, slots, slot_bias, self.num_slots, self.length)

    def extended(self, num_new: int) -> Self:
        """With a slot, yet to be filled, for one more token of each of `num_new` hypotheses of every sentence."""
        num_sentences = self.memory_bias.shape[0]
        slots = self.slots or Slots.empty(self.memory, ROOM * num_new)
        slots = slots.with_room(self.num_slots, num_new)
        slots.num_used += num_new
        bias = self.slot_bias
        if bias is not None or num_new > 1:
            if bias is None:
                bias = self.memory_bias.new_zeros(num_sentences * num_new, self.num_slots)
            own = bias.new_full((num_new, num_new), HIDDEN).fill_diagonal_(0)
            bias = torch.cat((bias, own.repeat(num_sentences, 1)), 1)  # (R, N + K)
        return type(self)(self.memory, self.memory_bias, slots, bias, self.num_slots + num_new, self.length + 1)


def start_state(layers: Sequence[DecoderLayer], memory: Memory) -> TransformerState:
    """The state before the first step, with one hypothesis for each sentence."""
    padding = ~memory.mask[:, None, :, None]  # (B, 1, S, 1)
    tables = []
    for layer in layers:
        keys, values = layer.cross_attention.project_memory(memory.states)  # (B, H, S, A), (B, H, S, D/H)
        # Zeros, so that a source of nothing but padding gives nothing, however the weights fall.
        tables.append(torch.cat((keys, values.masked_fill(padding, 0)), -1))
    table = torch.stack(tables)  # (L, B, H, S, C)
    bias = table.new_zeros(memory.mask.shape).masked_fill_(~memory.mask, HIDDEN)
    num_heads = table.shape[2]
    return TransformerState(table, bias[:, None, None].repeat(1, num_heads, 1, 1))


def decode_step(
    layers: Sequence[DecoderLayer], x: Tensor, state: TransformerState, need_weights: bool
) -> tuple[Tensor, TransformerState, list[Tensor]]:
    """Feeds x (R, D) to all layers; gives the last one's output, the new state, attention to the source (R, H, S)."""
    num_sentences, num_heads = state.memory_bias.shape[:2]
    size = x.shape[1]  # D
    num_new = x.shape[0] // num_sentences  # K
    offset, first_new = state.length, state.num_slots
    state = state.extended(num_new)
    assert state.slots is not None
    table = state.slots.table[:, :, :, : state.num_slots]  # (L, B, H, N, C)
    memory_bias = state.memory_bias.flatten(0, 1)  # (B·H, 1, S)
    slot_bias = memory_bias.new_zeros(())
    if state.slot_bias is not None:
        slot_bias = state.slot_bias.view(num_sentences, 1, num_new, -1).expand(-1, num_heads, -1, -1).flatten(0, 1)
    all_weights = []
    for layer, slots, memory in zip(layers, table, state.memory, strict=True):
        attention = layer.self_attention
        projected = attention.input_projection(layer.self_residual.enter(x))  # (R, 3D)
        queries, keys, values = _heads(projected, num_sentences, num_heads, 3)  # each (B, H, K, D/H)
        if attention.rotary is not None:  # which takes positions along the last dimension but one
            queries = attention.rotary(queries.unsqueeze(-2), offset).squeeze(-2)
            keys = attention.rotary(keys.unsqueeze(-2), offset).squeeze(-2)
        slots[:, :, first_new:] = torch.cat((attention.score.prepare(keys), values), -1)
        attended, _ = _attend(attention, queries, slots, slot_bias)
        x = layer.self_residual.leave(x, attended)

        attention = layer.cross_attention
        weight, bias = attention.input_projection.weight[:size], attention.input_projection.bias[:size]
        (queries,) = _heads(F.linear(layer.cross_residual.enter(x), weight, bias), num_sentences, num_heads, 1)
        attended, weights = _attend(attention, queries, memory, memory_bias)
        x = layer.cross_residual.leave(x, attended)
        if need_weights:
            seen = weights.unflatten(0, (num_sentences, num_heads)) * (state.memory_bias == 0)  # (B, H, K, S)
            all_weights.append(seen.transpose(1, 2).flatten(0, 1))
        x = layer.feedforward_residual.leave(x, layer.feedforward(layer.feedforward_residual.enter(x)))
    return x, state, all_weights


def _heads(projected: Tensor, num_sentences: int, num_heads: int, num_parts: int) -> tuple[Tensor, ...]:
    """The parts of projections (R, parts · D), the hypotheses of a sentence side by side: each (B, H, K, D/H)."""
    heads = projected.view(num_sentences, -1, num_parts, num_heads, projected.shape[1] // (num_parts * num_heads))
    return heads.permute(2, 0, 3, 1, 4).unbind()


def _attend(attention: MultiHeadAttention, queries: Tensor, table: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Attention of queries (B, H, K, D/H) to keys and values (B, H, N, C): output (R, D), weights (B·H, K, N)."""
    num_sentences, num_heads, num_queries, head_size = queries.shape
    queries = queries.reshape(-1, num_queries, head_size)  # (B·H, K, D/H)
    table = table.flatten(0, 1)
    keys, values = table[..., :-head_size], table[..., -head_size:]  # (B·H, N, A), (B·H, N, D/H)
    if attention.is_scaled_dot:
        scores = torch.baddbmm(bias, queries, keys.transpose(1, 2), alpha=1 / math.sqrt(head_size))  # (B·H, K, N)
    else:
        scores = attention.score(queries, keys) + bias
    weights = torch.softmax(scores, dim=-1)
    attended = _weighted_sum(attention.dropout(weights), values)  # (B·H, K, D/H)
    attended = attended.view(num_sentences, num_heads, num_queries, head_size).transpose(1, 2)  # (B, K, H, D/H)
    merged = attended.reshape(-1, num_heads * head_size)  # (R, D)
    return attention.output_projection(merged), weights


def _weighted_sum(weights: Tensor, values: Tensor) -> Tensor:
    """weights (B·H, K, N) @ values (B·H, N, D/H)."""
    # torch multiplies the smallest matrices in a plain loop, several times slower than this.
    if weights.shape[1] == 1 and values.shape[1] * values.shape[2] < SMALLEST_PRODUCT:
        return (weights.transpose(1, 2) * values).sum(1, keepdim=True)
    return torch.bmm(weights, values)
