"""Streamed batches: contents, order, sharding over ranks and exact resumption, with nothing stored."""

import json
from collections.abc import Iterator
from itertools import islice

import pytest
import torch

from support.corpora import NUMBERED_PAIRS as PAIRS
from support.corpora import numbered_tokenizer
from translator.data.batching import Batch
from translator.data.loader import BatchLoader, Place
from translator.data.streaming import StreamedBatches
from translator.errors import UserError
from translator.ids import EOS, PAD


def stream(pairs: object = PAIRS, **options: object) -> StreamedBatches:
    arguments = {"batch_tokens": 150, "seed": 1, "shuffle_buffer": 80, **options}
    return StreamedBatches(pairs, numbered_tokenizer(), **arguments)  # type: ignore[arg-type]


def epoch_of(source: StreamedBatches, epoch: int = 0) -> list[Batch]:
    batches = []
    for batch, place in source.batches(Place(epoch)):
        batches.append(batch)
        if place.epoch > epoch:
            return batches
    raise AssertionError("a stream does not end")


def numbers_of(batches: list[Batch]) -> list[int]:
    return torch.cat([batch.indices for batch in batches]).tolist()


def test_an_epoch_has_every_pair_once_with_its_own_tokens() -> None:
    batches = epoch_of(stream())
    assert sorted(numbers_of(batches)) == list(range(len(PAIRS)))
    for batch in batches:
        assert len(batch) * batch.target_out.shape[1] <= 150
        for row, source, target in zip(batch.indices.tolist(), batch.source, batch.target_out, strict=True):
            assert source[source != PAD].tolist() == numbered_tokenizer().encode_source([PAIRS[row][0]])[0]
            assert target[target != PAD].tolist() == [*numbered_tokenizer().encode_target([PAIRS[row][1]])[0], EOS]


def test_shuffled_within_blocks_and_differently_in_each_epoch() -> None:
    first, again, second = epoch_of(stream()), epoch_of(stream()), epoch_of(stream(), 1)
    assert numbers_of(first) == numbers_of(again) != numbers_of(second)
    numbers = numbers_of(first)
    assert sorted(numbers[:80]) == list(range(80)) != numbers[:80]
    assert numbers_of(epoch_of(stream(seed=2))) != numbers


def test_only_a_block_is_read_ahead() -> None:
    num_read = 0

    class Counted:
        def __iter__(self) -> Iterator[tuple[str, str]]:
            nonlocal num_read
            for pair in PAIRS:
                num_read += 1
                yield pair

    next(stream(Counted()).batches(Place()))
    assert num_read == 81  # one extra, to know whether this block is the last


@pytest.mark.parametrize("num_ranks", [2, 3])
def test_ranks_share_all_pairs_in_equal_numbers_of_batches(num_ranks: int) -> None:
    shares = [epoch_of(stream(rank=rank, num_ranks=num_ranks)) for rank in range(num_ranks)]
    assert len({len(share) for share in shares}) == 1
    assert sorted(number for share in shares for number in numbers_of(share)) == list(range(len(PAIRS)))


@pytest.mark.parametrize("num_ranks", [2, 3])
def test_a_last_block_with_fewer_pairs_than_ranks_is_left_out_on_all(num_ranks: int) -> None:
    num_batches = len(epoch_of(stream(PAIRS[:80], num_ranks=num_ranks)))
    shares = []
    for rank in range(num_ranks):
        two_epochs = islice(stream(PAIRS[:81], rank=rank, num_ranks=num_ranks).batches(Place()), 2 * num_batches)
        shares.append([(batch, place) for batch, place in two_epochs])
    first_epoch = [batch for share in shares for batch, place in share[:num_batches]]
    assert sorted(numbers_of(first_epoch)) == list(range(80))
    assert {share[-1][1] for share in shares} == {Place(1, num_batches)}


@pytest.mark.parametrize("sampling", [0.0, 0.3])
def test_resuming_continues_with_the_next_batch(sampling: float) -> None:
    num_batches = len(epoch_of(stream()))
    for num_consumed in (0, 1, num_batches // 2, num_batches - 1, num_batches, num_batches + 3):
        with BatchLoader(stream(sampling=sampling)) as loader:
            for _ in range(num_consumed):
                next(loader)
            state = json.loads(json.dumps(loader.state_dict()))
            expected = [(b.indices.tolist(), b.source.tolist(), b.target_out.tolist()) for b in islice(loader, 12)]
        with BatchLoader(stream(sampling=sampling)) as resumed:
            resumed.load_state_dict(state)
            found = [(b.indices.tolist(), b.source.tolist(), b.target_out.tolist()) for b in islice(resumed, 12)]
        assert found == expected


def test_resuming_with_another_buffer_is_refused() -> None:
    state = BatchLoader(stream()).state_dict()
    with pytest.raises(UserError, match="shuffle_buffer 80 → 90"):
        BatchLoader(stream(shuffle_buffer=90)).load_state_dict(state)


def test_epochs_are_counted() -> None:
    with BatchLoader(stream()) as loader:
        for _ in range(len(epoch_of(stream())) - 1):
            next(loader)
        assert loader.epoch == 0
        next(loader)
        assert loader.state_dict()["place"] == {"epoch": 1, "position": 0, "block": 0}


def test_long_pairs_are_left_out_by_their_plain_length() -> None:
    limit = 8
    expected = [
        row
        for row, (source, target) in enumerate(PAIRS)
        if len(numbered_tokenizer().encode_source([source])[0]) - 1 <= limit
        and len(numbered_tokenizer().encode_target([target])[0]) <= limit
    ]
    assert 0 < len(expected) < len(PAIRS)
    for sampling in (0.0, 0.5):
        assert sorted(numbers_of(epoch_of(stream(max_pieces=limit, sampling=sampling)))) == expected


def test_sampling_is_new_in_each_epoch_and_keeps_the_budget() -> None:
    found = []
    for epoch in range(2):
        rows = {}
        for batch in epoch_of(stream(sampling=0.3), epoch):
            assert len(batch) == 1 or len(batch) * batch.target_out.shape[1] <= 150
            for row, target in zip(batch.indices.tolist(), batch.target_out, strict=True):
                rows[row] = target.tolist()
        texts = numbered_tokenizer().decode_target([rows[row] for row in range(len(PAIRS))])
        assert texts == [text for _, text in PAIRS]
        found.append([[i for i in rows[row] if i != PAD] for row in range(len(PAIRS))])
    assert found[0] != found[1]


def test_a_stream_without_a_usable_pair_is_refused_instead_of_read_forever() -> None:
    with pytest.raises(UserError, match=r"data\.max_pieces=1"):
        next(stream(max_pieces=1).batches(Place()))
    with pytest.raises(UserError, match="too few pairs for 4 processes"):
        next(stream(PAIRS[:3], num_ranks=4).batches(Place()))
