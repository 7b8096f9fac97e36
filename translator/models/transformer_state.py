"""What the Transformer's decoder must know to go on: keys and values of the source, and of what has been written.

The hypotheses of a sentence share one table of keys and values, to which each step adds a slot for each hypothesis. A
hypothesis sees only the slots it came through, so choosing and repeating hypotheses changes who sees what, and moves no
keys or values. The table is copied only when sentences leave the batch or it is full.

Letters: B sentences, K hypotheses of each, R = B · K rows, S source length, N slots, D model size, H heads, L layers,
A size of a prepared key.
"""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from translator.attention.multihead import KeyValue
from translator.models.base import State
from translator.models.transformer_bound import StepDecoder

# Added to a score, it makes the weight exactly zero, since e^-750 already is, even in double precision. It fits half
# precision too.
HIDDEN = -30_000.0
ROOM = 16  # steps that a new table has room for


def by_layer(tables: KeyValue) -> list[KeyValue]:
    """Tables (L, B, H, N, …) as views (B·H, N, …) for each layer."""
    views = (table.view(len(table), -1, *table.shape[3:]).unbind() for table in tables)
    return [KeyValue(*parts) for parts in zip(*views, strict=True)]


class Source:
    """Keys and values of the source. Their views are made here, once, since every call from Python counts in a step."""

    def __init__(self, tables: KeyValue, bias: Tensor) -> None:
        self.tables = tables  # (L, B, H, S, A) and (L, B, H, S, D/H); the values of padding are zero
        self.bias = bias  # (B, H, 1, S), added to scores: 0, or HIDDEN for padding
        self.num_sentences, self.num_heads = bias.shape[:2]
        self.layers = by_layer(tables)  # L times (B·H, S, …)
        self.joint_bias = bias.flatten(0, 1)  # (B·H, 1, S)

    def select(self, sentences: Tensor) -> "Source":
        tables = KeyValue(*(table.index_select(1, sentences) for table in self.tables))
        return Source(tables, self.bias.index_select(0, sentences))


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
    decoder: StepDecoder
    source: Source
    slots: Slots | None = None  # keys and values of the target, after the first step
    slot_bias: Tensor | None = None  # (R, N): 0, or HIDDEN; None while every sentence has one hypothesis
    num_slots: int = 0  # N
    length: int = 0  # tokens fed so far

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> Self:
        source, slots, slot_bias = self.source, self.slots, self.slot_bias
        if sentences is not None:
            source = source.select(sentences)
            slots = slots.select(sentences, self.num_slots) if slots is not None else None
        if slot_bias is not None:
            slot_bias = slot_bias.index_select(0, rows)
        elif rows.shape[0] > source.num_sentences:
            slot_bias = source.bias.new_zeros(rows.shape[0], self.num_slots)
        return type(self)(self.decoder, source, slots, slot_bias, self.num_slots, self.length)

    def extended(self, num_new: int) -> Self:
        """With a slot, yet to be filled, for one more token of each of `num_new` hypotheses of every sentence."""
        slots = self.slots or Slots.empty(self.source.tables, ROOM * num_new)
        slots = slots.with_room(self.num_slots, num_new)
        slots.num_used += num_new
        bias, num_sentences = self.slot_bias, self.source.num_sentences
        if bias is not None or num_new > 1:
            if bias is None:
                bias = self.source.bias.new_zeros(num_sentences * num_new, self.num_slots)
            own = bias.new_full((num_new, num_new), HIDDEN).fill_diagonal_(0)
            bias = torch.cat((bias, own.repeat(num_sentences, 1)), 1)  # (R, N + K)
        return type(self)(self.decoder, self.source, slots, bias, self.num_slots + num_new, self.length + 1)
