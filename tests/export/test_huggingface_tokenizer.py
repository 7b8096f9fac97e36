"""Hugging Face's tokenizer gives the same ids as ours, and the same text back."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from support.corpora import ANIMAL_PAIRS
from translator.data.normalization import normalize_text
from translator.data.tokenizer import Tokenizer
from translator.export.huggingface_tokenizer import TARGET_TOKENIZER, fast_tokenizer, save_tokenizers

TRICKY = [
    *("", " ", "a", "  a  b ", "\t", "tab\there", "ab\ncd\r\n", "A\u2028B\x00C", "\x85\x1c\x1d"),
    *("Ünïcödé ß", "e\u0301te\u0301", "\ufeffHello\u00adWorld", "\u00a0no\u2003break\u3000", "\u200bzero\u200d"),
    *("日本語 テスト", "😀👍🏽 emoji", "٣٤ عربي", "क्षि", "HELLO hello HeLLo", "1234567890,5 %", "...!!!??"),
    *("</s> <s> <pad> <unk> <0x41>", "<0x0A>", "▁x▁ y", "the▁house", "aaaaaaa babababa ababab", "x" * 300),
]


@pytest.fixture(scope="module", params=["bpe", "unigram", "char"])
def both(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Tokenizer, PreTrainedTokenizerFast]:
    ours = Tokenizer.train(ANIMAL_PAIRS, kind=request.param, vocab_size=400)
    folder = tmp_path_factory.mktemp("tokenizer")
    save_tokenizers(ours, folder, normalize=True, max_length=512)
    return ours, AutoTokenizer.from_pretrained(folder, trust_remote_code=False)


def check(both: tuple[Tokenizer, PreTrainedTokenizerFast], text: str) -> None:
    ours, theirs = both
    (expected,) = ours.encode_source([normalize_text(text)])
    assert theirs(text)["input_ids"] == expected
    assert theirs.decode(expected, skip_special_tokens=True) == ours.decode_target([expected])[0]


def test_tricky_texts(both: tuple[Tokenizer, PreTrainedTokenizerFast]) -> None:
    for text in [*TRICKY, *(text for pair in ANIMAL_PAIRS[:50] for text in pair)]:
        check(both, text)


@settings(max_examples=150, deadline=None)
@given(
    text=st.text(
        st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from("thesmalhou äß<>/0x▁ ")), max_size=30
    )
)
def test_any_text(both: tuple[Tokenizer, PreTrainedTokenizerFast], text: str) -> None:
    check(both, text)


def test_batches_are_padded_and_masked(both: tuple[Tokenizer, PreTrainedTokenizerFast]) -> None:
    ours, theirs = both
    batch = theirs(["the house", ""], padding=True)
    (expected,) = ours.encode_source(["the house"])
    assert batch["input_ids"] == [expected, [3] + [0] * (len(expected) - 1)]
    assert batch["attention_mask"] == [[1] * len(expected), [1] + [0] * (len(expected) - 1)]


def test_without_normalisation_and_byte_fallback() -> None:
    ours = Tokenizer.train(ANIMAL_PAIRS, vocab_size=120, byte_fallback=False)
    theirs = fast_tokenizer("bpe", ours.source_model, normalize=False, max_length=512)
    for text in ("the  house ", " small", "the ☃☃ house", "e\u0301"):
        assert theirs(text)["input_ids"] == ours.encode_source([text])[0]


def test_two_vocabularies_are_two_tokenizers(tmp_path: Path) -> None:
    ours = Tokenizer.train(ANIMAL_PAIRS, vocab_size=350, joint=False)
    save_tokenizers(ours, tmp_path, normalize=True, max_length=512)
    source, target = AutoTokenizer.from_pretrained(tmp_path), AutoTokenizer.from_pretrained(tmp_path / TARGET_TOKENIZER)
    for english, german in ANIMAL_PAIRS[:5]:
        assert source(english)["input_ids"] == ours.encode_source([english])[0]
        assert target(german)["input_ids"][:-1] == ours.encode_target([german])[0]
