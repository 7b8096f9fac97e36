"""Batches of token ids with their masks, and the order of the batches in an epoch.

Dimensions: B sentences, S source positions, T target positions. Masks are True at tokens and False at padding.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
import torch
from torch import Tensor

from translator.data.blocks import BLOCK_BATCHES, BLOCK_ROWS, EpochBlocks
from translator.data.length_buckets import bucket_by_length, split_largest
from translator.errors import UserError
from translator.ids import BOS, EOS, PAD

Ids = np.ndarray | list[int]  # of one sentence


@dataclass(eq=False)
class Batch:
    """Pairs of similar lengths. Sources end with EOS; `target_in` starts with BOS, `target_out` ends with EOS.

    Between them, the pieces of a target are in the order in which the model writes them.
    """

    source: Tensor  # (B, S) int64
    source_mask: Tensor  # (B, S) bool
    target_in: Tensor  # (B, T) int64
    target_out: Tensor  # (B, T) int64, PAD where there is nothing to predict
    target_mask: Tensor  # (B, T) bool
    indices: Tensor  # (B,) int64 rows of the table or, when streaming, positions of the pairs in reading order
    num_source_tokens: int  # with EOS, without padding; an int, so that counting never synchronises with the device
    num_target_tokens: int

    @classmethod
    def from_rows(
        cls, sources: Sequence[Ids], targets: Sequence[Ids], indices: np.ndarray, *, reverse_target: bool = False
    ) -> Self:
        """From ragged rows of ids in reading order: sources with EOS, targets with neither BOS nor EOS.

        With `reverse_target` the batch is for a model that writes the last piece first; EOS still comes last.
        """
        source, source_mask = _pad_rows(sources)
        pieces, pieces_mask = _pad_rows([row[::-1] for row in targets] if reverse_target else targets)
        num_rows, num_pieces = pieces.shape
        target_in = np.full((num_rows, num_pieces + 1), PAD, dtype=np.int64)
        target_in[:, 0] = BOS
        target_in[:, 1:] = pieces
        target_out = np.full((num_rows, num_pieces + 1), PAD, dtype=np.int64)
        target_out[:, :-1] = pieces
        target_out[np.arange(num_rows), pieces_mask.sum(axis=1)] = EOS
        target_mask = np.ones((num_rows, num_pieces + 1), dtype=bool)
        target_mask[:, 1:] = pieces_mask
        return cls(
            source=torch.from_numpy(source),
            source_mask=torch.from_numpy(source_mask),
            target_in=torch.from_numpy(target_in),
            target_out=torch.from_numpy(target_out),
            target_mask=torch.from_numpy(target_mask),
            indices=torch.from_numpy(np.asarray(indices, dtype=np.int64)),
            num_source_tokens=int(source_mask.sum()),
            num_target_tokens=int(target_mask.sum()),
        )

    def __len__(self) -> int:
        return self.source.shape[0]

    @property
    def padding_share(self) -> float:
        """The share of padding among all source and target positions."""
        num_positions = self.source.numel() + self.target_out.numel()
        return 1 - (self.num_source_tokens + self.num_target_tokens) / num_positions

    def to(self, device: torch.device | str, non_blocking: bool = False) -> Self:
        return self._apply(lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> Self:
        """Copies the tensors to page-locked memory, from which they can be transferred to a GPU asynchronously."""
        return self._apply(Tensor.pin_memory)

    def split(self) -> tuple[Self, Self]:
        """Splits the sentences into two halves, for when the whole batch does not fit into memory."""
        if len(self) < 2:
            raise ValueError("a batch of one sentence cannot be split")
        middle = (len(self) + 1) // 2
        return self._rows(slice(None, middle)), self._rows(slice(middle, None))

    def _rows(self, rows: slice) -> Self:
        num_source_tokens = self.source_mask[rows].sum(dim=1)
        num_target_tokens = self.target_mask[rows].sum(dim=1)
        width, target_width = int(num_source_tokens.max()), int(num_target_tokens.max())
        return type(self)(
            source=self.source[rows, :width],
            source_mask=self.source_mask[rows, :width],
            target_in=self.target_in[rows, :target_width],
            target_out=self.target_out[rows, :target_width],
            target_mask=self.target_mask[rows, :target_width],
            indices=self.indices[rows],
            num_source_tokens=int(num_source_tokens.sum()),
            num_target_tokens=int(num_target_tokens.sum()),
        )

    def _apply(self, function: Callable[[Tensor], Tensor]) -> Self:
        return replace(
            self,
            source=function(self.source),
            source_mask=function(self.source_mask),
            target_in=function(self.target_in),
            target_out=function(self.target_out),
            target_mask=function(self.target_mask),
            indices=function(self.indices),
        )


def _pad_rows(rows: Sequence[Ids]) -> tuple[np.ndarray, np.ndarray]:
    """Pads the rows to a matrix, and returns it with its mask."""
    lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    mask = np.arange(lengths.max(initial=0)) < lengths[:, None]
    matrix = np.full(mask.shape, PAD, dtype=np.int64)
    matrix[mask] = np.concatenate(rows, dtype=np.int64, casting="unsafe")
    return matrix, mask


class Lengths(Protocol):
    """The lengths of all rows: an array, or an object that reads them on demand."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: np.ndarray, /) -> np.ndarray: ...

    def sum(self) -> int: ...


