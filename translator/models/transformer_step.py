"""The Transformer's decoder one position at a time, as the search runs it.

The formulas are those of `DecoderLayer` without dropout; the arrangement is for many small steps. The hypotheses of a
sentence share one table of keys and values, to which each step adds a slot for each hypothesis. A hypothesis sees only
the slots it came through, so choosing and repeating hypotheses changes who sees what, and moves no keys or values. The
table is copied only when sentences leave the batch or it is full.

Letters: B sentences, K hypotheses of each, R = B · K rows, S source length, N slots, D model size, H heads, L layers,
A size of a prepared key.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn

from translator.attention.multihead import KeyValue, MultiHeadAttention
from translator.models.base import Memory, State
from translator.models.transformer_layers import DecoderLayer, Residual

# Added to a score, it makes the weight exactly zero, since e^-750 already is, even in double precision. It fits half
# precision too.
HIDDEN = -30_000.0
ROOM = 16  # steps that a new table has room for
SMALLEST_PRODUCT = 400  # multiplications in a matrix product that torch leaves to a fast library on CPUs
Function = Callable[[Tensor], Tensor]


# ---- what is known before the first step ----


def _linear(weight: Tensor, bias: Tensor) -> Function:
    """x W^T + b. In a step of few rows, looking up a module's tensors takes as long as computing with them."""
    bias, turned = bias.detach(), weight.detach().t()
    return lambda x: torch.addmm(bias, x, turned)


def _norm(norm: nn.Module) -> Function:
    if not isinstance(norm, nn.LayerNorm):
        return norm
    shape, weight, bias, epsilon = norm.normalized_shape, norm.weight.detach(), norm.bias.detach(), norm.eps
    return lambda x: torch.layer_norm(x, shape, weight, bias, epsilon)


class _Branch:
    """`Residual` around a sublayer."""

    def __init__(self, residual: Residual) -> None:
        self.norm = _norm(residual.norm)
        self.pre_norm = residual.pre_norm

    def enter(self, x: Tensor) -> Tensor:
        return self.norm(x) if self.pre_norm else x

    def leave(self, x: Tensor, branch: Tensor) -> Tensor:
        return x + branch if self.pre_norm else self.norm(x + branch)


class StepLayer:
    """A decoder layer with everything looked up that a step needs of it."""

    def __init__(self, layer: DecoderLayer) -> None:
        self.self_attention, self.cross_attention = layer.self_attention, layer.cross_attention
        self.self_branch, self.cross_branch = _Branch(layer.self_residual), _Branch(layer.cross_residual)
        self.feedforward_branch = _Branch(layer.feedforward_residual)
        weight, bias = layer.self_attention.input_projection.weight, layer.self_attention.input_projection.bias
        self.project = _linear(weight, bias)  # to 3D: queries, keys and values
        weight, bias = layer.cross_attention.input_projection.weight, layer.cross_attention.input_projection.bias
        size = weight.shape[1]
        self.project_query = _linear(weight[:size], bias[:size])
        self.self_output, self.cross_output, self.inner, self.outer = (
            _linear(linear.weight, linear.bias)
            for linear in (
                layer.self_attention.output_projection,
                layer.cross_attention.output_projection,
                layer.feedforward.inner,
                layer.feedforward.outer,
            )
        )
        self.activate = layer.feedforward.activate


class Slots:
    """Tables with room for more slots than are in use. States that share them know how many of the slots are theirs."""

    def __init__(self, tables: KeyValue, num_used: int) -> None:
        self.tables = tables  # (L, B, H, N or more, A) and (L, B, H, N or more, D/H)
        self.num_used = num_used

    @classmethod
    def empty(cls, like: KeyValue, num_slots: int, num_used: int = 0) -> "Slots":
        """Tables of so many slots, of which the first are about to be filled, for memories of the same sentences."""
        return cls(KeyValue(*(part.new_empty(*part.shape[:3], num_slots, part.shape[4]) for part in like)), num_used)

    def with_room(self, num_slots: int, num_new: int) -> "Slots":
        """Itself, if nobody has written behind the first `num_slots` and there is room; else a copy that has room."""
        if self.num_used == num_slots and num_slots + num_new <= self.tables.keys.shape[3]:
            return self
        copy = Slots.empty(self.tables, num_slots + ROOM * num_new, num_slots)
        for new, old in zip(copy.tables, self.tables, strict=True):
            new[:, :, :, :num_slots] = old[:, :, :, :num_slots]
        return copy

    def select(self, sentences: Tensor, num_slots: int) -> "Slots":
        """The first `num_slots` of these sentences, with as much room behind them as there was."""
        like = KeyValue(*(part[:, : sentences.shape[0]] for part in self.tables))
        kept = Slots.empty(like, self.tables.keys.shape[3], num_slots)
        for new, old in zip(kept.tables, self.tables, strict=True):
            torch.index_select(old[:, :, :, :num_slots], 1, sentences, out=new[:, :, :, :num_slots])
        return kept


