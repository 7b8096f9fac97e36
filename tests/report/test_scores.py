import pytest
import sacrebleu
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from translator.report.figures import comparison
from translator.report.figures.comparison import compare_runs
from translator.report.figures.scores import NUM_BOOTSTRAP, corpus_scores, scores_by_length
from translator.report.material import HeldOut

WORDS = ["the", "small", "dog", "sees", "a", "large", "cat", "near", "our", "old", "house", "today"]
SOURCES = [" ".join(WORDS[: 2 + n % 9]) for n in range(30)]
REFERENCES = [" ".join(WORDS[n % 3 : 6 + n % 6]) for n in range(30)]
OUTPUTS = [" ".join(WORDS[n % 3 : 5 + n % 7]) for n in range(30)]
OTHERS = [" ".join(WORDS[n % 4 : 4 + n % 5]) for n in range(30)]
SET = HeldOut("test", SOURCES, REFERENCES, "en", "de")


def test_scores_signatures_and_intervals_are_sacrebleus() -> None:
    found = corpus_scores(OUTPUTS, SET)
    for name, metric in (("bleu", BLEU(force=True)), ("chrf", CHRF())):
        score = metric.corpus_score(OUTPUTS, [REFERENCES], n_bootstrap=NUM_BOOTSTRAP)
        assert abs(found[name]["value"] - score.score) < 1e-9
        assert abs(found[name]["low"] - (score._mean - score._ci)) < 1e-3
        assert abs(found[name]["high"] - (score._mean + score._ci)) < 1e-3
        assert "bs:1000|seed:12345" in found[name]["signature"]


def test_classes_of_length_are_scored_on_their_own() -> None:
    rows = scores_by_length(OUTPUTS, SET)
    assert [row["length"] for row in rows] == ["1–5", "6–10"]
    for row, longest, shortest in zip(rows, (5, 10), (1, 6), strict=True):
        chosen = [i for i, source in enumerate(SOURCES) if shortest <= len(source.split()) <= longest]
        assert row["num_sentences"] == len(chosen)
        outputs, references = [OUTPUTS[i] for i in chosen], [REFERENCES[i] for i in chosen]
        assert abs(row["bleu"] - sacrebleu.corpus_bleu(outputs, [references], force=True).score) < 1e-9
        assert abs(row["chrf"] - sacrebleu.corpus_chrf(outputs, [references]).score) < 1e-9


def test_two_runs_are_compared_sentence_by_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "NUM_RANDOMIZATIONS", 100)
    found = compare_runs(OUTPUTS, OTHERS, SET, {"dog": 3})
    pairs = zip(OUTPUTS, OTHERS, REFERENCES, strict=True)
    gains = [sacrebleu.sentence_chrf(b, [r]).score - sacrebleu.sentence_chrf(a, [r]).score for a, b, r in pairs]
    assert found["sentences"] == {
        "first_better": sum(gain < -1e-6 for gain in gains),
        "second_better": sum(gain > 1e-6 for gain in gains),
        "equal": sum(abs(gain) <= 1e-6 for gain in gains),
    }
    right = [(a == r, b == r) for a, b, r in zip(OUTPUTS, OTHERS, REFERENCES, strict=True)]
    assert found["exact"]["only_first"] == right.count((True, False))
    assert sum(found["exact"].values()) == 30
    best = found["largest"]["first_better"][0]
    assert best["chrf_second"] - best["chrf_first"] == min(gains)
    assert [test["metric"] for test in found["tests"]] == ["bleu", "chrf"]
    assert abs(found["tests"][0]["score_a"] - sacrebleu.corpus_bleu(OUTPUTS, [REFERENCES], force=True).score) < 1e-9
    assert found["words"][3]["frequency"] == "3"
    dogs = sum(r.split().count("dog") for r in REFERENCES)
    assert sum(found["words"][3][key] for key in ("both", "only_first", "only_second", "neither")) == dogs
