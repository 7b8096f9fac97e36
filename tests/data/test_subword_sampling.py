"""Both sampling methods at the extremes, where the result is known: single characters, or the best split."""

import pytest
from sentencepiece import SentencePieceProcessor

from support.corpora import ANIMAL_PAIRS, animal_tokenizer
from translator.data.bpe_dropout import BpeDropout
from translator.data.subword_sampling import SubwordSampler, UnigramSampling
from translator.ids import EOS, PAD

TEXTS = [target for _, target in ANIMAL_PAIRS]
SEEDS = [str(row) for row in range(len(TEXTS))]
METHODS = {"bpe": BpeDropout, "unigram": UnigramSampling}


def processor_of(kind: str) -> SentencePieceProcessor:
    return animal_tokenizer(kind)._target


def test_dropping_every_merge_leaves_characters() -> None:
    processor = processor_of("bpe")
    rows = BpeDropout(processor, 1 - 1e-12).sample_rows(processor.encode(TEXTS), SEEDS)
    for text, row in zip(TEXTS, rows, strict=True):
        assert [processor.id_to_piece(i) for i in row] == list("▁" + text.replace(" ", "▁"))


def test_a_large_exponent_leaves_the_most_probable_split() -> None:
    processor = processor_of("unigram")
    rows = processor.encode(TEXTS)
    samples = UnigramSampling(processor, 1_000.0).sample_rows([list(row) for row in rows], SEEDS)
    for row, sample in zip(rows, samples, strict=True):  # two splits may be equally probable
        scores = [sum(processor.get_score(i) for i in ids) for ids in (row, sample)]
        assert scores[1] == pytest.approx(scores[0], abs=0.05)


@pytest.mark.parametrize("kind", list(METHODS))
def test_bytes_and_special_ids_stay_where_they_are(kind: str) -> None:
    processor = processor_of(kind)
    sampler: SubwordSampler = METHODS[kind](processor, 0.5)
    (word,) = processor.encode(["Häuser"])
    unknown = [i for i in processor.encode("犬") if processor.is_byte(i)]
    assert len(unknown) == 3
    for seed in SEEDS:
        (sampled,) = sampler.sample_rows([[*word, *unknown, PAD, *word, EOS]], [seed])
        assert [i for i in sampled if sampler.is_fixed[i]] == [*unknown, PAD, EOS]
        assert processor.decode([i for i in sampled if not sampler.is_fixed[i]]) == "Häuser Häuser"