@dataclass(frozen=True)
class TransformerState(State):
    layers: Sequence[StepLayer]
    memory: KeyValue  # of the source: (L, B, H, S, A) and (L, B, H, S, D/H); the values of padding are zero
    memory_bias: Tensor  # (B, H, 1, S), added to scores: 0, or HIDDEN for padding
    slots: Slots | None = None  # keys and values of the target, after the first step
    slot_bias: Tensor | None = None  # (R, N): 0, or HIDDEN; None while every sentence has one hypothesis
    num_slots: int = 0  # N
    length: int = 0  # tokens fed so far

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> Self:
        memory, memory_bias, slots, slot_bias = self.memory, self.memory_bias, self.slots, self.slot_bias
        if sentences is not None:
            memory = KeyValue(*(part.index_select(1, sentences) for part in memory))
            memory_bias = memory_bias.index_select(0, sentences)
            slots = slots.select(sentences, self.num_slots) if slots is not None else None
        if slot_bias is not None:
            slot_bias = slot_bias.index_select(0, rows)
        elif rows.shape[0] > memory_bias.shape[0]:
            slot_bias = memory_bias.new_zeros(rows.shape[0], self.num_slots)
        return type(self)(self.layers, memory, memory_bias, slots, slot_bias, self.num_slots, self.length)

    def extended(self, num_new: int) -> Self:
        """With a slot, yet to be filled, for one more token of each of `num_new` hypotheses of every sentence."""
        slots = self.slots or Slots.empty(self.memory, ROOM * num_new)
        slots = slots.with_room(self.num_slots, num_new)
        slots.num_used += num_new
        bias = self.slot_bias
        if bias is not None or num_new > 1:
            num_sentences = self.memory_bias.shape[0]
            if bias is None:
                bias = self.memory_bias.new_zeros(num_sentences * num_new, self.num_slots)
            own = bias.new_full((num_new, num_new), HIDDEN).fill_diagonal_(0)
            bias = torch.cat((bias, own.repeat(num_sentences, 1)), 1)  # (R, N + K)
        num_slots, length = self.num_slots + num_new, self.length + 1
        return type(self)(self.layers, self.memory, self.memory_bias, slots, bias, num_slots, length)


def start_state(layers: Sequence[DecoderLayer], memory: Memory) -> TransformerState:
    """The state before the first step, with one hypothesis for each sentence."""
    padding = ~memory.mask[:, None, :, None]  # (B, 1, S, 1)
    keys, values = zip(*(layer.cross_attention.project_memory(memory.states) for layer in layers), strict=True)
    # Zeros, so that a source of nothing but padding gives nothing, however the weights fall.
    tables = KeyValue(torch.stack(keys), torch.stack(values).masked_fill_(padding, 0))
    bias = tables.values.new_zeros(memory.mask.shape).masked_fill_(~memory.mask, HIDDEN)
    num_heads = tables.values.shape[2]
    bound = [StepLayer(layer) for layer in layers]
    return TransformerState(bound, tables, bias[:, None, None].repeat(1, num_heads, 1, 1))


# ---- a step ----


