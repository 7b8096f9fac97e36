import pytest

from translator.errors import UserError
from translator.evaluation.alignment import GoldAlignment, parse_pharaoh, score_alignments


def test_the_error_rate_is_that_of_och_and_ney() -> None:
    gold = [parse_pharaoh("0-0 1-1 2?1"), parse_pharaoh("0-1")]
    assert gold[0] == GoldAlignment(frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 1), (2, 1)}))
    scores = score_alignments([[(0, 0), (2, 1), (2, 2)], [(0, 1)]], gold)
    # A has 4 pairs, 2 of them sure and 3 possible; 3 are sure in all.
    assert scores.precision == 3 / 4
    assert scores.recall == 2 / 3
    assert scores.error_rate == pytest.approx(1 - (2 + 3) / (4 + 3))
    assert (scores.num_pairs, scores.num_sure) == (4, 3)


def test_the_gold_alignment_has_no_error_and_an_empty_one_scores_zero() -> None:
    gold = [parse_pharaoh("0-0 1-2"), parse_pharaoh("")]
    perfect = score_alignments([[(0, 0), (1, 2)], []], gold)
    assert (perfect.error_rate, perfect.precision, perfect.recall) == (0, 1, 1)
    nothing = score_alignments([[], []], gold)
    assert (nothing.error_rate, nothing.precision, nothing.recall) == (1, 0, 0)


def test_a_malformed_alignment_is_refused_with_its_line() -> None:
    with pytest.raises(UserError, match=r"gold\.txt, line 3: 1:2 is not an alignment"):
        parse_pharaoh("0-0 1:2", "gold.txt", 3)
    with pytest.raises(UserError, match="1 sentences were aligned and the truth has 0"):
        score_alignments([[]], [])
