"""Calibration, attention and search of real models, against the same numbers computed in other ways."""

import numpy as np
import pytest
import torch

from support.small_runs import TEST
from translator.api import Translator
from translator.decoding.hypotheses import length_penalty
from translator.evaluation.alignment import parse_pharaoh, score_alignments
from translator.ids import BOS, EOS
from translator.report.figures.attention import attention_figures, mean_entropy
from translator.report.figures.searching import search_figures
from translator.report.forced_pass import force_references
from translator.report.material import HeldOut, SearchSample
from translator.report.search_sample import search_sample

SOURCES, REFERENCES = [source for source, _ in TEST], [target for _, target in TEST]


@pytest.fixture(scope="module", params=["small_run", "small_lstm"])
def translator(request: pytest.FixtureRequest) -> Translator:
    return Translator.load(request.getfixturevalue(request.param), "cpu")


def test_forced_decoding_in_a_batch_equals_the_sentence_alone(translator: Translator) -> None:
    sentences = force_references(translator, SOURCES, REFERENCES)
    assert [sentence.index for sentence in sentences] == [0, 1, 2, 3, 5]  # not the blank one
    for sentence in sentences:
        source = torch.tensor([sentence.source_ids])
        target_in = torch.tensor([[BOS, *sentence.target_ids[:-1]]])
        with torch.no_grad():
            decoded = translator.model.eval()(source, source > 0, target_in, need_weights=True)
            probabilities = translator.model.project(decoded.states[0]).double().softmax(-1).numpy()  # (T, V)
        assert sentence.target_ids[-1] == EOS
        wanted = probabilities[np.arange(len(sentence.target_ids)), sentence.target_ids]
        np.testing.assert_allclose(sentence.log_probs, np.log(wanted), rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(sentence.confidences, probabilities.max(-1), rtol=1e-3)
        np.testing.assert_array_equal(sentence.predictions, probabilities.argmax(-1))
        np.testing.assert_allclose(sentence.attention, decoded.attention[0].numpy(), atol=1e-3)
    scores = translator.score(SOURCES[:4], REFERENCES[:4])
    for sentence, forced in zip(sentences[:4], scores, strict=True):
        assert float(sentence.log_probs.sum()) == pytest.approx(forced.score, rel=1e-4)


def test_overlong_and_late_sentences_are_left_out(translator: Translator) -> None:
    assert force_references(translator, ["a " * 300, "a"], ["b", "b " * 300]) == []
    assert force_references(translator, SOURCES, REFERENCES, is_late=lambda: True) == []


def test_entropy_is_the_mean_over_all_rows(translator: Translator) -> None:
    sentences = force_references(translator, SOURCES, REFERENCES)
    found = mean_entropy(sentences)
    rows: dict[tuple[int, int], list[float]] = {}
    for sentence in sentences:
        assert sentence.attention is not None
        layers, heads, length, _ = sentence.attention.shape
        for layer in range(layers):
            for head in range(heads):
                for position in range(length):
                    weights = [float(w) for w in sentence.attention[layer, head, position] if w > 0]
                    rows.setdefault((layer, head), []).append(-sum(w * np.log2(w) for w in weights))
    for (layer, head), values in rows.items():
        assert found[layer, head] == pytest.approx(np.mean(values), rel=1e-6)


def test_alignment_error_of_the_mean_attention_is_that_of_evaluate(translator: Translator) -> None:
    chosen = [0, 1, 3]
    sources, references = [SOURCES[i] for i in chosen], [REFERENCES[i] for i in chosen]
    gold = [parse_pharaoh(line) for line in ("0-0 1-1 2-2 3-3", "0-0 1-1 2-2", "0-0 1-1 2-2")]
    sentences = force_references(translator, sources, references)
    found = attention_figures(sentences, translator.tokenizer, gold)  # type: ignore[arg-type]
    assert found is not None
    expected = score_alignments(translator.align(sources, references), gold)
    assert found["alignment"]["of_mean"] == expected.to_dict()
    layers, heads = np.array(found["entropy"]).shape
    assert np.array(found["alignment"]["of_heads"]).shape == (layers, heads)
    if layers * heads == 1:
        assert found["alignment"]["of_heads"] == [[expected.error_rate]]
    one = found["maps"][0]
    assert np.array(one["weights"]).shape == (layers, heads, len(one["target"]), len(one["source"]))
    np.testing.assert_allclose(np.array(one["weights"]).sum(-1), 1, atol=0.02)


def test_both_searches_give_the_translations_of_translate(translator: Translator) -> None:
    own = translator.options
    sample = search_sample(translator, SOURCES)
    assert translator.options is own
    assert sample.indices == [0, 1, 2, 3, 5]
    lines = [SOURCES[index] for index in sample.indices]
    assert sample.beam_texts == translator.translate(lines)
    translator.options = own.changed(beam_size=1)
    try:
        greedy = translator.translate_fully(lines)
    finally:
        translator.options = own
    assert sample.greedy_texts == [one.outputs[0].text for one in greedy]
    for score, one in zip(sample.greedy_scores, greedy, strict=True):
        expected = one.outputs[0].score / length_penalty(float(one.outputs[0].num_pieces + 1), own)
        assert score == pytest.approx(expected, abs=1e-4)
    assert sample.beam_seconds > 0


def test_search_errors_are_counted_where_the_model_prefers_another_translation(translator: Translator) -> None:
    sentences = force_references(translator, SOURCES, REFERENCES)
    held_out = HeldOut("test", SOURCES, REFERENCES, "en", "de")
    references = {s.index: float(s.log_probs.sum()) / len(s.target_ids) for s in sentences}
    indices = [0, 1, 2, 3]
    beam = [references[0] - 1, references[1] + 1, references[2] + 1, references[3] + 1e-6]
    greedy = [beam[0] - 1, beam[1] + 1, beam[2] - 1, beam[3] - 1]
    sample = SearchSample(indices, ["a", "b", "c", "d"], ["a", "x", "c", "d"], beam, greedy, 2.0, 1.0, 5)
    found = search_figures(sample, held_out, sentences, lambda length: float(length))
    assert (found["reference_better"], found["greedy_better"], found["search_errors"]) == (0.25, 0.25, 0.5)
    assert found["share_different"] == 0.25
    assert found["beam"]["sentences_per_second"] == 2.0
    assert found["greedy"]["sentences_per_second"] == 4.0
