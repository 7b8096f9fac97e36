"""Batches of sentences of about the same length, for translation."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence

SHORTEST = 8  # pieces that a sentence counts for at least, so that batches of one-word lines stay small


def batches_by_length(
    lengths: Sequence[int], budget: int, most: Sequence[int] | None = None, num_together: int = 1
) -> list[list[int]]:
    """Indices of sentences of about the same length, longest first, at most `budget` tokens to a batch.

    `most` gives, for each sentence, how many like it fit into memory. Where `num_together` batches are computed at a
    time, and there are more of them, they are made smaller until nobody is left without one in the last round.
    """
    longest_first = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    batches = list(_filled(longest_first, lengths, budget, most))
    if len(batches) > num_together and len(batches) % num_together:
        wanted = len(batches) + num_together - len(batches) % num_together
        sorted_lengths = [max(lengths[index], SHORTEST) for index in longest_first]
        smaller = bisect_left(range(budget), -wanted, key=lambda tokens: -_num_batches(sorted_lengths, tokens))
        batches = list(_filled(longest_first, lengths, smaller, most))
    return batches


def _filled(
    longest_first: Sequence[int], lengths: Sequence[int], budget: int, most: Sequence[int] | None
) -> Iterator[list[int]]:
    batch: list[int] = []
    longest = 0
    for index in longest_first:
        longest = max(longest, lengths[index], SHORTEST)
        is_full = most is not None and len(batch) >= min(most[index], most[batch[0]] if batch else 1)
        if batch and (is_full or (len(batch) + 1) * longest > budget):
            yield batch
            batch, longest = [], max(lengths[index], SHORTEST)
        batch.append(index)
    if batch:
        yield batch


def _num_batches(longest_first: Sequence[int], budget: int) -> int:
    """How many batches these lengths fill."""
    start = number = 0
    while start < len(longest_first):
        start += max(1, budget // longest_first[start])
        number += 1
    return number
