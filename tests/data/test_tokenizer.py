"""Tokenizers: special ids, round-trips, vocabulary limits, caching, and sampling against independent oracles."""

import json
import logging
import random
import subprocess
import sys
from collections import Counter
from dataclasses import fields
from itertools import pairwise
from math import exp
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
from hypothesis import example, given, settings
from hypothesis import strategies as st

from support.corpora import ANIMAL_PAIRS as PAIRS
from support.corpora import KINDS, animal_tokenizer, made_up_tokenizer, sample_target
from support.processes import environment
from translator.data import tokenizer as tokenizer_module
from translator.data.tokenizer import MANY_TEXTS, WORD_START, Tokenizer, TokenizerOptions, train_or_load_tokenizer
from translator.errors import UserError
from translator.ids import BOS, EOS, NUM_SPECIAL, PAD, UNK
from translator.schema.data import TokenizerConfig
from translator.schema.options import declaration

# All Unicode text, that is, everything but lone surrogates.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@pytest.fixture(params=list(KINDS))
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return animal_tokenizer(request.param)


def test_special_ids_are_those_of_translator_ids(tokenizer: Tokenizer) -> None:
    assert tokenizer.target_pieces([PAD, UNK, BOS, EOS]) == ["<pad>", "<unk>", "<s>", "</s>"]


def test_sources_end_with_eos_and_targets_are_bare(tokenizer: Tokenizer) -> None:
    (source,), (target,) = tokenizer.encode_source(["the dog"]), tokenizer.encode_target(["the dog"])
    assert source == [*target, EOS]
    assert all(i >= NUM_SPECIAL for i in target)
    assert "".join(tokenizer.source_pieces(source)) == "▁the▁dog</s>"


@pytest.mark.parametrize("kind", list(KINDS))
@settings(max_examples=300, deadline=None)
@given(text=TEXTS)
@example(text="")
@example(text=" ")
@example(text="  leading, double  and trailing  ")
@example(text="tab\tnewline\nreturn\r\nnull\0end")
@example(text="👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 ❤️ 🇩🇪")
@example(text="语言模型翻译：“你好”，世界！　全角")
@example(text="مرحبا بالعالم‏ שָׁלוֹם")
@example(text="e\u0301 a\u0308\u0323 नमस्ते ที่นี่ 한국어 한국어")
@example(text="▁ SentencePiece's ▁▁own mark▁")
@example(text="<pad> <unk> <s> </s> <0x41> <0xE2><0x96><0x81>")
@example(text="\ufeff\u200b\u00ad\u2028\u2029\ufdd0▁\ufffd\U0010ffff")
def test_text_round_trip(kind: str, text: str) -> None:
    tokenizer = animal_tokenizer(kind)
    (ids,) = tokenizer.encode_target([text])
    assert UNK not in ids
    assert tokenizer.decode_target([ids]) == [text]


@settings(max_examples=200, deadline=None)
@given(text=TEXTS, seed=st.integers(), sampling=st.sampled_from([0.05, 0.5, 0.95]))
@example(text="▁", seed=0, sampling=0.5)
@example(text="the the  the ñandú dogs", seed=1, sampling=0.5)
def test_sampled_text_round_trip(text: str, seed: int, sampling: float) -> None:
    for kind in ("bpe", "unigram"):
        tokenizer = animal_tokenizer(kind)
        ids = sample_target(tokenizer, [text], sampling, [str(seed)])
        assert tokenizer.decode_target(ids) == [text]


def test_decoding_skips_special_ids(tokenizer: Tokenizer) -> None:
    (ids,) = tokenizer.encode_target(["the dog"])
    assert tokenizer.decode_target([[BOS, *ids, EOS, PAD, PAD], [], [UNK]]) == ["the dog", "", ""]


