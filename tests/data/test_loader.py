"""The loader: batches equal to the sampler's, exact resumption, and clean thread shutdown."""

import gc
import gzip
import json
import threading
import time
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from support import warm_python
from support.corpora import NUMBERED_PAIRS as PAIRS
from support.corpora import ListCorpus, numbered_tokenizer
from support.numbered_batches import Numbers
from translator.data import batching, blocks
from translator.data import loader as loader_module
from translator.data.batching import Batch, BatchSampler
from translator.data.loader import BatchLoader, CorpusBatches, Place, fitted_batch_tokens, ordered_batches
from translator.data.tokenize_corpus import tokenize_corpus
from translator.data.tokenized_corpus import TokenizedCorpus
from translator.data.tokenizer import Tokenizer
from translator.errors import UserError
from translator.ids import EOS, PAD


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> TokenizedCorpus:
    return tokenize_corpus(
        ListCorpus(PAIRS), numbered_tokenizer(), cache_dir=tmp_path_factory.mktemp("cache"), num_processes=1
    )


def batches_of(
    table: TokenizedCorpus, *, sampling: float = 0.0, seed: int = 1, batch_tokens: int = 200
) -> CorpusBatches:
    sampler = BatchSampler(table.source_lengths, table.target_lengths, batch_tokens=batch_tokens, seed=seed)
    return CorpusBatches(table, sampler, tokenizer=numbered_tokenizer(), sampling=sampling)


def content(batch: Batch) -> tuple[list[Any], ...]:
    tensors = (batch.source, batch.source_mask, batch.target_in, batch.target_out, batch.target_mask, batch.indices)
    return tuple(tensor.tolist() for tensor in tensors)


def prefetch_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "prefetch"]


def test_batches_are_those_of_the_sampler(table: TokenizedCorpus) -> None:
    source = batches_of(table)
    with BatchLoader(source) as loader:
        for epoch in range(3):
            for rows in source.sampler.epoch(epoch):
                assert loader.epoch == epoch
                batch = next(loader)
                assert batch.indices.tolist() == rows.tolist()
                for row, ids in zip(rows, batch.source, strict=True):
                    assert ids[ids != PAD].tolist() == numbered_tokenizer().encode_source([PAIRS[row][0]])[0]
                for row, ids in zip(rows, batch.target_out, strict=True):
                    assert ids[ids != PAD].tolist() == [*numbered_tokenizer().encode_target([PAIRS[row][1]])[0], EOS]
            assert loader.state_dict()["place"] == {"epoch": epoch + 1, "position": 0, "block": 0}


@pytest.mark.parametrize("sampling", [0.0, 0.3])
@pytest.mark.parametrize(("num_epochs", "num_more"), [(0, 0), (0, 1), (0, 7), (1, 0), (2, 5)])
def test_resuming_continues_with_the_next_batch(
    table: TokenizedCorpus, sampling: float, num_epochs: int, num_more: int
) -> None:
    length = len(batches_of(table).sampler.epoch(0))
    num_consumed = num_epochs * length + num_more
    with BatchLoader(batches_of(table, sampling=sampling)) as loader:
        for _ in range(num_consumed):
            next(loader)
        time.sleep(0.05)  # let the thread run ahead
        state = json.loads(json.dumps(loader.state_dict()))
        expected = [content(batch) for batch in islice(loader, length)]
    with BatchLoader(batches_of(table, sampling=sampling)) as resumed:
        next(resumed)  # resuming must also work on a loader in use
        resumed.load_state_dict(state)
        assert resumed.state_dict() == state
        assert [content(batch) for batch in islice(resumed, length)] == expected


@pytest.fixture
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "BLOCK_ROWS", 70)
    monkeypatch.setattr(batching, "BLOCK_BATCHES", 1)
    monkeypatch.setattr(blocks, "RUN_ROWS", 8)


@pytest.mark.usefixtures("_small_blocks")
@pytest.mark.parametrize("sampling", [0.0, 0.3])
def test_every_place_of_an_epoch_in_blocks_can_be_resumed(
    table: TokenizedCorpus, sampling: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loader_module, "WINDOW", 3)
    source = batches_of(table, sampling=sampling)
    num_batches = len(source.sampler.epoch(0))
    assert source.sampler.num_blocks == 5
    expected = list(islice(source.batches(Place()), num_batches + 4))
    assert [place.epoch for _, place in expected] == [0] * (num_batches - 1) + [1] * 5
    assert sorted(torch.cat([batch.indices for batch, _ in expected[:num_batches]]).tolist()) == list(range(len(PAIRS)))
    for number in range(num_batches):
        batch, place = next(batches_of(table, sampling=sampling).batches(expected[number][1]))
        assert content(batch) == content(expected[number + 1][0])
        assert place == expected[number + 1][1]
    assert source.batches_per_epoch == pytest.approx(num_batches, rel=0.2)


