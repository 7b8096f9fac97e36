"""Batches of sentences of about the same length, for translation."""

from collections.abc import Iterator, Sequence

SHORTEST = 8  # pieces that a sentence counts for at least, so that batches of one-word lines stay small


def batches_by_length(lengths: Sequence[int], budget: int, most: Sequence[int] | None = None) -> Iterator[list[int]]:
    """Indices of sentences of about the same length, longest first, at most `budget` tokens to a batch.

    `most` gives, for each sentence, how many like it fit into memory.
    """
    batch: list[int] = []
    longest = 0
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        longest = max(longest, lengths[index], SHORTEST)
        is_full = most is not None and len(batch) >= min(most[index], most[batch[0]] if batch else 1)
        if batch and (is_full or (len(batch) + 1) * longest > budget):
            yield batch
            batch, longest = [], max(lengths[index], SHORTEST)
        batch.append(index)
    if batch:
        yield batch