def test_without_byte_fallback_unknown_characters_are_unk() -> None:
    tokenizer = Tokenizer.train(PAIRS, kind="bpe", vocab_size=100, byte_fallback=False)
    (ids,) = tokenizer.encode_target(["the 犬 dog ▁"])
    assert ids.count(UNK) == 1
    assert tokenizer.decode_target([ids]) == ["the  dog  "]
    (sampled,) = sample_target(tokenizer, ["the 犬 dog ▁"], 0.5, ["x"])
    assert sampled.count(UNK) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_the_smallest_coverage_that_is_accepted_can_be_trained_with(kind: str) -> None:
    (smallest,) = (declaration(one).minimum for one in fields(TokenizerConfig) if one.name == "character_coverage")
    tokenizer = Tokenizer.train(PAIRS, kind=kind, vocab_size=300, character_coverage=smallest)
    assert tokenizer.decode_target(tokenizer.encode_target([PAIRS[0][1]])) == [PAIRS[0][1]]


def test_separate_vocabularies_are_learnt_from_their_own_side() -> None:
    tokenizer = Tokenizer.train(PAIRS, kind="unigram", vocab_size=330, joint=False)
    source_characters = set("".join(tokenizer.source_pieces(range(260, tokenizer.source_vocab_size))))
    target_characters = set("".join(tokenizer.target_pieces(range(260, tokenizer.target_vocab_size))))
    assert not tokenizer.joint
    assert source_characters == set("".join(source for source, _ in PAIRS).replace(" ", "▁"))
    assert target_characters == set("".join(target for _, target in PAIRS).replace(" ", "▁"))


@pytest.mark.parametrize("byte_fallback", [True, False])
@pytest.mark.parametrize("kind", ["bpe", "unigram", "char"])
def test_a_vocabulary_too_small_is_refused_with_the_least_that_works(kind: str, byte_fallback: bool) -> None:
    num_characters = len(set("".join(source + target for source, target in PAIRS)))
    least = NUM_SPECIAL + (256 if byte_fallback else 0) + num_characters
    if kind == "char" and byte_fallback:  # all other characters become bytes
        small = Tokenizer.train(PAIRS, kind=kind, vocab_size=least - 1)
        assert small.source_vocab_size == least - 1
        return
    with pytest.raises(UserError, match=rf"tokenizer.vocab_size={least - 1}: .* use at least {least},"):
        Tokenizer.train(PAIRS, kind=kind, vocab_size=least - 1, byte_fallback=byte_fallback)
    tokenizer = Tokenizer.train(PAIRS, kind=kind, vocab_size=least, byte_fallback=byte_fallback)
    assert tokenizer.source_vocab_size == least


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_vocabulary_larger_than_the_text_yields_shrinks_with_a_warning(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        tokenizer = Tokenizer.train(PAIRS, kind=kind, vocab_size=50_000)
    assert NUM_SPECIAL + 256 < tokenizer.source_vocab_size < 5_000
    assert f"tokenizer.vocab_size=50000: the training text yields only {tokenizer.source_vocab_size}" in caplog.text


@pytest.mark.parametrize("pairs", [[], [("", "")], [("a", " ")]])
def test_an_empty_text_is_refused(pairs: list[tuple[str, str]]) -> None:
    with pytest.raises(UserError, match="no text is left"):
        Tokenizer.train(pairs, joint=False)


def test_training_is_silent_and_reproducible(capfd: pytest.CaptureFixture[str]) -> None:
    for kind, size in KINDS.items():
        again = Tokenizer.train(iter(PAIRS), kind=kind, vocab_size=size)
        assert again.fingerprint == animal_tokenizer(kind).fingerprint
    assert capfd.readouterr() == ("", "")


def test_a_large_corpus_is_subsampled_at_random(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer_module, "MAX_TRAINING_PAIRS", 10)
    numbered = [(str(i), str(i)) for i in range(1000)]
    chosen = tokenizer_module._choose(numbered, 10, seed=1)
    assert len(set(chosen)) == 10
    assert set(chosen) <= set(numbered)
    assert max(int(source) for source, _ in chosen) > 100
    assert chosen == tokenizer_module._choose(iter(numbered), 10, seed=1)
    assert chosen != tokenizer_module._choose(numbered, 10, seed=2)
    assert Tokenizer.train(numbered, vocab_size=300).decode_target([[]]) == [""]


@pytest.mark.parametrize("joint", [True, False])
def test_saved_tokenizers_are_the_same_and_plain_sentencepiece(tmp_path: Path, joint: bool) -> None:
    tokenizer = Tokenizer.train(PAIRS, kind="bpe", vocab_size=350, joint=joint)
    tokenizer.save(tmp_path / "folder")
    loaded = Tokenizer.load(tmp_path / "folder")
    assert (loaded.kind, loaded.joint, loaded.fingerprint) == ("bpe", joint, tokenizer.fingerprint)
    texts = [target for _, target in PAIRS]
    assert loaded.encode_target(texts) == tokenizer.encode_target(texts)
    name = "joint.model" if joint else "target.model"
    plain = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "folder" / name))
    assert plain.encode(texts) == tokenizer.encode_target(texts)


