"""Tags and directions: what the batches contain, decoded back to text, and what never becomes a tag."""

from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from support.corpora import ANIMAL_PAIRS, KINDS, MADE_UP_PAIRS, ListCorpus
from translator.data.batching import Batch, BatchSampler
from translator.data.cleaning import Cleaning, clean
from translator.data.corpus import Splits
from translator.data.examples import Reading, ReadTable, language_tag, read_in_ways, tag_piece
from translator.data.loader import BatchLoader, BatchSource, CorpusBatches, Place, ordered_batches
from translator.data.streaming import StreamedBatches
from translator.data.tokenize_corpus import tokenize_corpus
from translator.data.tokenized_corpus import TokenizedCorpus
from translator.data.tokenizer import Tokenizer
from translator.ids import EOS, NUM_SPECIAL, PAD

TAGS = ("<2de>", "<2en>", "<bt>")


@cache
def tokenizer(kind: str = "bpe") -> Tokenizer:
    return Tokenizer.train(ANIMAL_PAIRS, kind=kind, vocab_size=KINDS[kind], tags=TAGS)


def ways(tokenizer: Tokenizer) -> list[list[Reading]]:
    german, english, _ = tokenizer.tag_ids.values()
    return [[Reading((german,))], [Reading((english,), is_reversed=True)]]


@pytest.fixture
def table(tmp_path: Path) -> TokenizedCorpus:
    return tokenize_corpus(ListCorpus(ANIMAL_PAIRS), tokenizer(), cache_dir=tmp_path, num_processes=1)


def examples_of(batches: Iterable[Batch], of: Tokenizer | None = None) -> Counter[tuple[str, str, str]]:
    """Every example as (tag, source, target), decoded."""
    of = of or tokenizer()
    found: Counter[tuple[str, str, str]] = Counter()
    for batch in batches:
        for source, target in zip(batch.source.tolist(), batch.target_out.tolist(), strict=True):
            tag, *pieces = [piece for piece in source if piece != PAD]
            assert pieces[-1] == EOS
            texts = of.decode_target([pieces, [piece for piece in target if piece != PAD]])
            found[of.source_pieces([tag])[0], texts[0], texts[1]] += 1
    return found


def expected() -> Counter[tuple[str, str, str]]:
    return Counter([("<2de>", s, t) for s, t in ANIMAL_PAIRS] + [("<2en>", t, s) for s, t in ANIMAL_PAIRS])


def epoch_of(source: BatchSource, epoch: int = 0) -> list[Batch]:
    batches = []
    for batch, place in source.batches(Place(epoch)):
        batches.append(batch)
        if place.epoch > epoch:
            break
    return batches


def from_table(table: TokenizedCorpus, sampling: float = 0.0, weight: float = 1.0) -> CorpusBatches:
    both = read_in_ways([table], ways(tokenizer()))
    parts = [(len(table), weight)] * 2
    sampler = BatchSampler(both.source_lengths, both.target_lengths, batch_tokens=120, seed=1, parts=parts)
    return CorpusBatches(both, sampler, tokenizer=tokenizer(), sampling=sampling)


