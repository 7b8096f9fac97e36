"""The report: scores over all sentences and over groups with sources of similar length."""

import pytest
import sacrebleu

from translator.evaluation.report import evaluate_texts

SOURCES = ["ein Hund", "eine sehr kleine Katze schläft auf dem Bett", "zwei Hunde", "drei Vögel singen"]
REFERENCES = ["a dog runs here", "a very small cat sleeps on the bed", "two dogs run here", "three birds are singing"]
HYPOTHESES = ["a dog runs there", "a very little cat sleeps on the bed", "zwei Hunde", "three birds are singing"]


def test_each_length_class_is_scored_separately() -> None:
    report = evaluate_texts(HYPOTHESES, REFERENCES, "en", sources=SOURCES, num_bootstrap=10)
    assert {name: scores.num_sentences for name, scores in report.by_length.items()} == {"1-5": 3, "6-10": 1}
    short = [0, 2, 3]
    expected = sacrebleu.corpus_chrf([HYPOTHESES[i] for i in short], [[REFERENCES[i] for i in short]]).score
    found = report.to_dict()
    assert found["by_source_length"]["1-5"]["chrf"]["value"] == pytest.approx(expected)
    assert found["bleu"]["value"] == pytest.approx(sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score)
    assert found["diagnostics"]["copied"] == 0.25
    assert "25.00 % copied" in str(report)
    assert "4 sentences, 1 reference\n" in str(report)


def test_without_sources_there_are_only_scores() -> None:
    found = evaluate_texts(HYPOTHESES, [REFERENCES, REFERENCES], "en", num_bootstrap=10).to_dict()
    assert (found["by_source_length"], found["diagnostics"], found["alignment"]) == ({}, None, None)