@pytest.fixture
def saved_tokenizer(tmp_path: Path) -> Path:
    animal_tokenizer("bpe").save(tmp_path)
    return tmp_path


def test_loading_something_that_is_not_a_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"tokenizer\.json: no such file"):
        Tokenizer.load(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(UserError, match=r"tokenizer\.json: damaged \('format' is missing\)"):
        Tokenizer.load(tmp_path)


def test_a_model_that_is_not_the_one_described_is_refused(saved_tokenizer: Path) -> None:
    model = saved_tokenizer / "joint.model"
    content = bytearray(model.read_bytes())
    content[len(content) // 2] ^= 1
    model.write_bytes(content)
    with pytest.raises(UserError, match=r"tokenizer\.json: damaged \(joint\.model .* fingerprint"):
        Tokenizer.load(saved_tokenizer)
    model.unlink()
    with pytest.raises(UserError, match=r"joint\.model: no such file"):
        Tokenizer.load(saved_tokenizer)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, r"newer version of translator \(format 2, this one knows 1\); update translator"),
        ({"format": "1"}, "damaged"),
        ({"kind": "unigram"}, "damaged"),
        ({"models": ["../joint.model"]}, "damaged"),
        ({"models": []}, "damaged"),
        ({"models": 5}, "damaged"),
        ({"fingerprint": None}, "damaged"),
    ],
)
def test_a_description_that_was_altered_is_refused(saved_tokenizer: Path, change: dict, message: str) -> None:
    path = saved_tokenizer / "tokenizer.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(UserError, match=rf"tokenizer\.json: .*{message}"):
        Tokenizer.load(saved_tokenizer)


def test_the_cache_trains_once_for_each_text_and_options(tmp_path: Path) -> None:
    readings = []

    def pairs() -> list[tuple[str, str]]:
        readings.append(1)
        return PAIRS

    class Counted:
        def __iter__(self) -> object:
            return iter(pairs())

    options = TokenizerOptions(vocab_size=350)
    first = train_or_load_tokenizer(tmp_path, "abc", options, Counted())  # type: ignore[arg-type]
    again = train_or_load_tokenizer(tmp_path, "abc", options, Counted())  # type: ignore[arg-type]
    assert (len(readings), first.fingerprint) == (1, again.fingerprint)
    train_or_load_tokenizer(tmp_path, "abd", options, PAIRS)
    train_or_load_tokenizer(tmp_path, "abc", TokenizerOptions(vocab_size=351), PAIRS)
    assert len(list(tmp_path.iterdir())) == 3


def test_failed_training_leaves_no_cache(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="vocab_size"):
        train_or_load_tokenizer(tmp_path, "abc", TokenizerOptions(vocab_size=261), PAIRS)
    assert list(tmp_path.iterdir()) == []


# Subword regularisation