@pytest.mark.usefixtures("_small_blocks")
def test_a_place_from_another_block_size_is_refused(table: TokenizedCorpus, monkeypatch: pytest.MonkeyPatch) -> None:
    state = BatchLoader(batches_of(table)).state_dict()
    monkeypatch.setattr(batching, "BLOCK_ROWS", 80)
    with pytest.raises(UserError, match="block_rows 70 → 80"):
        BatchLoader(batches_of(table)).load_state_dict(state)


def test_a_place_from_other_batches_is_refused(table: TokenizedCorpus) -> None:
    state = BatchLoader(batches_of(table)).state_dict()
    with pytest.raises(UserError, match="batch_tokens 200 → 300"):
        BatchLoader(batches_of(table, batch_tokens=300)).load_state_dict(state)
    with pytest.raises(UserError, match=r"seed 1 → 2, sampling 0\.0 → 0\.1"):
        BatchLoader(batches_of(table, seed=2, sampling=0.1)).load_state_dict(state)


def test_sampling_splits_the_same_text_differently_in_each_epoch(table: TokenizedCorpus) -> None:
    source = batches_of(table, sampling=0.3)
    seen: list[dict[int, list[int]]] = []
    with BatchLoader(source) as loader:
        for epoch in range(2):
            rows: dict[int, list[int]] = {}
            while loader.epoch == epoch:
                batch = next(loader)
                for row, ids, out in zip(batch.indices.tolist(), batch.source, batch.target_out, strict=True):
                    rows[row] = out[out != PAD].tolist()
                    assert ids[ids != PAD][-1] == EOS
            texts = numbered_tokenizer().decode_target([rows[row] for row in range(len(PAIRS))])
            assert texts == [text for _, text in PAIRS]
            seen.append(rows)
    assert sum(seen[0][row] != seen[1][row] for row in seen[0]) > 0.5 * len(PAIRS)
    with BatchLoader(batches_of(table, sampling=0.3)) as again:
        again.load_state_dict({"place": {"epoch": 1}, "description": source.description})
        batch = next(again)
        for row, out in zip(batch.indices.tolist(), batch.target_out, strict=True):
            assert out[out != PAD].tolist() == seen[1][row]


@pytest.mark.parametrize("num_ranks", [1, 2])
def test_sampled_epochs_hold_every_row_once_in_as_many_batches(
    table: TokenizedCorpus, num_ranks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loader_module, "WINDOW", 8)
    rows: list[int] = []
    for rank in range(num_ranks):
        sampler = BatchSampler(
            table.source_lengths, table.target_lengths, batch_tokens=30, seed=1, rank=rank, num_ranks=num_ranks
        )
        source = CorpusBatches(table, sampler, tokenizer=numbered_tokenizer(), sampling=0.3)
        assert source.batches_per_epoch == len(sampler.epoch(0)) > loader_module.WINDOW
        epoch = [batch for batch, place in islice(source.batches(Place()), source.batches_per_epoch)]
        rows += torch.cat([batch.indices for batch in epoch]).tolist()
    assert sorted(rows) == list(range(len(PAIRS)))


def test_sampled_batches_are_packed_by_their_new_lengths(tmp_path: Path) -> None:
    table = tokenize_corpus(ListCorpus(PAIRS * 10), numbered_tokenizer(), cache_dir=tmp_path, num_processes=1)
    fitted = fitted_batch_tokens(table, numbered_tokenizer(), 0.3, 1_000)
    source = batches_of(table, sampling=0.3, batch_tokens=fitted)
    epoch = [batch for batch, place in islice(source.batches(Place()), source.batches_per_epoch)]
    lengths = np.zeros((len(table), 2), dtype=np.int64)
    for batch in epoch:
        lengths[batch.indices] = torch.stack([batch.source_mask.sum(dim=1), batch.target_mask.sum(dim=1)], dim=1)
    assert lengths[:, 1].sum() > 1.1 * table.target_lengths.sum()
    num_positions = sum(batch.source.numel() + batch.target_out.numel() for batch in epoch)
    # The sampler's batches are packed by the original lengths, so their new lengths are mixed and need more padding.
    num_before = sum(len(rows) * int(lengths[rows].max(axis=0).sum()) for rows in source.sampler.epoch(0))
    assert 1 - lengths.sum() / num_positions < 0.5 * (1 - lengths.sum() / num_before)
    assert max(batch.target_out.numel() for batch in epoch) < 1.25 * 1_000


def test_the_budget_is_fitted_to_sampling(table: TokenizedCorpus) -> None:
    assert fitted_batch_tokens(table, numbered_tokenizer(), 0.0, 500) == 500
    fitted = fitted_batch_tokens(table, numbered_tokenizer(), 0.3, 500)
    plain = int(table.target_lengths.sum())
    with BatchLoader(batches_of(table, sampling=0.3)) as loader:
        sampled = sum(next(loader).num_target_tokens for _ in range(len(batches_of(table).sampler.epoch(0))))
    assert fitted / 500 == pytest.approx(plain / sampled, rel=0.05)


