"""Utilities of all pairs against sacrebleu's own scores, pair by pair."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF

from translator.evaluation.utilities import common, pairwise_utility

WORDS = st.sampled_from(
    ["der", "Hund", "läuft", "die", "Katze", "schläft", "a", "a", "b,", "(c)", ".", "im", "Schnee!"]
)
TEXTS = st.lists(st.one_of(st.lists(WORDS, max_size=9).map(" ".join), st.text(max_size=6)), min_size=1, max_size=6)


@given(texts=TEXTS)
@settings(max_examples=60, deadline=None)
def test_chrf_is_sacrebleus(texts: list[str]) -> None:
    found = pairwise_utility("chrf", "de")(texts)
    expected = [[CHRF().sentence_score(one, [other]).score for other in texts] for one in texts]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("language", "tokenizer"), [("de", "13a"), ("zh", "zh")])
@given(texts=TEXTS)
@settings(max_examples=60, deadline=None)
def test_bleu_is_sacrebleus(language: str, tokenizer: str, texts: list[str]) -> None:
    metric = BLEU(tokenize=tokenizer, effective_order=True, force=True)
    found = pairwise_utility("bleu", language)(texts)
    expected = [[metric.sentence_score(one, [other]).score for other in texts] for one in texts]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_common_ngrams_are_counted_as_often_as_both_have_them() -> None:
    counts = [{"x": 3, "y": 1}, {"x": 2, "z": 5}, {}]
    assert common(counts).tolist() == [[4, 2, 0], [2, 7, 0], [0, 0, 0]]
    assert common([{}, {}]).tolist() == [[0, 0], [0, 0]]
