"""The endless stream of batches for a trainer, prefetched in a thread, with a position that can be saved."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice, pairwise
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from translator.data.batching import Batch, BatchSampler
from translator.data.examples import Rows, Table
from translator.data.length_buckets import bucket_by_length, cut_into_batches
from translator.data.prefetch import Prefetcher
from translator.data.ragged_array import RaggedArray
from translator.data.tokenized_corpus import LoadedRows
from translator.data.tokenizer import Tokenizer
from translator.errors import UserError

WINDOW = 128  # about this many batches are loaded, sampled and regrouped together
SAMPLED_TOGETHER = 4_096  # sentences per call


class Place(NamedTuple):
    """The position of the next batch."""

    epoch: int = 0
    position: int = 0  # among the batches of the block
    block: int = 0  # of the epoch


class BatchSource(Protocol):
    """Where batches come from. It is used by another thread, so it must not be modified once in use."""

    @property
    def description(self) -> dict[str, Any]:
        """Plain values that determine the order of the batches: a place is meaningless if they change."""

    def batches(self, place: Place) -> Iterator[tuple[Batch, Place]]:
        """Continues from a place, epoch after epoch; each batch comes with the place after it."""

    @property
    def batches_per_epoch(self) -> int:
        """For this rank: 0 if unknown, approximate if the corpora are weighted or large."""


class CorpusBatches:
    """Batches of a table's rows in the order of a sampler, optionally with subword regularisation.

    With `sampling`, words are resegmented in each epoch, determined by (seed, epoch, row). This makes sentences longer
    by amounts that the sampler does not know, so its batches are taken in windows, and the rows of each window are
    regrouped by their new lengths into the same number of batches. With the `batch_tokens` of `fitted_batch_tokens` in
    the sampler, the new batches stay close to the budget. The first batch has to wait for its whole window, a few
    seconds, also on resuming. `reverse_target` is for models that write from right to left.
    """

    def __init__(
        self,
        table: Table,
        sampler: BatchSampler,
        *,
        tokenizer: Tokenizer | None = None,
        sampling: float = 0.0,
        reverse_target: bool = False,
    ) -> None:
        assert sampling == 0 or tokenizer is not None
        self.table = table
        self.sampler = sampler
        self.tokenizer = tokenizer
        self.sampling = sampling
        self.make_batch = partial(Batch.from_rows, reverse_target=reverse_target)

    @property
    def description(self) -> dict[str, Any]:
        return {**self.sampler.description, "sampling": self.sampling}

    def batches(self, place: Place) -> Iterator[tuple[Batch, Place]]:
        epoch, position, first_block = place
        while True:
            for block in range(first_block, self.sampler.num_blocks):
                batches = self._batches_of_block(epoch, block, position)
                for number, batch in enumerate(batches, start=position + 1):
                    yield batch, self._place_after(epoch, block, number)
                position = 0
            epoch, first_block = epoch + 1, 0

    @property
    def batches_per_epoch(self) -> int:
        return self.sampler.num_blocks * len(self.sampler.block(0, 0))  # blocks are of similar size

    def _place_after(self, epoch: int, block: int, position: int) -> Place:
        if position < len(self.sampler.block(epoch, block)):
            return Place(epoch, position, block)
        return Place(epoch, block=block + 1) if block + 1 < self.sampler.num_blocks else Place(epoch + 1)

    def _batches_of_block(self, epoch: int, block: int, first: int) -> Iterator[Batch]:
        """The batches from position `first` on. Their rows are copied from the table one window at a time."""
        batches = self.sampler.block(epoch, block)
        num_windows = max(1, round(len(batches) / WINDOW))
        bounds = [len(batches) * window // num_windows for window in range(num_windows + 1)]
        for start, end in pairwise(bounds):
            if end <= first:
                continue
            if self.sampling:
                rng = np.random.default_rng([self.sampler.seed, epoch, start, *([block, 3] if block else [])])
                yield from islice(self._sampled_window(epoch, batches[start:end], rng), max(0, first - start), None)
            else:
                yield from self._window(batches[max(start, first) : end])

    def _window(self, batches: list[np.ndarray]) -> Iterator[Batch]:
        loaded = LoadedRows(self.table, np.concatenate(batches))
        for rows in batches:
            yield self.make_batch(*loaded.rows(rows), self.table.pair_numbers(rows))

    def _sampled_window(self, epoch: int, batches: list[np.ndarray], rng: np.random.Generator) -> Iterator[Batch]:
        """The rows of these batches, resegmented and regrouped into as many batches."""
        assert self.tokenizer is not None
        rows = np.concatenate(batches)
        seeds = [f"{self.sampler.seed} {epoch} {row}" for row in rows.tolist()]
        sources, targets = LoadedRows(self.table, rows).rows(rows)
        new_sources = self._sampled(self.tokenizer.resample_source, sources, seeds)
        new_targets = self._sampled(self.tokenizer.resample_target, targets, seeds)
        target_lengths = new_targets.lengths + 1  # with EOS
        groups = cut_into_batches(len(batches), new_sources.lengths, target_lengths, self.sampler.batch_tokens, rng)
        for group in (groups[position] for position in rng.permutation(len(groups))):
            numbers = self.table.pair_numbers(rows[group])
            yield self.make_batch(new_sources.rows(group), new_targets.rows(group), numbers)

    def _sampled(
        self,
        resample: Callable[[list[list[int]], float, list[str]], list[list[int]]],
        rows: list[np.ndarray],
        seeds: list[str],
    ) -> RaggedArray:
        """Works in parts, since Python ints take a lot of memory."""
        parts = [slice(start, start + SAMPLED_TOGETHER) for start in range(0, len(rows), SAMPLED_TOGETHER)]
        return RaggedArray.joined(
            [
                RaggedArray.from_rows(resample([row.tolist() for row in rows[part]], self.sampling, seeds[part]))
                for part in parts
            ]
        )


class BatchLoader:
    """Iterates over batches endlessly, epoch after epoch.

    `epoch` and `state_dict` refer to the batches handed out, not to those prefetched, so training resumes from a
    checkpoint with exactly the batch that would have come next. After the last batch of an epoch, `epoch` is the next.
    """

    def __init__(self, source: BatchSource, *, num_ahead: int = 16, pin_memory: bool = False) -> None:
        self._source = source
        self._num_ahead = num_ahead
        self._pin_memory = pin_memory
        self._place = Place()
        self._prefetcher: Prefetcher[tuple[Batch, Place]] | None = None

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        if self._prefetcher is None:
            make_batches = partial(_batches_from, self._source, self._place, self._pin_memory)
            self._prefetcher = Prefetcher(make_batches, self._num_ahead)
        try:
            batch, self._place = next(self._prefetcher)
        except BaseException:
            self.close()
            raise
        return batch

    @property
    def epoch(self) -> int:
        """The epoch of the next batch, counted from 0."""
        return self._place.epoch

    @property
    def batches_per_epoch(self) -> int:
        return self._source.batches_per_epoch

    def state_dict(self) -> dict[str, Any]:
        return {"place": self._place._asdict(), "description": self._source.description}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        ours, theirs = self._source.description, state["description"]
        changed = [f"{name} {theirs.get(name)} → {value}" for name, value in ours.items() if theirs.get(name) != value]
        if changed:
            raise UserError(
                f"cannot resume at the same place in the training data, because this changed: {', '.join(changed)}; "
                "resume with the options and corpora of the run, or start a new one"
            )
        self.close()
        self._place = Place(**state["place"])

    def close(self) -> None:
        """Stops the thread; requesting another batch restarts it."""
        if self._prefetcher is not None:
            self._prefetcher.close()
            self._prefetcher = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _batches_from(source: BatchSource, place: Place, pin_memory: bool) -> Iterator[tuple[Batch, Place]]:
    for batch, after in source.batches(place):
        yield batch.pin_memory() if pin_memory else batch, after


def ordered_batches(
    table: Table, batch_tokens: int, longest: int | None = None, *, reverse_target: bool = False
) -> list[Batch]:
    """All rows, longest first, for validation; `Batch.indices` are their row numbers.

    Of a row with more than `longest` pieces on a side only so many are kept, since memory grows with their square.
    """
    all_rows = np.arange(len(table))
    source_lengths, target_lengths = table.source_lengths[all_rows], table.target_lengths[all_rows]
    if longest is not None:
        source_lengths, target_lengths = (np.minimum(one, longest + 1) for one in (source_lengths, target_lengths))
    groups = bucket_by_length(source_lengths, target_lengths, batch_tokens, np.random.default_rng(0))
    groups.sort(key=lambda rows: (-int(target_lengths[rows].max()), int(rows.min())))
    return [
        Batch.from_rows(*_shortened(*table.rows(rows), longest), rows, reverse_target=reverse_target) for rows in groups
    ]


def _shortened(sources: Rows, targets: Rows, longest: int | None) -> tuple[Rows, Rows]:
    """The first pieces of each row; a source keeps the EOS at its end."""
    if longest is None:
        return sources, targets
    sources = [row if len(row) <= longest + 1 else np.append(row[:longest], row[-1]) for row in sources]
    return sources, [row[:longest] for row in targets]


def fitted_batch_tokens(table: Table, tokenizer: Tokenizer, sampling: float, batch_tokens: int) -> int:
    """The budget that keeps sampled batches near `batch_tokens`, measured on up to 1,000 rows spread over the table."""
    if not sampling:
        return batch_tokens
    rows = np.unique(np.linspace(0, len(table) - 1, num=1_000, dtype=np.int64))
    _, targets = table.rows(rows)
    sampled = tokenizer.resample_target([row.tolist() for row in targets], sampling, [str(row) for row in rows])
    growth = (sum(map(len, sampled)) + len(rows)) / int(table.target_lengths[rows].sum())
    table.release()
    return max(1, int(batch_tokens / growth))
