"""Keys and values of attention that decoding has already computed, kept for all layers without being copied.

The hypotheses of a sentence share one cache, to which each step adds an entry for each hypothesis. A hypothesis sees
only the entries it came through, so choosing and repeating hypotheses changes who sees what, and moves no keys or
values. These are copied only when sentences leave the batch or the capacity is reached.

Letters: L layers, B sentences, K hypotheses of each, R = B · K rows, H heads, N entries, S source length,
A size of a key, D/H size of a value.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import torch
from torch import Tensor

# Added to a score, it makes the weight exactly zero, since e^-750 already is, even in double precision. It fits half
# precision too.
MASKED_SCORE = -30_000.0
STEPS_OF_ROOM = 16  # that a new storage has


class KeyValue(NamedTuple):
    """Keys, prepared for the score, and values of one layer's attention, both split into heads."""

    keys: Tensor  # (…, S, A)
    values: Tensor  # (…, S, D/H)


class Storage:
    """Keys and values with room for more. Caches that share a storage know how many of its entries are theirs."""

    def __init__(self, keys: Tensor, values: Tensor, num_used: int) -> None:
        self.keys = keys  # (L, B, H, capacity, A)
        self.values = values  # (L, B, H, capacity, D/H)
        self.num_used = num_used

    @property
    def capacity(self) -> int:
        return self.keys.shape[3]

    def empty(self, num_sentences: int, capacity: int, num_used: int = 0) -> "Storage":
        """Another one for keys and values of these sizes, of which the first `num_used` are about to be filled."""
        keys, values = (
            part.new_empty(part.shape[0], num_sentences, part.shape[2], capacity, part.shape[4])
            for part in (self.keys, self.values)
        )
        return Storage(keys, values, num_used)

    def with_room(self, num_entries: int, num_new: int) -> "Storage":
        """Room behind the first `num_entries`: here, if there is any and nobody has written to it, or in a copy."""
        if self.num_used == num_entries and num_entries + num_new <= self.capacity:
            return self
        copy = self.empty(self.keys.shape[1], num_entries + STEPS_OF_ROOM * num_new, num_entries)
        copy.keys[:, :, :, :num_entries] = self.keys[:, :, :, :num_entries]
        copy.values[:, :, :, :num_entries] = self.values[:, :, :, :num_entries]
        return copy

    def select(self, sentences: Tensor, num_entries: int) -> "Storage":
        """The first `num_entries` of these sentences, with as much room behind them as there was."""
        kept = self.empty(sentences.shape[0], self.capacity, num_entries)
        for new, old in ((kept.keys, self.keys), (kept.values, self.values)):
            torch.index_select(old[:, :, :, :num_entries], 1, sentences, out=new[:, :, :, :num_entries])
        return kept

    def layers(self, num_entries: int) -> list[KeyValue]:
        """Views (B·H, N, …) of the first `num_entries` of each layer."""
        views = (part[:, :, :, :num_entries].flatten(1, 2).unbind() for part in (self.keys, self.values))
        return [KeyValue(*parts) for parts in zip(*views, strict=True)]


@dataclass(frozen=True)
class KeyValueCache:
    """What self-attention sees of the target so far: a value, whose successors share its storage where they can."""

    storage: Storage
    bias: Tensor | None = None  # (R, N): 0, or MASKED_SCORE; None while every sentence has one hypothesis
    num_entries: int = 0  # N
    entries_per_step: tuple[int, ...] = ()  # hypotheses of a sentence at each step

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> Self:
        """The cache in which row i continues the old row `rows[i]`; `sentences` are those that remain."""
        storage, bias = self.storage, self.bias
        if sentences is not None:
            storage = storage.select(sentences, self.num_entries)
        if bias is not None:
            bias = bias.index_select(0, rows)
        elif rows.shape[0] > storage.keys.shape[1]:
            bias = storage.values.new_zeros(rows.shape[0], self.num_entries)
        return replace(self, storage=storage, bias=bias)

    def extended(self, num_new: int) -> Self:
        """With an entry, yet to be written, for one more token of each of `num_new` hypotheses of every sentence."""
        storage, bias = self.storage.with_room(self.num_entries, num_new), self.bias
        storage.num_used += num_new
        if bias is not None or num_new > 1:
            num_sentences = storage.keys.shape[1]
            if bias is None:
                bias = storage.values.new_zeros(num_sentences * num_new, self.num_entries)
            own = bias.new_full((num_new, num_new), MASKED_SCORE).fill_diagonal_(0)
            bias = torch.cat((bias, own.repeat(num_sentences, 1)), 1)  # (R, N + K)
        return type(self)(storage, bias, self.num_entries + num_new, (*self.entries_per_step, num_new))

    def positions(self) -> Tensor:
        """The step (N,) at which each entry was written."""
        steps = torch.arange(len(self.entries_per_step)).repeat_interleave(torch.tensor(self.entries_per_step))
        return steps.to(self.storage.keys.device)

    def attention_bias(self, relative_bias: Callable[[Tensor, Tensor], Tensor] | None = None) -> Tensor:
        """What is added to the scores of the newest entries' queries: (B·H, K, N), or () for nothing.

        `relative_bias` gives a part (1, H, T, N) of it that depends on the positions of T queries and of the N keys.
        """
        num_sentences, num_heads = self.storage.keys.shape[1:3]
        bias = self.storage.values.new_zeros(())
        if self.bias is not None:
            bias = self.bias.view(num_sentences, 1, -1, self.num_entries)  # (B, 1, K, N)
        if relative_bias is not None:
            positions = self.positions()
            bias = bias + relative_bias(positions[-1:], positions)  # (B or 1, H, K or 1, N)
        return bias.expand(num_sentences, num_heads, -1, -1).flatten(0, 1) if bias.ndim else bias

    def layers(self) -> list[KeyValue]:
        """Views (B·H, N, …) for each layer."""
        return self.storage.layers(self.num_entries)

    def newest(self) -> list[KeyValue]:
        """Views (B, H, K, …) of the last step's entries for each layer, to be written to."""
        new = slice(self.num_entries - self.entries_per_step[-1], self.num_entries)
        views = (part[:, :, :, new].unbind() for part in (self.storage.keys, self.storage.values))
        return [KeyValue(*parts) for parts in zip(*views, strict=True)]


class CrossAttentionCache:
    """Keys and values of the source, and the bias that masks its padding.

    Their views are made here, once for all steps, since every call from Python counts in a step.
    """

    def __init__(self, storage: Storage, mask: Tensor) -> None:
        self.storage = storage  # the values of padding are zero
        self.mask = mask  # (B, S)
        self.num_sentences, self.num_heads, num_entries = storage.keys.shape[1:4]
        self.layers = storage.layers(num_entries)  # L times (B·H, S, …)
        bias = storage.values.new_zeros(mask.shape).masked_fill_(~mask, MASKED_SCORE)
        self.bias = bias.repeat_interleave(self.num_heads, 0).unsqueeze(1)  # (B·H, 1, S)

    def select(self, sentences: Tensor) -> "CrossAttentionCache":
        storage = self.storage.select(sentences, self.storage.num_used)
        return CrossAttentionCache(storage, self.mask.index_select(0, sentences))
