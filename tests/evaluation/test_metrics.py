import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sacrebleu
from sacrebleu.metrics import TER

from translator.errors import UserError
from translator.evaluation.metrics import METRICS, Metric, bleu_tokenizer, describe_scores, score_corpus
from translator.evaluation.report import evaluate_texts

HYPOTHESES = ["The cat sat on a mat .", "Two dogs are running through the snow.", "A man, in red, reads the newspaper."]
REFERENCES = ["The cat sat on the mat.", "Two dogs run through the snow.", "A man in red is reading a newspaper."]
OTHERS = ["A cat was sitting on the mat.", "Two dogs are running in the snow.", "The man in red reads a newspaper."]


def test_capital_letters_do_not_count_for_lower_cased_bleu() -> None:
    shouted = [text.upper() for text in HYPOTHESES]
    scores = score_corpus(shouted, REFERENCES, "en", metrics=["bleu", "bleu_lc"])
    expected = sacrebleu.corpus_bleu(shouted, [REFERENCES], lowercase=True)
    assert scores["bleu_lc"] == pytest.approx(expected.score)
    assert scores["bleu_lc"] > scores["bleu"] + 10
    assert "case:lc" in scores.signatures["bleu_lc"]


def test_scores_are_those_of_sacrebleu() -> None:
    scores = score_corpus(HYPOTHESES, REFERENCES, "en", metrics=METRICS)
    assert scores["bleu"] == pytest.approx(sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score)
    assert scores["chrf"] == pytest.approx(sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score)
    assert scores["chrf_pp"] == pytest.approx(sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES], word_order=2).score)
    assert scores["ter"] == pytest.approx(sacrebleu.corpus_ter(HYPOTHESES, [REFERENCES]).score)


def test_the_figures_are_those_of_the_sacrebleu_command(tmp_path: Path) -> None:
    for name, lines in (("hypothesis", HYPOTHESES), ("reference", REFERENCES), ("other", OTHERS)):
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "sacrebleu",
        "reference",
        "other",
        "-i",
        "hypothesis",
        "-m",
        "bleu",
        "--confidence",
    ]
    output = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120).stdout
    report = json.loads(output)
    scores = score_corpus(HYPOTHESES, [REFERENCES, OTHERS], "en", num_bootstrap=1000)
    assert scores.num_references == 2
    assert report["score"] == pytest.approx(scores["bleu"], abs=0.06)  # the command rounds to one digit
    assert report["signature"] == scores.signatures["bleu"]
    bleu = scores.by_metric["bleu"]
    assert bleu.low is not None
    assert bleu.high is not None
    assert bleu.low <= bleu.value <= bleu.high
    assert report["confidence_mean"] == pytest.approx((bleu.high + bleu.low) / 2, abs=0.06)
    assert report["confidence_var"] == pytest.approx((bleu.high - bleu.low) / 2, abs=0.06)


def test_chinese_is_scored_over_chinese_characters() -> None:
    hypotheses, references = ["两只狗在雪地里跑。"], ["两只狗在雪中奔跑。"]
    for code in ("zh", "zh-CN", "zh_Hans", "zho_Hans"):
        scores = score_corpus(hypotheses, references, code)
        assert scores["bleu"] == pytest.approx(sacrebleu.corpus_bleu(hypotheses, [references], tokenize="zh").score)
        assert "tok:zh" in scores.signatures["bleu"]
        assert scores.warning is None


def test_a_language_whose_tokenizer_is_not_installed_is_scored_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    tokenizer = bleu_tokenizer("ja")
    assert tokenizer.name == "char"
    assert tokenizer.warning is not None
    assert "sacrebleu[ja]" in tokenizer.warning
    assert score_corpus(["犬が走る。"], ["犬が走る。"], "ja").warning == tokenizer.warning
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    assert bleu_tokenizer("ja").name == "ja-mecab"
    assert bleu_tokenizer("de-AT") == bleu_tokenizer("xx")
    assert bleu_tokenizer("de").name == "13a"


def test_what_was_not_computed_is_not_reported() -> None:
    scores = score_corpus(HYPOTHESES, REFERENCES, "en", metrics=("chrf",))
    assert set(scores.to_dict()) == {"chrf", "num_sentences", "num_references"}
    assert json.loads(json.dumps(scores.to_dict())) == scores.to_dict()
    with pytest.raises(ValueError, match="BLEU was not computed"):
        _ = scores["bleu"]


def test_texts_of_different_length_and_empty_ones_are_refused() -> None:
    with pytest.raises(UserError, match="reference 2 has 1 sentences and the hypothesis 3"):
        score_corpus(HYPOTHESES, [REFERENCES, ["one"]], "en")
    with pytest.raises(UserError, match="nothing to score"):
        score_corpus([], [], "en")


class ExactMatches(TER):
    """A custom metric, defined as in sacrebleu: the share of hypotheses that equal the reference."""

    def _extract_corpus_statistics(self, hypotheses: Any, references: Any) -> list[list[float]]:
        return [[float(a == b), 1.0] for a, b in zip(hypotheses, REFERENCES, strict=True)]

    def _compute_score_from_stats(self, stats: Any) -> Any:
        return SimpleNamespace(score=100 * stats[0] / stats[1])


def test_a_metric_is_registered_in_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        METRICS, "exact", Metric("Exact", lambda language, references: ExactMatches(references=references))
    )
    scores = score_corpus([REFERENCES[0], "other", REFERENCES[2]], REFERENCES, "en", num_bootstrap=10)
    assert scores["exact"] == pytest.approx(200 / 3)
    assert scores.values.keys() == {"bleu", "chrf", "chrf_pp", "exact"}, "the slow ones only when asked for"
    assert "exact" in scores.to_dict()
    assert describe_scores({"bleu": 1.0, "exact": 200 / 3}) == "BLEU 1.00  Exact 66.67"
    assert "Exact" in str(evaluate_texts(REFERENCES, REFERENCES, "en", num_bootstrap=0))