def decode_step(
    x: Tensor, state: TransformerState, need_weights: bool
) -> tuple[Tensor, TransformerState, list[Tensor]]:
    """Feeds x (R, D) to all layers; gives the last one's output, the new state, attention to the source (R, H, S)."""
    num_sentences, num_heads = state.memory_bias.shape[:2]
    num_new = x.shape[0] // num_sentences  # K
    offset, first_new = state.length, state.num_slots
    state = state.extended(num_new)
    assert state.slots is not None
    # Views of all layers at once, since every call from Python counts.
    seen = [table[:, :, :, : state.num_slots] for table in state.slots.tables]  # (L, B, H, N, …)
    new_keys, new_values = (table[:, :, :, first_new:].unbind() for table in seen)  # (B, H, K, …) of each layer
    target = zip(*(table.flatten(1, 2).unbind() for table in seen), strict=True)  # (B·H, N, …) of each layer
    source = zip(*(table.flatten(1, 2).unbind() for table in state.memory), strict=True)  # (B·H, S, …)
    memory_bias = state.memory_bias.flatten(0, 1)  # (B·H, 1, S)
    slot_bias = memory_bias.new_zeros(())
    if state.slot_bias is not None:
        slot_bias = state.slot_bias.view(num_sentences, 1, num_new, -1).expand(-1, num_heads, -1, -1).flatten(0, 1)
    all_weights = []
    for number, (layer, slots, memory) in enumerate(zip(state.layers, target, source, strict=True)):
        attention = layer.self_attention
        projected = layer.project(layer.self_branch.enter(x))  # (R, 3D)
        queries, keys, values = _heads(projected, num_sentences, num_heads, 3)  # each (B, H, K, D/H)
        if attention.rotary is not None:  # which takes positions along the last dimension but one
            queries = attention.rotary(queries.unsqueeze(-2), offset).squeeze(-2)
            keys = attention.rotary(keys.unsqueeze(-2), offset).squeeze(-2)
        new_keys[number].copy_(attention.score.prepare(keys))
        new_values[number].copy_(values)
        attended, _ = _attend(attention, queries, KeyValue(*slots), slot_bias)
        x = layer.self_branch.leave(x, layer.self_output(attended))

        (queries,) = _heads(layer.project_query(layer.cross_branch.enter(x)), num_sentences, num_heads, 1)
        attended, weights = _attend(layer.cross_attention, queries, KeyValue(*memory), memory_bias)
        x = layer.cross_branch.leave(x, layer.cross_output(attended))
        if need_weights:
            visible = weights.unflatten(0, (num_sentences, num_heads)) * (state.memory_bias == 0)  # (B, H, K, S)
            all_weights.append(visible.transpose(1, 2).flatten(0, 1))
        inner = layer.activate(layer.inner(layer.feedforward_branch.enter(x)))
        x = layer.feedforward_branch.leave(x, layer.outer(inner))
    return x, state, all_weights


def _heads(projected: Tensor, num_sentences: int, num_heads: int, num_parts: int) -> tuple[Tensor, ...]:
    """The parts of projections (R, parts · D), the hypotheses of a sentence side by side: each (B, H, K, D/H)."""
    heads = projected.view(num_sentences, -1, num_parts, num_heads, projected.shape[1] // (num_parts * num_heads))
    return heads.permute(2, 0, 3, 1, 4).unbind()


def _attend(attention: MultiHeadAttention, queries: Tensor, table: KeyValue, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Attention of queries (B, H, K, D/H) to keys and values (B·H, N, …): heads (R, D), weights (B·H, K, N)."""
    num_sentences, num_heads, num_queries, head_size = queries.shape
    queries = queries.reshape(-1, num_queries, head_size)  # (B·H, K, D/H)
    if attention.is_scaled_dot:
        scores = torch.baddbmm(bias, queries, table.keys.transpose(1, 2), alpha=1 / math.sqrt(head_size))  # (B·H, K, N)
    else:
        scores = attention.score(queries, table.keys) + bias
    weights = torch.softmax(scores, dim=-1)
    attended = _weighted_sum(weights, table.values)  # (B·H, K, D/H)
    attended = attended.view(num_sentences, num_heads, num_queries, head_size).transpose(1, 2)  # (B, K, H, D/H)
    return attended.reshape(-1, num_heads * head_size), weights


def _weighted_sum(weights: Tensor, values: Tensor) -> Tensor:
    """weights (B·H, K, N) @ values (B·H, N, D/H)."""
    # torch multiplies the smallest matrices in a plain loop, several times slower than this.
    if weights.shape[1] == 1 and values.shape[1] * values.shape[2] < SMALLEST_PRODUCT:
        return (weights.transpose(1, 2) * values).sum(1, keepdim=True)
    return torch.bmm(weights, values)