class BatchSampler:
    """Assigns rows to batches: a pure function of (seed, epoch), the same on every rank.

    `parts` are the training corpora, concatenated in the rows, as (number of rows, weight): with weight 1 a row appears
    once per epoch, with 2 twice, with 0.5 every second epoch, a different half each time. An epoch is planned block by
    block (`translator.data.blocks`); a small corpus is a single block. The ranks split the batches of a block evenly,
    without overlap: if the number of batches is not a multiple of the number of ranks, the largest ones are halved.
    """

    def __init__(
        self,
        source_lengths: Lengths,  # with EOS
        target_lengths: Lengths,  # with EOS
        *,
        batch_tokens: int,  # maximum target positions per batch, padding included; twice as many source positions
        seed: int,
        rank: int = 0,
        num_ranks: int = 1,
        parts: Sequence[tuple[int, float]] | None = None,
    ) -> None:
        self.source_lengths = source_lengths
        self.target_lengths = target_lengths
        self.batch_tokens = batch_tokens
        self.seed = seed
        self.rank = rank
        self.num_ranks = num_ranks
        self.parts = [(len(source_lengths), 1.0)] if parts is None else list(parts)
        assert sum(num_rows for num_rows, _ in self.parts) == len(source_lengths) == len(target_lengths)
        assert 0 <= rank < num_ranks
        num_target_tokens = int(target_lengths.sum())
        self._num_tokens = int(source_lengths.sum()) + num_target_tokens
        # The average number of pairs in BLOCK_BATCHES batches.
        enough_rows = BLOCK_BATCHES * batch_tokens * len(target_lengths) // max(1, num_target_tokens)
        self._block_rows = max(BLOCK_ROWS, enough_rows)
        self._blocks = EpochBlocks(self.parts, seed=seed, block_rows=self._block_rows)
        self._last_block: tuple[tuple[int, int], list[np.ndarray]] | None = None

    @property
    def description(self) -> dict[str, Any]:
        """Plain values that determine the order."""
        values = {
            "seed": self.seed,
            "batch_tokens": self.batch_tokens,
            "num_ranks": self.num_ranks,
            "parts": [[num_rows, float(weight)] for num_rows, weight in self.parts],
            "num_tokens": self._num_tokens,
        }
        return values if self.num_blocks == 1 else {**values, "block_rows": self._block_rows}

    @property
    def num_blocks(self) -> int:
        """The number of blocks in every epoch."""
        return self._blocks.num_blocks

    def epoch(self, number: int) -> list[np.ndarray]:
        """The rows of each batch of this rank, in training order."""
        return [rows for block in range(self.num_blocks) for rows in self.block(number, block)]

    def block(self, epoch: int, number: int) -> list[np.ndarray]:
        """The same for one block of the epoch."""
        if self._last_block is None or self._last_block[0] != (epoch, number):
            self._last_block = (epoch, number), self._make_block(epoch, number)
        return self._last_block[1]

    def _make_block(self, epoch: int, number: int) -> list[np.ndarray]:
        rng = np.random.default_rng([self.seed, epoch] if self.num_blocks == 1 else [self.seed, epoch, number, 2])
        rows = self._blocks.rows(epoch, number)
        batches = bucket_by_length(self.source_lengths[rows], self.target_lengths[rows], self.batch_tokens, rng)
        if len(rows) < self.num_ranks:
            raise UserError(
                f"an epoch has {len(rows)} training pairs for {self.num_ranks} processes: each needs at least one; "
                "use more text (data.train, data.train_weights) or fewer processes"
            )
        return share([rows[batch] for batch in batches], self.rank, self.num_ranks, rng)


def share(batches: list[np.ndarray], rank: int, num_ranks: int, rng: np.random.Generator) -> list[np.ndarray]:
    """One rank's batches, shuffled. Together the ranks have every row exactly once, in equally many batches each."""
    batches = split_largest(batches, -(-len(batches) // num_ranks) * num_ranks)
    return [batches[position] for position in rng.permutation(len(batches))[rank::num_ranks]]
