from array import array

import pytest

from translator.data.cleaning import Cleaning
from translator.data.synthetic import Candidate, Selection, best_share, excluded_texts

CANDIDATES = [
    Candidate("a dog runs", "ein Hund rennt", -0.5),
    Candidate("a dog  runs", "ein Hund rennt", -0.6),  # the same once it is normalised
    Candidate("", "etwas", -0.1),
    Candidate("Berlin", "Berlin", -0.1),
    Candidate("a cat sleeps", "eine Katze schläft", -3.0),
    Candidate("a bird", "ein Vogel, " * 10, -0.2),
    Candidate("a secret", "ein Geheimnis", -0.2),
    Candidate("two dogs", "zwei Hunde", -0.9),
    Candidate("the snow", "der Schnee", -0.9),
]


def test_pairs_are_dropped_for_a_reason_and_counted() -> None:
    selection = Selection(Cleaning(), min_score=-2.0, excluded=excluded_texts([" a  secret"]))
    assert list(selection.pairs(lambda: CANDIDATES)) == [
        ("a dog runs", "ein Hund rennt"),
        ("two dogs", "zwei Hunde"),
        ("the snow", "der Schnee"),
    ]
    assert selection.dropped == {
        "drop_duplicates": 1,
        "drop_blank": 1,
        "drop_identical": 1,
        "min_score": 1,
        "max_ratio": 1,
        "excluded": 1,
    }


def test_the_given_text_is_the_target_of_a_back_translation() -> None:
    selection = Selection(Cleaning(), original_is_source=False)
    pairs = list(selection.pairs(lambda: CANDIDATES[:1]))
    assert pairs == [("ein Hund rennt", "a dog runs")]


def test_the_best_share_is_kept_in_order() -> None:
    selection = Selection(Cleaning(), keep_share=0.5)
    kept = [source for source, _ in selection.pairs(lambda: CANDIDATES)]
    assert kept == ["a dog runs", "a secret", "two dogs"]  # of five, three; of two equally good ones the first
    assert selection.dropped["keep_share"] == 2


@pytest.mark.parametrize(("share", "num_kept"), [(0.9, 9), (0.3, 3), (0.31, 4), (1e-9, 1), (1.0, 10)])
def test_a_share_is_not_lost_to_rounding(share: float, num_kept: int) -> None:
    assert sum(best_share(array("d", range(10)), share)) == num_kept


def test_text_stays_as_it_is_where_normalisation_is_off() -> None:
    selection = Selection(Cleaning(normalize=False))
    assert list(selection.pairs(lambda: [Candidate("a  b", "c\u00a0d", 0.0)])) == [("a  b", "c\u00a0d")]
