"""Groups sentences into batches with as little padding as possible under a token budget.

A pair is a point (target length, source length). The pairs are sorted by the order in which a Hilbert curve visits
their points, so that neighbours are similar in both lengths, and dynamic programming cuts this order into the batches
with the least padding.
"""

import heapq

import numpy as np

SOURCE_FACTOR = 2  # a batch may have this many times the target budget in source positions
GROUPS_PER_BATCH = 16  # pairs of equal lengths are cut into groups, about this many to a full batch
# The padding that one more batch must save to be worth its overhead, as a share of the budget.
BATCH_PRICE = 0.2
FILLING_PRICE = 0.5  # for a fixed number of batches: fuller batches, only slightly over the budget
MAX_LENGTH = 2**15 - 1  # the curve does not distinguish greater lengths (the budget does)


def bucket_by_length(
    source_lengths: np.ndarray,
    target_lengths: np.ndarray,
    batch_tokens: int,
    rng: np.random.Generator,
    batch_price: float = BATCH_PRICE,
) -> list[np.ndarray]:
    """Positions of the pairs, batch by batch; lengths include EOS.

    Each batch of B pairs, padded to S source and T target positions, keeps B·T within `batch_tokens` and B·S within
    twice that; a pair too long for the budget forms a batch by itself. `rng` determines the order among pairs of equal
    lengths and the shift of the curve, so batches differ from epoch to epoch.
    """
    if len(source_lengths) == 0:
        return []
    keys = _hilbert_keys(target_lengths, source_lengths, rng)
    keys <<= 31
    keys |= rng.integers(2**31, size=len(keys))
    order = np.argsort(keys, kind="stable").astype(np.int32)
    del keys
    full, order = _take_full(order, source_lengths, target_lengths, batch_tokens)
    cuts = _cut(source_lengths[order], target_lengths[order], batch_tokens, batch_price)
    return full + np.split(order, cuts)


