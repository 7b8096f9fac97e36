"""Batches of a corpus that is never stored: read, tokenised, shuffled in blocks and discarded.

An epoch reads the corpus once. Each block of `shuffle_buffer` pairs is tokenised, batched by length and shuffled by
(seed, epoch, block), so the order is reproducible and only one block is in memory. Pairs far apart in the corpus never
share a batch. Each rank reads and tokenises everything and keeps its share of the batches: this is the only way to give
all ranks the same number of them.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from translator.data.batching import Batch, share
from translator.data.examples import Reading, Rows
from translator.data.length_buckets import bucket_by_length
from translator.data.loader import Place
from translator.data.tokenizer import Tokenizer
from translator.errors import UserError

CHUNK_PAIRS = 1_000  # tokenised together


class StreamedBatches:
    """Batches of pairs from an iterable that can be read repeatedly, for `BatchLoader`.

    Resuming from a place reads and cleans again everything before its block in the epoch, without tokenising it, which
    takes about as long as reading it the first time. Pairs longer than `max_pieces` are dropped (0 = no limit), and so
    is a block left with fewer examples than ranks, usually the last one of an epoch. Every pair is an example in each
    of the `readings`. `Batch.indices` are the positions of the pairs in reading order. `reverse_target` is for models
    that write from right to left.
    """

    def __init__(
        self,
        pairs: Iterable[tuple[str, str]],
        tokenizer: Tokenizer,
        *,
        batch_tokens: int,
        seed: int,
        shuffle_buffer: int,
        max_pieces: int = 0,
        sampling: float = 0.0,
        readings: Sequence[Reading] = (Reading(),),
        reverse_target: bool = False,
        rank: int = 0,
        num_ranks: int = 1,
    ) -> None:
        assert 0 <= rank < num_ranks
        self.pairs = pairs
        self.readings = list(readings)
        self.make_batch = partial(Batch.from_rows, reverse_target=reverse_target)
        self.tokenizer = tokenizer
        self.batch_tokens = batch_tokens
        self.seed = seed
        self.shuffle_buffer = max(shuffle_buffer, num_ranks)
        self.max_pieces = max_pieces
        self.sampling = sampling
        self.rank = rank
        self.num_ranks = num_ranks

    @property
    def description(self) -> dict[str, Any]:
        names = ("batch_tokens", "seed", "shuffle_buffer", "max_pieces", "sampling", "num_ranks")
        described = {name: getattr(self, name) for name in names} | {"tokenizer": self.tokenizer.fingerprint}
        readings = [[list(reading.tags), reading.is_reversed] for reading in self.readings if not reading.is_plain]
        return described | ({"readings": readings} if readings else {})

    def batches(self, place: Place) -> Iterator[tuple[Batch, Place]]:
        epoch, position, first_block = place
        while True:
            num_batches = 0
            for block, texts, is_last_block in self._blocks(first_block):
                batches = self._batches_of_block(epoch, block, texts)
                for number in range(position, len(batches)):
                    is_last = is_last_block and number + 1 == len(batches)
                    after = Place(epoch + 1) if is_last else Place(epoch, number + 1, block)
                    yield batches[number], after
                num_batches += len(batches)
                position = 0
            if num_batches == 0 and first_block == 0:
                raise UserError(
                    f"an epoch of the streamed corpus has too few pairs for {self.num_ranks} processes with "
                    f"data.max_pieces={self.max_pieces}; use more text or a higher limit"
                )
            epoch, first_block = epoch + 1, 0

    @property
    def batches_per_epoch(self) -> int:
        return 0  # the length of a stream is unknown

    def _blocks(self, first: int) -> Iterator[tuple[int, list[tuple[str, str]], bool]]:
        """The number and the pairs of each block of an epoch, and whether it is the last one."""
        iterator = islice(iter(self.pairs), first * self.shuffle_buffer, None)
        texts = list(islice(iterator, self.shuffle_buffer))
        while texts:
            following = list(islice(iterator, 1))
            yield first, texts, not following
            texts = following + list(islice(iterator, self.shuffle_buffer - 1)) if following else []
            first += 1

    def _batches_of_block(self, epoch: int, block: int, texts: Sequence[tuple[str, str]]) -> list[Batch]:
        """This rank's batches of the block."""
        numbers, sources, targets = self._encode_block(epoch, block * self.shuffle_buffer, texts)
        if len(numbers) < self.num_ranks:
            return []
        source_lengths = np.array([len(row) for row in sources], dtype=np.int32)
        target_lengths = np.array([len(row) + 1 for row in targets], dtype=np.int32)  # with EOS
        rng = np.random.default_rng([self.seed, epoch, block])
        groups = bucket_by_length(source_lengths, target_lengths, self.batch_tokens, rng)
        return [
            self.make_batch([sources[row] for row in rows], [targets[row] for row in rows], numbers[rows])
            for rows in share(groups, self.rank, self.num_ranks, rng)
        ]

    def _encode_block(
        self, epoch: int, first_number: int, texts: Sequence[tuple[str, str]]
    ) -> tuple[np.ndarray, list[np.ndarray], list[np.ndarray]]:
        """Numbers, source ids and target ids of the examples from pairs that are not too long."""
        numbers: list[int] = []
        sources: list[np.ndarray] = []
        targets: list[np.ndarray] = []
        for start in range(0, len(texts), CHUNK_PAIRS):
            chunk = texts[start : start + CHUNK_PAIRS]
            encoded_sources = self.tokenizer.encode_source([source for source, _ in chunk])
            encoded_targets = self.tokenizer.encode_target([target for _, target in chunk])
            kept = [
                row
                for row, (source, target) in enumerate(zip(encoded_sources, encoded_targets, strict=True))
                if not self.max_pieces or max(len(source) - 1, len(target)) <= self.max_pieces
            ]
            kept_numbers = [first_number + start + row for row in kept]
            plain = [
                [np.array(rows[row], dtype=np.int32) for row in kept] for rows in (encoded_sources, encoded_targets)
            ]
            for reading in self.readings:
                examples = reading(*plain)
                if self.sampling:
                    seeds = [
                        f"{self.seed} {epoch} {number}{' reversed' * reading.is_reversed}" for number in kept_numbers
                    ]
                    examples = self._resampled(*examples, seeds)
                numbers += kept_numbers
                sources += examples[0]
                targets += examples[1]
        return np.array(numbers, dtype=np.int64), sources, targets

    def _resampled(self, sources: Rows, targets: Rows, seeds: list[str]) -> tuple[Rows, Rows]:
        sides = (self.tokenizer.resample_source, sources), (self.tokenizer.resample_target, targets)
        new_sources, new_targets = (
            [np.array(row, dtype=np.int32) for row in resample([row.tolist() for row in rows], self.sampling, seeds)]
            for resample, rows in sides
        )
        return new_sources, new_targets
