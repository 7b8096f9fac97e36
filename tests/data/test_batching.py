"""Batches: contents against a loop, the token budget, and the guarantees of an epoch on every rank."""

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from translator.data import batching, blocks
from translator.data.batching import Batch, BatchSampler
from translator.data.length_buckets import SOURCE_FACTOR, bucket_by_length, cut_into_batches
from translator.errors import UserError
from translator.ids import BOS, EOS, PAD


def make_batch(*pairs: tuple[list[int], list[int]]) -> Batch:
    sources = [np.array([*source, EOS], dtype=np.int32) for source, _ in pairs]
    targets = [np.array(target, dtype=np.int32) for _, target in pairs]
    return Batch.from_rows(sources, targets, np.arange(len(pairs)) + 100)


def random_lengths(num_pairs: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Lengths distributed as in Multi30k: means near 15.5, standard deviations near 5, correlation 0.87."""
    rng = np.random.default_rng(seed)
    source = rng.gamma(10.4, 1.48, num_pairs)
    target = source + rng.normal(0.5, 2.7, num_pairs)
    source, target = np.clip(source, 1, 80).round(), np.clip(target, 1, 80).round()
    return source.astype(np.int32), target.astype(np.int32)


def sampler_of(num_pairs: int, **options: object) -> BatchSampler:
    arguments = {"batch_tokens": 500, "seed": 3, **options}
    return BatchSampler(*random_lengths(num_pairs), **arguments)  # type: ignore[arg-type]


# Batch


def test_a_batch_by_hand() -> None:
    batch = make_batch(([10, 11], [20]), ([12], [21, 22, 23]))
    assert batch.source.tolist() == [[10, 11, EOS], [12, EOS, PAD]]
    assert batch.source_mask.tolist() == [[True, True, True], [True, True, False]]
    assert batch.target_in.tolist() == [[BOS, 20, PAD, PAD], [BOS, 21, 22, 23]]
    assert batch.target_out.tolist() == [[20, EOS, PAD, PAD], [21, 22, 23, EOS]]
    assert batch.target_mask.tolist() == [[True, True, False, False], [True] * 4]
    assert batch.indices.tolist() == [100, 101]
    assert (len(batch), batch.num_source_tokens, batch.num_target_tokens) == (2, 5, 6)
    assert batch.padding_share == pytest.approx(3 / 14)
    assert {t.dtype for t in (batch.source, batch.target_in, batch.target_out, batch.indices)} == {torch.int64}
    assert {batch.source_mask.dtype, batch.target_mask.dtype} == {torch.bool}


@given(st.lists(st.tuples(*[st.lists(st.integers(4, 99), max_size=6)] * 2), min_size=1, max_size=8))
def test_masks_cover_exactly_the_tokens(pairs: list[tuple[list[int], list[int]]]) -> None:
    batch = make_batch(*pairs)
    assert torch.equal(batch.source != PAD, batch.source_mask)
    assert torch.equal(batch.target_out != PAD, batch.target_mask)
    assert torch.equal(batch.target_in != PAD, batch.target_mask)
    for row, (source, target) in enumerate(pairs):
        assert batch.source[row][batch.source_mask[row]].tolist() == [*source, EOS]
        assert batch.target_in[row][batch.target_mask[row]].tolist() == [BOS, *target]
        assert batch.target_out[row][batch.target_mask[row]].tolist() == [*target, EOS]
    assert batch.source_mask[:, -1].any()  # no all-padding column
    assert batch.target_mask[:, -1].any()


def test_blank_targets_are_one_token() -> None:
    batch = make_batch(([], []), ([5], []))
    assert batch.target_in.tolist() == [[BOS], [BOS]]
    assert batch.target_out.tolist() == [[EOS], [EOS]]


@pytest.mark.parametrize("num_rows", [2, 5])
def test_halves_hold_the_same_sentences_without_needless_padding(num_rows: int) -> None:
    pairs = [([7] * (1 + i), [8] * (2 * i)) for i in range(num_rows)]
    batch = make_batch(*pairs)
    first, second = batch.split()
    middle = len(first)
    assert 0 <= len(first) - len(second) <= 1
    for half, expected in ((first, make_batch(*pairs[:middle])), (second, make_batch(*pairs[middle:]))):
        for name in ("source", "source_mask", "target_in", "target_out", "target_mask"):
            assert torch.equal(getattr(half, name), getattr(expected, name))
        assert half.num_target_tokens == expected.num_target_tokens
        assert half.num_source_tokens == expected.num_source_tokens
    assert torch.cat([first.indices, second.indices]).equal(batch.indices)


def test_one_sentence_cannot_be_split() -> None:
    with pytest.raises(ValueError, match="one sentence"):
        make_batch(([1], [2])).split()


def test_moving_to_a_device_keeps_everything() -> None:
    batch = make_batch(([10, 11], [20]), ([12], [21, 22]))
    moved = batch.to("meta")
    assert {moved.source.device.type, moved.target_mask.device.type, moved.indices.device.type} == {"meta"}
    assert (moved.num_target_tokens, moved.num_source_tokens) == (batch.num_target_tokens, batch.num_source_tokens)
    assert torch.equal(batch.to("cpu", non_blocking=True).target_in, batch.target_in)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="page-locked memory needs a GPU")
def test_pinned_memory() -> None:
    assert make_batch(([1], [2])).pin_memory().source.is_pinned()


# Packing


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=200),
    st.integers(1, 300),
    st.integers(0, 5),
)
def test_every_pair_is_packed_once_within_the_budget(
    lengths: list[tuple[int, int]], batch_tokens: int, seed: int
) -> None:
    source, target = np.array(lengths, dtype=np.int32).T
    batches = bucket_by_length(source, target, batch_tokens, np.random.default_rng(seed))
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    for rows in batches:
        assert len(rows) > 0
        assert len(rows) == 1 or len(rows) * target[rows].max() <= batch_tokens
        assert len(rows) == 1 or len(rows) * source[rows].max() <= SOURCE_FACTOR * batch_tokens


@pytest.mark.parametrize("num_batches", [1, 2, 7, 40, 200])
def test_packing_into_a_given_number_of_batches(num_batches: int) -> None:
    source, target = random_lengths(200)
    batches = cut_into_batches(num_batches, source, target, 300, np.random.default_rng(0))
    assert len(batches) == num_batches
    assert all(len(rows) > 0 for rows in batches)
    assert sorted(np.concatenate(batches).tolist()) == list(range(200))


def test_packing_no_pairs_gives_no_batches() -> None:
    empty = np.zeros(0, dtype=np.int32)
    assert bucket_by_length(empty, empty, 100, np.random.default_rng(0)) == []


def test_pairs_of_one_length_fill_their_batches() -> None:
    lengths = np.full(1000, 10, dtype=np.int32)
    sizes = Counter(len(rows) for rows in bucket_by_length(lengths, lengths, 400, np.random.default_rng(0)))
    assert sizes == {40: 25}


def test_lengths_beyond_the_curve_are_packed_too() -> None:
    lengths = np.array([5, 100_000, 5, 40_000, 2**31 - 1], dtype=np.int32)
    batches = bucket_by_length(lengths, lengths, 1_000, np.random.default_rng(0))
    assert sorted(np.concatenate(batches).tolist()) == [0, 1, 2, 3, 4]


def test_padding_is_far_below_that_of_one_sorted_length() -> None:
    source, target = random_lengths(29_000)

    def padding(batches: list[np.ndarray]) -> float:
        positions = sum(len(rows) * int(source[rows].max() + target[rows].max()) for rows in batches)
        return 1 - int(source.sum() + target.sum()) / positions

    packed = bucket_by_length(source, target, 4096, np.random.default_rng(0))
    by_target = np.argsort(target, kind="stable")
    assert padding(packed) < 0.03
    assert padding(packed) < 0.5 * padding(np.array_split(by_target, len(packed)))
    assert target.sum() / len(packed) > 0.85 * 4096  # not just because the batches are small


# An epoch


def epoch_of_all_ranks(num_pairs: int, num_ranks: int, epoch: int = 0, **options: object) -> list[list[np.ndarray]]:
    return [sampler_of(num_pairs, rank=rank, num_ranks=num_ranks, **options).epoch(epoch) for rank in range(num_ranks)]


def rows_of(batches: list[np.ndarray]) -> list[int]:
    return np.concatenate(batches).tolist()


def test_an_epoch_is_a_pure_function_of_seed_and_number() -> None:
    first, second = sampler_of(2_000), sampler_of(2_000)
    second.epoch(7)  # earlier calls do not matter
    for epoch in (0, 3, 0):
        for mine, theirs in zip(first.epoch(epoch), second.epoch(epoch), strict=True):
            np.testing.assert_array_equal(mine, theirs)
    assert rows_of(first.epoch(0)) != rows_of(first.epoch(1))
    assert rows_of(first.epoch(0)) != rows_of(sampler_of(2_000, seed=4).epoch(0))


def test_batches_hold_different_sentences_in_each_epoch() -> None:
    sampler = sampler_of(5_000)
    first, second = ({frozenset(rows.tolist()) for rows in sampler.epoch(epoch)} for epoch in (0, 1))
    assert len(first & second) < 0.1 * len(first)


def test_batches_are_not_in_the_order_of_their_lengths() -> None:
    sampler = sampler_of(5_000)
    longest = [int(sampler.target_lengths[rows].max()) for rows in sampler.epoch(0)]
    assert abs(np.corrcoef(np.arange(len(longest)), longest)[0, 1]) < 0.3


@pytest.mark.parametrize(("num_pairs", "num_ranks"), [(2_000, 1), (2_000, 2), (2_000, 7), (30, 8), (5, 5), (9, 4)])
def test_ranks_share_an_epoch_without_loss_or_repetition(num_pairs: int, num_ranks: int) -> None:
    for epoch in range(3):
        shares = epoch_of_all_ranks(num_pairs, num_ranks, epoch)
        assert len({len(share) for share in shares}) == 1
        assert all(len(rows) > 0 for share in shares for rows in share)
        assert sorted(row for share in shares for row in rows_of(share)) == list(range(num_pairs))


def test_fewer_pairs_than_ranks_are_refused() -> None:
    with pytest.raises(UserError, match="3 training pairs for 4 processes"):
        sampler_of(3, num_ranks=4).epoch(0)


def test_weights_say_how_often_an_epoch_sees_a_pair() -> None:
    sampler = sampler_of(1_000, parts=[(400, 1.0), (350, 2.0), (250, 0.5)])
    halves = []
    for epoch in range(4):
        counts = Counter(rows_of(sampler.epoch(epoch)))
        assert {counts[row] for row in range(400)} == {1}
        assert {counts[row] for row in range(400, 750)} == {2}
        halves.append({row for row in range(750, 1_000) if counts[row]})
        assert len(halves[-1]) == 125
    assert halves[0] | halves[1] == set(range(750, 1_000)) == halves[2] | halves[3]
    assert halves[0] & halves[1] == set()


@pytest.mark.parametrize("weight", [0.1, 0.3, 1 / 3, 1.25, 2.7])
def test_fractions_even_out_over_the_epochs(weight: float) -> None:
    num_epochs = 30
    sampler = sampler_of(101, parts=[(101, weight)])
    counts = Counter(row for epoch in range(num_epochs) for row in rows_of(sampler.epoch(epoch)))
    assert max(counts.values()) - min(counts[row] for row in range(101)) <= 1
    assert sum(counts.values()) == pytest.approx(weight * num_epochs * 101, abs=1)


def test_weights_and_ranks_together() -> None:
    shares = epoch_of_all_ranks(1_000, 3, epoch=2, parts=[(600, 1.5), (400, 0.25)])
    together = Counter(row for share in shares for row in rows_of(share))
    alone = Counter(rows_of(sampler_of(1_000, parts=[(600, 1.5), (400, 0.25)]).epoch(2)))
    assert together == alone


# Blocks


@pytest.fixture
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "BLOCK_ROWS", 300)
    monkeypatch.setattr(batching, "BLOCK_BATCHES", 1)
    monkeypatch.setattr(blocks, "RUN_ROWS", 16)


@pytest.mark.usefixtures("_small_blocks")
@pytest.mark.parametrize("num_ranks", [1, 3])
def test_blocks_together_are_the_epoch(num_ranks: int) -> None:
    samplers = [sampler_of(2_000, rank=rank, num_ranks=num_ranks) for rank in range(num_ranks)]
    assert {sampler.num_blocks for sampler in samplers} == {7}
    for epoch in (0, 1):
        rows: list[int] = []
        for block in range(7):
            shares = [sampler.block(epoch, block) for sampler in samplers]
            assert len({len(share) for share in shares}) == 1
            rows += [row for share in shares for row in rows_of(share)]
        assert sorted(rows) == list(range(2_000))


@pytest.mark.usefixtures("_small_blocks")
def test_blocks_are_a_pure_function_of_seed_and_epoch_and_differ_between_epochs() -> None:
    sampler = sampler_of(2_000)
    blocks_of_epoch = [[rows_of(sampler.block(epoch, block)) for block in range(7)] for epoch in (0, 1)]
    again = sampler_of(2_000)
    assert rows_of(again.block(1, 4)) == blocks_of_epoch[1][4]
    assert rows_of(again.block(0, 6)) == blocks_of_epoch[0][6]
    assert rows_of(sampler_of(2_000, seed=4).block(0, 0)) != blocks_of_epoch[0][0]
    shared = [len({*first} & {*second}) for first, second in zip(*blocks_of_epoch, strict=True)]
    assert max(shared) < 150  # of about 286 rows: blocks are composed differently in each epoch


@pytest.mark.usefixtures("_small_blocks")
def test_a_block_has_rows_from_all_over_the_corpus_and_batches_mix_them() -> None:
    sampler = sampler_of(2_000)
    batches = sampler.block(0, 0)
    assert np.histogram(np.concatenate(batches), bins=4, range=(0, 2_000))[0].min() > 20
    assert np.mean([np.ptp(rows) for rows in batches]) > 1_000


@pytest.mark.usefixtures("_small_blocks")
def test_weights_in_blocks() -> None:
    sampler = sampler_of(2_000, parts=[(800, 1.0), (700, 2.0), (500, 0.5)])
    halves = []
    for epoch in range(4):
        counts = Counter(rows_of(sampler.epoch(epoch)))
        assert {counts[row] for row in range(800)} == {1}
        assert {counts[row] for row in range(800, 1_500)} == {2}
        halves.append({row for row in range(1_500, 2_000) if counts[row]})
    assert halves[0] | halves[1] == set(range(1_500, 2_000)) == halves[2] | halves[3]
    assert halves[0] & halves[1] == set()


@pytest.mark.usefixtures("_small_blocks")
def test_a_block_has_room_for_enough_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "BLOCK_BATCHES", 25)
    sampler = sampler_of(5_000)
    assert sampler.num_blocks > 1
    assert len(sampler.block(0, 0)) >= 25


def test_padding_of_a_corpus_of_many_blocks() -> None:
    source, target = random_lengths(150_000)
    sampler = BatchSampler(source, target, batch_tokens=4096, seed=1)
    assert sampler.num_blocks == 3
    batches = sampler.block(0, 1)
    positions = sum(len(rows) * int(source[rows].max() + target[rows].max()) for rows in batches)
    num_tokens = sum(int(source[rows].sum() + target[rows].sum()) for rows in batches)
    assert 1 - num_tokens / positions < 0.02