def cut_into_batches(
    num_batches: int,
    source_lengths: np.ndarray,
    target_lengths: np.ndarray,
    batch_tokens: int,
    rng: np.random.Generator,
) -> list[np.ndarray]:
    """As `bucket_by_length`, but into exactly `num_batches` batches; the budget is raised as far as necessary."""
    if num_batches == 1:
        return [np.arange(len(source_lengths))]
    while True:
        batches = bucket_by_length(source_lengths, target_lengths, batch_tokens, rng, FILLING_PRICE)
        if len(batches) <= num_batches:
            return split_largest(batches, num_batches)
        batch_tokens += max(1, batch_tokens // 20)


def split_largest(batches: list[np.ndarray], num_batches: int) -> list[np.ndarray]:
    """Halves the batches with the most rows until there are `num_batches`; there must be at least as many rows."""
    batches = list(batches)
    heap = [(-len(batch), position) for position, batch in enumerate(batches)]
    heapq.heapify(heap)
    while len(batches) < num_batches:
        _, position = heapq.heappop(heap)
        batch = batches[position]
        middle = (len(batch) + 1) // 2
        batches[position] = batch[:middle]
        batches.append(batch[middle:])
        heapq.heappush(heap, (-middle, position))
        heapq.heappush(heap, (middle - len(batch), len(batches) - 1))
    return batches


def _hilbert_keys(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The position of each point (x, y) on a randomly shifted Hilbert curve."""
    num_bits = int(min(max(x.max(), y.max()), MAX_LENGTH)).bit_length() + 1
    shift_x, shift_y = rng.integers(2 ** (num_bits - 1), size=2)
    x = np.minimum(x, MAX_LENGTH).astype(np.int32) + np.int32(shift_x)
    y = np.minimum(y, MAX_LENGTH).astype(np.int32) + np.int32(shift_y)
    keys = np.zeros(len(x), dtype=np.int64)
    for bit in reversed(range(num_bits)):
        high_x, high_y = (x >> bit) & 1, (y >> bit) & 1
        keys = keys << 2 | (3 * high_x) ^ high_y
        # In the lower quadrants the curve is mirrored (only in the right one) and transposed.
        lower = high_y == 0
        mirror = np.where(lower & (high_x == 1), np.int32((1 << bit) - 1), np.int32(0))
        x, y = (x & (1 << bit) - 1) ^ mirror, (y & (1 << bit) - 1) ^ mirror
        x, y = np.where(lower, y, x), np.where(lower, x, y)
    return keys


def _take_full(
    order: np.ndarray, source_lengths: np.ndarray, target_lengths: np.ndarray, batch_tokens: int
) -> tuple[list[np.ndarray], np.ndarray]:
    """Full batches of pairs with equal lengths, which need no padding, and the rest of the order.

    Up to two batches of each run are left to the search, so its work does not grow with the size of the corpus.
    """
    starts, sizes = _runs(source_lengths[order], target_lengths[order])
    capacity = _capacity(source_lengths[order[starts]], target_lengths[order[starts]], batch_tokens)
    num_full = np.maximum(sizes // capacity - 1, 0)
    batches = [
        order[start + number * size : start + (number + 1) * size]
        for start, size, count in zip(starts.tolist(), capacity.tolist(), num_full.tolist(), strict=True)
        for number in range(count)
    ]
    within = np.arange(len(order)) - np.repeat(starts, sizes)
    return batches, order[within >= np.repeat(num_full * capacity, sizes)]


def _cut(source_lengths: np.ndarray, target_lengths: np.ndarray, batch_tokens: int, batch_price: float) -> np.ndarray:
    """Where to cut the ordered pairs to minimise the sum of the padding and the price of the batches."""
    starts = _group_starts(source_lengths, target_lengths, batch_tokens)
    source, target = source_lengths[starts].astype(np.int64), target_lengths[starts].astype(np.int64)
    ends = np.append(starts[1:], len(source_lengths))
    num_groups = len(starts)
    cost = np.full(num_groups + 1, np.inf)  # of the best batching of all groups before this one
    cost[0] = 0
    previous = np.zeros(num_groups + 1, dtype=np.int64)
    stops = np.searchsorted(ends, starts + batch_tokens // target, side="right")  # the farthest a batch can reach
    for first in range(num_groups):
        last = max(int(stops[first]), first + 1)
        num_rows = ends[first:last] - starts[first]
        longest_target = np.maximum.accumulate(target[first:last])
        longest_source = np.maximum.accumulate(source[first:last])
        fits = (num_rows * longest_target <= batch_tokens) & (num_rows * longest_source <= SOURCE_FACTOR * batch_tokens)
        fits[0] = True
        num_fitting = len(fits) if fits.all() else int(np.argmin(fits))
        total = cost[first] + num_rows * (longest_target + longest_source) + batch_price * batch_tokens
        window = slice(first + 1, first + 1 + num_fitting)
        better = total[:num_fitting] < cost[window]
        cost[window] = np.where(better, total[:num_fitting], cost[window])
        previous[window] = np.where(better, first, previous[window])
    cuts = []
    group = int(previous[num_groups])
    while group > 0:
        cuts.append(starts[group])
        group = int(previous[group])
    return np.array(cuts[::-1], dtype=np.int64)


def _group_starts(source_lengths: np.ndarray, target_lengths: np.ndarray, batch_tokens: int) -> np.ndarray:
    """First positions of the runs of pairs with equal lengths; long runs are cut into fractions of a batch."""
    starts, sizes = _runs(source_lengths, target_lengths)
    group_sizes = np.maximum(
        _capacity(source_lengths[starts], target_lengths[starts], batch_tokens) // GROUPS_PER_BATCH, 1
    )
    within = np.arange(len(source_lengths)) - np.repeat(starts, sizes)
    return np.flatnonzero(within % np.repeat(group_sizes, sizes) == 0)


def _runs(source_lengths: np.ndarray, target_lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First positions and sizes of the runs of pairs with equal lengths."""
    changes = (np.diff(source_lengths) != 0) | (np.diff(target_lengths) != 0)
    starts = np.concatenate([[0], np.flatnonzero(changes) + 1])
    return starts, np.diff(np.append(starts, len(source_lengths)))


def _capacity(source_lengths: np.ndarray, target_lengths: np.ndarray, batch_tokens: int) -> np.ndarray:
    """How many pairs of these lengths fill a batch; at least one."""
    num_rows = np.minimum(batch_tokens // target_lengths, SOURCE_FACTOR * batch_tokens // source_lengths)
    result: np.ndarray = np.maximum(num_rows, 1)
    return result