def test_sampling_is_a_function_of_the_seed_alone() -> None:
    texts = [target for _, target in PAIRS]
    seeds = [f"7 0 {row}" for row in range(len(texts))]
    for kind, sampling in (("bpe", 0.3), ("unigram", 0.3)):
        tokenizer = animal_tokenizer(kind)
        rows = sample_target(tokenizer, texts, sampling, seeds)
        backwards = sample_target(tokenizer, texts[::-1], sampling, seeds[::-1])
        fresh = Tokenizer.train(PAIRS, kind=kind, vocab_size=KINDS[kind])
        assert rows == backwards[::-1] == sample_target(fresh, texts, sampling, seeds)
        other_epoch = sample_target(tokenizer, texts, sampling, [f"7 1 {row}" for row in range(len(texts))])
        assert rows != other_epoch
        assert rows == [sample_target(tokenizer, [t], sampling, [s])[0] for t, s in zip(texts, seeds, strict=True)]
        sources = tokenizer.resample_source(tokenizer.encode_source(texts), sampling, seeds)
        assert all(row[-1] == EOS for row in sources)
        assert [row[:-1] for row in sources] != rows  # each side has its own randomness


def test_sampling_is_the_same_in_another_process() -> None:
    texts = [target for _, target in PAIRS[:5]]
    expected = [sample_target(animal_tokenizer(kind), texts, 0.3, list("abcde")) for kind in ("bpe", "unigram")]
    script = (
        "from support.corpora import ANIMAL_PAIRS, animal_tokenizer, sample_target;"
        "print([sample_target(animal_tokenizer(k), [b for _, b in ANIMAL_PAIRS[:5]], 0.3, list('abcde'))"
        " for k in ('bpe', 'unigram')])"
    )
    result = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env=environment(PYTHONHASHSEED="123"),
    )
    assert result.stdout.strip() == str(expected)


def test_char_tokenizers_cannot_sample() -> None:
    with pytest.raises(ValueError, match="one way only"):
        sample_target(animal_tokenizer("char"), ["a"], 0.1, ["0"])


def test_negligible_dropout_is_plain_bpe() -> None:
    tokenizer = animal_tokenizer("bpe")
    texts = [text for pair in PAIRS for text in pair] + ["unseen Wörter 犬 and  spaces "]
    seeds = ["0"] * len(texts)
    assert sample_target(tokenizer, texts, 1e-15, seeds) == tokenizer.encode_target(texts)


def provilkov_algorithm_1(pieces: list[str], ranks: dict[str, float], dropout: float, rng: random.Random) -> list[str]:
    """BPE-dropout as in the paper: at each step drop candidate merges at random and apply the best one left."""
    pieces = list(pieces)
    while True:
        merges = [(i, left + right) for i, (left, right) in enumerate(pairwise(pieces)) if left + right in ranks]
        merges = [merge for merge in merges if rng.random() >= dropout]
        if not merges:
            return pieces
        position, piece = min(merges, key=lambda merge: (ranks[merge[1]], merge[0]))
        pieces[position : position + 2] = [piece]


def largest_difference(samples: list[str], probabilities: dict[str, float]) -> float:
    counts = Counter(samples)
    assert set(counts) <= set(probabilities)
    return max(abs(counts[split] / len(samples) - probability) for split, probability in probabilities.items())


@pytest.mark.parametrize("word", ["Häuser", "schwarze" * 4])  # short enough to be cached, and too long
def test_dropout_has_the_distribution_of_the_paper(word: str) -> None:
    tokenizer = animal_tokenizer("bpe")
    processor = tokenizer._target
    ranks = {processor.id_to_piece(i): -processor.get_score(i) for i in range(260, len(processor))}
    rng = random.Random(0)
    num_samples = 20_000 if len(word) < 10 else 2_000
    naive = Counter(len(provilkov_algorithm_1(list("▁" + word), ranks, 0.3, rng)) for _ in range(num_samples))
    rows = sample_target(tokenizer, [word] * num_samples, 0.3, [str(i) for i in range(num_samples)])
    ours = Counter(len(row) for row in rows)
    for length in naive | ours:
        assert abs(naive[length] - ours[length]) / num_samples < (0.02 if len(word) < 10 else 0.06)
    if len(word) < 10:
        splits = Counter(" ".join(provilkov_algorithm_1(list("▁" + word), ranks, 0.3, rng)) for _ in range(num_samples))
        samples = [" ".join(tokenizer.target_pieces(row)) for row in rows]
        assert (
            largest_difference([s for s in samples if s in splits], {s: c / num_samples for s, c in splits.items()})
            < 0.02
        )
        assert sum(s not in splits for s in samples) < 0.005 * num_samples


