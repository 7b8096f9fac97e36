"""Minimum Bayes risk against a plain double loop, and through the line translator."""

import random
from itertools import pairwise

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF

from support.fake_models import ByteTokenizer, TableModel
from translator.decoding.hypotheses import Hypothesis
from translator.decoding.line_translator import LineTranslator
from translator.decoding.minimum_risk import least_risk_first
from translator.decoding.search import SearchOptions
from translator.errors import OptionError
from translator.evaluation.utilities import pairwise_utility

LINES = ["ab", "c", "", "dabe", "ab"]
LIMITS = {"max_length_ratio": 0.0, "max_length_extra": 6}


def candidates(seed: int, count: int) -> list[str]:
    dice = random.Random(seed)
    words = ["der", "die", "Hund", "Katze", "läuft", "schläft", "."]
    return [" ".join(dice.choices(words, k=dice.randint(1, 4))) for _ in range(count)]


@pytest.mark.parametrize("name", ["chrf", "bleu"])
@pytest.mark.parametrize("seed", range(4))
def test_expected_utility_is_the_mean_over_all_candidates(name: str, seed: int) -> None:
    texts = candidates(seed, 25)
    texts += texts[:7]  # duplicates count as often as they occur
    metric = CHRF() if name == "chrf" else BLEU(effective_order=True, force=True)
    means = {one: sum(metric.sentence_score(one, [other]).score for other in texts) / len(texts) for one in texts}
    hypotheses = [Hypothesis([number], -float(number), -float(number)) for number in range(len(texts))]
    found = least_risk_first(hypotheses, texts, pairwise_utility(name, "de"), num_best=100)
    assert [h.score for h in found] == pytest.approx(sorted(means.values(), reverse=True))
    for hypothesis in found:
        text = texts[hypothesis.ids[0]]
        assert hypothesis.ids[0] == texts.index(text), "the likeliest of equal ones"
        assert hypothesis.score == hypothesis.normalized_score == pytest.approx(means[text])
        assert hypothesis.model_score == -float(hypothesis.ids[0])
    assert least_risk_first(hypotheses, texts, pairwise_utility(name, "de"), num_best=3) == found[:3]


def test_ties_stay_in_order() -> None:
    hypotheses = [Hypothesis([number], 0.0, 0.0) for number in range(3)]
    found = least_risk_first(hypotheses, ["x", "y", "z"], lambda texts: np.ones((3, 3)), num_best=2)
    assert [h.ids for h in found] == [[0], [1]]


def translator(**options: object) -> LineTranslator:
    model = TableModel.random(5, vocab_size=ByteTokenizer.target_vocab_size, end=3.0)
    return LineTranslator(
        model,
        ByteTokenizer(),
        options=SearchOptions(**LIMITS, **options),  # type: ignore[arg-type]
        make_utility=lambda name: pairwise_utility(name, "de"),
    )


@pytest.mark.parametrize("sample", [True, False])
@pytest.mark.parametrize("utility", ["chrf", "bleu"])
def test_lines_get_the_candidate_of_least_risk(sample: bool, utility: str) -> None:
    found = translator(mbr=12, sample=sample, mbr_utility=utility, num_hypotheses=3).translate_fully(LINES)
    plain = translator(num_hypotheses=12, beam_size=12, sample=sample).translate_fully(LINES)
    for line, chosen, searched in zip(LINES, found, plain, strict=True):
        if not line:
            assert [output.text for output in chosen.outputs] == [""]
            continue
        texts = [output.text for output in searched.outputs]
        means = dict(zip(texts, pairwise_utility(utility, "de")(texts).mean(1), strict=True))
        scores = [output.score for output in chosen.outputs]
        assert scores == pytest.approx(sorted(means.values(), reverse=True)[: len(scores)])
        assert scores == pytest.approx([means[output.text] for output in chosen.outputs])
        assert len(scores) == min(3, len(means))


@pytest.mark.parametrize("sample", [True, False])
def test_a_line_does_not_depend_on_its_neighbours(sample: bool) -> None:
    mbr = translator(mbr=9, sample=sample)
    together = mbr.translate_fully(LINES)
    alone = [mbr.translate_fully([line], first_line=number)[0] for number, line in enumerate(LINES)]
    assert alone == together


def test_alignments_are_those_of_the_chosen_candidate() -> None:
    (translation,) = translator(mbr=9, sample=True).translate_fully(["dabe"], need_attention=True)
    (attention,) = translation.outputs[0].attention or []
    assert len(attention.target_pieces) == translation.outputs[0].num_pieces + 1


def test_parts_of_a_line_are_chosen_one_by_one() -> None:
    mbr = translator(mbr=9)
    mbr.split_sentences = True
    (joined,) = mbr.translate_fully(["dabe ab! Cebe da!"])
    parts = [output for part in ("dabe ab!", "Cebe da!") for output in mbr.translate_fully([part])[0].outputs[:1]]
    assert joined.outputs[0].text == " ".join(part.text for part in parts if part.text)
    assert joined.outputs[0].score == pytest.approx(sum(part.score for part in parts) / 2)


def test_more_translations_than_candidates_are_refused() -> None:
    with pytest.raises(OptionError, match=r"num_hypotheses=5: of 4 candidates no more than that"):
        SearchOptions(mbr=4, num_hypotheses=5)
    options = SearchOptions(beam_size=5).changed(mbr=20, num_hypotheses=10)
    assert (options.beam_size, options.for_candidates().beam_size) == (5, 20)
    assert options.changed(sample=True).for_candidates().beam_size == 5
    widths = [SearchOptions(mbr=count).for_candidates().num_hypotheses for count in (2, 7)]
    assert all(small < large for small, large in pairwise(widths))