def test_validation_batches_hold_every_row_once_longest_first(table: TokenizedCorpus) -> None:
    batches = ordered_batches(table, 200)
    assert sorted(torch.cat([batch.indices for batch in batches]).tolist()) == list(range(len(PAIRS)))
    widths = [batch.target_out.shape[1] for batch in batches]
    assert widths == sorted(widths, reverse=True)
    again = ordered_batches(table, 200)
    assert [content(batch) for batch in again] == [content(batch) for batch in batches]


def test_rows_too_long_for_validation_are_truncated_and_nothing_else_changes(table: TokenizedCorpus) -> None:
    longest = int(np.median(table.target_lengths[np.arange(len(table))]))
    whole = {
        int(index): (source[mask].tolist(), target[target_mask].tolist())
        for batch in ordered_batches(table, 200)
        for index, source, mask, target, target_mask in zip(
            batch.indices, batch.source, batch.source_mask, batch.target_out, batch.target_mask, strict=True
        )
    }
    num_shortened = 0
    for batch in ordered_batches(table, 200, longest):
        assert max(batch.source.shape[1], batch.target_out.shape[1]) <= longest + 1
        for row, index in enumerate(batch.indices.tolist()):
            source, target = whole[index]
            for kept, full in (
                (batch.source[row][batch.source_mask[row]].tolist(), source),
                (batch.target_out[row][batch.target_mask[row]].tolist(), target),
            ):
                assert kept == [*full[:-1][:longest], EOS]
                num_shortened += kept != full
    assert num_shortened > 0
    unlimited = [content(batch) for batch in ordered_batches(table, 200, 10_000)]
    assert unlimited == [content(batch) for batch in ordered_batches(table, 200)]


# Threads


def test_an_exception_in_the_thread_is_raised_in_order() -> None:
    loader = BatchLoader(Numbers(fails_at=5))
    assert [next(loader).indices.item() for _ in range(5)] == [10, 11, 12, 13, 14]
    for _ in range(2):  # asking again fails again and does not hang
        with pytest.raises(UserError, match="row 5 is damaged"):
            next(loader)
    assert loader.state_dict()["place"]["position"] == 5
    assert prefetch_threads() == []


def test_prefetching_is_bounded() -> None:
    source = Numbers()
    with BatchLoader(source, num_ahead=4) as loader:
        next(loader)
        deadline = time.monotonic() + 10
        while source.num_made < 5 and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.05)
        assert 5 <= source.num_made <= 6  # one returned, four queued, one being made
        assert loader.state_dict()["place"]["position"] == 1


def test_closing_ends_the_thread_and_the_loader_can_continue() -> None:
    loader = BatchLoader(Numbers())
    assert [next(loader).indices.item() for _ in range(3)] == [10, 11, 12]
    assert len(prefetch_threads()) == 1
    loader.close()
    loader.close()
    assert prefetch_threads() == []
    assert next(loader).indices.item() == 13
    loader.close()


def test_a_forgotten_loader_ends_its_thread() -> None:
    loader = BatchLoader(Numbers())
    next(loader)
    del loader
    gc.collect()
    assert prefetch_threads() == []


@pytest.mark.parametrize("ending", ["", "raise SystemExit(3)", "raise RuntimeError('boom')"])
def test_the_interpreter_ends_while_a_loader_is_running(ending: str) -> None:
    script = f"""
from support.numbered_batches import Numbers
from translator.data.loader import BatchLoader
loader = BatchLoader(Numbers())
print(next(loader).indices.item(), flush=True)
{ending}
"""
    result = warm_python.run(script)
    assert result.stdout == "10\n"
    assert result.returncode == {"": 0, "raise SystemExit(3)": 3}.get(ending, 1)
    assert ("boom" in result.stderr) if "boom" in ending else (result.stderr == "")


def test_padding_on_multi30k_is_below_three_percent(multi30k: Path, tmp_path: Path) -> None:
    sides = []
    for language in ("en", "de"):
        with gzip.open(multi30k / f"train.{language}.gz", "rt", encoding="utf-8") as file:
            sides.append(file.read().splitlines())
    pairs = list(zip(*sides, strict=True))
    tokenizer = Tokenizer.train(pairs, vocab_size=8_000)
    table = tokenize_corpus(ListCorpus(pairs), tokenizer, cache_dir=tmp_path)
    sampler = BatchSampler(table.source_lengths, table.target_lengths, batch_tokens=4_096, seed=1)
    with BatchLoader(CorpusBatches(table, sampler)) as loader:
        for epoch in range(2):
            num_tokens = num_positions = num_batches = 0
            while loader.epoch == epoch:
                batch = next(loader)
                num_tokens += batch.num_source_tokens + batch.num_target_tokens
                num_positions += batch.source.numel() + batch.target_out.numel()
                num_batches += 1
            assert 1 - num_tokens / num_positions < 0.03
            assert int(table.target_lengths.sum()) / num_batches > 3_400