def test_the_words_of_a_sentence_are_split_independently() -> None:
    tokenizer = animal_tokenizer("bpe")
    (plain,) = tokenizer.encode_target(["Häuser"])
    num_samples = 20_000
    rows = sample_target(tokenizer, ["Häuser Häuser"] * num_samples, 0.1, [str(i) for i in range(num_samples)])
    first = np.mean([row[: len(plain)] == plain for row in rows])
    second = np.mean([row[-len(plain) :] == plain for row in rows])
    both = np.mean([row == plain * 2 for row in rows])
    assert 0.1 < both < 0.9
    assert first == pytest.approx(second, abs=0.02)
    assert both == pytest.approx(first * second, abs=0.02)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_blank_rows_are_sampled_too(kind: str) -> None:
    tokenizer = animal_tokenizer(kind)
    assert tokenizer.resample_target([], 0.3, []) == []
    assert tokenizer.resample_target([[], []], 0.3, ["a", "b"]) == [[], []]
    (word,) = tokenizer.encode_target(["Häuser"])
    between = tokenizer.resample_target([[], word, [], word, []], 0.3, list("abcde"))
    assert [between[i] for i in (0, 2, 4)] == [[], [], []]
    assert tokenizer.decode_target(between) == ["", "Häuser", "", "Häuser", ""]
    assert between[1] == tokenizer.resample_target([word], 0.3, ["b"])[0]


def all_splits(text: str, scores: dict[str, float]) -> dict[str, float]:
    """Every split of the text with its log-probability, by brute force."""
    if not text:
        return {"": 0.0}
    return {
        f"{text[:end]} {rest}".strip(): scores[text[:end]] + score
        for end in range(1, len(text) + 1)
        if text[:end] in scores
        for rest, score in all_splits(text[end:], scores).items()
    }


@pytest.mark.parametrize("alpha", [0.1, 0.5])
def test_unigram_sampling_has_the_distribution_of_the_paper(alpha: float) -> None:
    tokenizer = made_up_tokenizer()
    processor = tokenizer._target
    scores = {processor.id_to_piece(i): processor.get_score(i) for i in range(260, len(processor))}
    splits = all_splits("▁kantomir", scores)
    assert len(splits) > 5
    total = sum(exp(alpha * score) for score in splits.values())
    probabilities = {split: exp(alpha * score) / total for split, score in splits.items()}
    num_samples = 20_000
    rows = sample_target(tokenizer, ["kantomir"] * num_samples, alpha, [str(i) for i in range(num_samples)])
    samples = [" ".join(tokenizer.target_pieces(row)) for row in rows]
    assert largest_difference(samples, probabilities) < 0.015


def test_long_words_are_sampled_by_unigram_too() -> None:
    word = "kantomirseldenpasge" * 3
    rows = sample_target(made_up_tokenizer(), [word] * 20, 0.1, [str(i) for i in range(20)])
    assert len(set(map(tuple, rows))) > 10
    assert set(made_up_tokenizer().decode_target(rows)) == {word}


def test_threads_split_texts_as_one_does() -> None:
    tokenizer = made_up_tokenizer()
    texts = [f"{source} {WORD_START}{number}" for number, (source, _) in enumerate(PAIRS * 100)]
    alone = tokenizer.encode_source(texts), tokenizer.encode_target(texts)
    tokenizer.num_threads = 3
    assert (tokenizer.encode_source(texts), tokenizer.encode_target(texts)) == alone
    assert len(texts) > MANY_TEXTS
