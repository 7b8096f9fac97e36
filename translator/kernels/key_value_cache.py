"""The keys and values of attention that decoding has already computed, for all layers, growing without being copied.

The hypotheses of a sentence share one cache, to which each step adds an entry for each hypothesis. Which hypothesis may
see which entry is not known here: choosing and repeating hypotheses moves no keys or values. The cache is copied only
when sentences leave the batch or its capacity is reached.

Letters: L layers, B sentences, H heads, N entries.
"""

import torch
from torch import Tensor


class KeyValueCache:
    """Room for more entries than are in use. Those who share a cache know how many of its entries are theirs."""

    def __init__(self, keys: Tensor, values: Tensor, length: int) -> None:
        self.keys = keys  # (L, B, H, capacity, size of a key)
        self.values = values  # (L, B, H, capacity, size of a value)
        self.length = length  # entries in use

    @property
    def capacity(self) -> int:
        return self.keys.shape[3]

    def empty(self, num_sentences: int, capacity: int, length: int = 0) -> "KeyValueCache":
        """Another one for keys and values of the same sizes, of which the first `length` are about to be filled."""
        tensors = (
            part.new_empty(part.shape[0], num_sentences, part.shape[2], capacity, part.shape[4])
            for part in (self.keys, self.values)
        )
        return KeyValueCache(*tensors, length)

    def with_room(self, length: int, num_new: int, growth: int) -> "KeyValueCache":
        """Room for `num_new` entries behind the first `length`: here if nobody has written there, else in a copy.

        A copy has room for `growth` entries.
        """
        if self.length == length and length + num_new <= self.capacity:
            return self
        copy = self.empty(self.keys.shape[1], length + growth, length)
        copy.keys[:, :, :, :length] = self.keys[:, :, :, :length]
        copy.values[:, :, :, :length] = self.values[:, :, :, :length]
        return copy

    def select(self, sentences: Tensor, length: int) -> "KeyValueCache":
        """The first `length` entries of these sentences, with as much room behind them as there was."""
        kept = self.empty(sentences.shape[0], self.capacity, length)
        for new, old in ((kept.keys, self.keys), (kept.values, self.values)):
            torch.index_select(old[:, :, :, :length], 1, sentences, out=new[:, :, :, :length])
        return kept

    def layers(self, length: int) -> list[tuple[Tensor, Tensor]]:
        """Views (B·H, N, …) of the first `length` keys and values of each layer."""
        views = (part[:, :, :, :length].flatten(1, 2).unbind() for part in (self.keys, self.values))
        return list(zip(*views, strict=True))

    def entries(self, start: int, end: int) -> list[tuple[Tensor, Tensor]]:
        """Views (B, H, end - start, …) of some of the keys and values of each layer, to be written to."""
        views = (part[:, :, :, start:end].unbind() for part in (self.keys, self.values))
        return list(zip(*views, strict=True))