def from_stream(sampling: float = 0.0, **options: int) -> StreamedBatches:
    readings = [way[0] for way in ways(tokenizer())]
    arguments = {"batch_tokens": 120, "seed": 1, "shuffle_buffer": 20, **options}
    return StreamedBatches(ANIMAL_PAIRS, tokenizer(), sampling=sampling, readings=readings, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
def test_no_text_becomes_a_tag_and_no_tag_becomes_text(kind: str) -> None:
    own = tokenizer(kind)
    assert list(own.tag_ids) == list(TAGS)
    assert list(own.tag_ids.values()) == [NUM_SPECIAL, NUM_SPECIAL + 1, NUM_SPECIAL + 2]
    for text in ("<2de>", "x<2de> dog", "<2en><bt>", " <2de> the dog", "<2de", "2de>"):
        (ids,) = own.encode_target([text])
        assert not set(ids) & set(own.tag_ids.values())
        assert own.decode_target([[4, *ids, 5]]) == [text]
        assert own.encode_source([text]) == [[*ids, EOS]]


def test_training_text_that_contains_a_tag_trains_an_ordinary_tokenizer() -> None:
    pairs = [(f"x<2de> {source}", f"<2de> {target}<2de>") for source, target in ANIMAL_PAIRS]
    own = Tokenizer.train(pairs, vocab_size=400, tags=TAGS)
    assert not any(set(row) & set(own.tag_ids.values()) for row in own.encode_source([s for s, _ in pairs]))
    assert own.decode_target(own.encode_target([t for _, t in pairs])) == [t for _, t in pairs]


def test_without_tags_the_tokenizer_is_unchanged(tmp_path: Path) -> None:
    plain = Tokenizer.train(ANIMAL_PAIRS, vocab_size=400)
    assert plain.tag_ids == {}
    tokenizer().save(tmp_path)
    assert Tokenizer.load(tmp_path).tag_ids == tokenizer().tag_ids
    assert plain.fingerprint == Tokenizer.train(ANIMAL_PAIRS, vocab_size=400, tags=()).fingerprint


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_resegmentation_leaves_tags_alone(kind: str) -> None:
    own = Tokenizer.train(MADE_UP_PAIRS, kind=kind, vocab_size=400, tags=TAGS)
    texts = [source for source, _ in MADE_UP_PAIRS[:50]]
    rows = [[5, *row] for row in own.encode_source(texts)]
    sampled = own.resample_source(rows, 0.4, [str(number) for number in range(len(rows))])
    assert sampled != rows
    assert all(row[0] == 5 and row.count(5) == 1 for row in sampled)
    assert own.decode_target(sampled) == texts


@pytest.mark.parametrize("sampling", [0.0, 0.3])
def test_an_epoch_has_every_pair_in_both_directions(table: TokenizedCorpus, sampling: float) -> None:
    for source in (from_table(table, sampling), from_stream(sampling)):
        batches = epoch_of(source)
        assert examples_of(batches) == expected()
        numbers = Counter(int(number) for batch in batches for number in batch.indices)
        assert numbers == Counter(dict.fromkeys(range(len(ANIMAL_PAIRS)), 2))
        tags = [int(batch.source[0, 0]) for batch in batches]
        assert tags not in (sorted(tags), sorted(tags, reverse=True))  # not one direction after the other


def test_weights_count_in_both_directions(table: TokenizedCorpus) -> None:
    assert examples_of(epoch_of(from_table(table, weight=2.0))) == expected() + expected()
    halves = examples_of([*epoch_of(from_table(table, weight=0.5)), *epoch_of(from_table(table, weight=0.5), epoch=1)])
    assert halves == expected()


def test_ranks_share_the_examples_of_a_stream() -> None:
    shares = [epoch_of(from_stream(rank=rank, num_ranks=2)) for rank in range(2)]
    assert len(shares[0]) == len(shares[1])
    assert examples_of([batch for share in shares for batch in share]) == expected()


@pytest.mark.parametrize("streamed", [False, True])
def test_resuming_continues_with_the_same_batches(table: TokenizedCorpus, streamed: bool) -> None:
    def make() -> BatchSource:
        return from_stream(0.2) if streamed else from_table(table, 0.2)

    with BatchLoader(make()) as loader:
        for _ in range(5):
            next(loader)
        state = loader.state_dict()
        following = [next(loader) for _ in range(12)]
    with BatchLoader(make()) as resumed:
        resumed.load_state_dict(state)
        for batch in following:
            other = next(resumed)
            assert batch.source.equal(other.source)
            assert batch.target_out.equal(other.target_out)


def test_lengths_are_those_of_the_rows(table: TokenizedCorpus) -> None:
    both = read_in_ways([table, table], [way * 2 for way in ways(tokenizer())])
    indices = np.random.default_rng(1).permutation(len(both))
    sources, targets = both.rows(indices)
    assert both.source_lengths[indices].tolist() == [len(row) for row in sources]
    assert both.target_lengths[indices].tolist() == [len(row) + 1 for row in targets]
    assert both.source_lengths.sum() == sum(map(len, sources))
    assert both.pair_numbers(np.array([0, 2 * len(table) + 1])).tolist() == [0, 1]
    assert {row.dtype for row in sources + targets} == {np.dtype(np.int32)}


def test_held_out_rows_in_either_direction(table: TokenizedCorpus) -> None:
    reversed_table = ReadTable(table, ways(tokenizer())[1][0])
    batches = ordered_batches(reversed_table, 200)
    assert examples_of(batches) == Counter(("<2en>", t, s) for s, t in ANIMAL_PAIRS)
    assert sorted(int(row) for batch in batches for row in batch.indices) == list(range(len(table)))


def test_leaks_and_duplicates_are_found_in_both_directions() -> None:
    train = [("a dog", "ein Hund"), ("ein Hund", "a dog"), ("eine Katze", "a cat"), ("two", "zwei"), ("ten", "a cat")]
    valid = [("a cat", "eine Katze")]

    def kept(two_way: bool) -> tuple[list[tuple[str, str]], int, int]:
        splits = Splits([(ListCorpus(train), 1.0)], ListCorpus(valid, "b"), None)
        corpus = clean(splits, Cleaning(), two_way=two_way).train[0][0]
        pairs = list(corpus)
        (overlap,) = corpus.report.overlaps
        return pairs, overlap.num_pairs_in_training, overlap.num_sources_in_training

    assert kept(False) == (train, 0, 0)
    assert kept(True) == ([train[0], train[3], train[4]], 1, 1)


def test_names() -> None:
    assert tag_piece(language_tag("de")) == "<2de>"
