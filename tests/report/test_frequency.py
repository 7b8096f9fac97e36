from collections import Counter

from translator.report.figures.frequency import CLASSES, f1, frequency_class, matches_of_two, word_accuracy

TRAINING = {"the": 2_000, "dog": 150, "cat": 12, "sees": 7, "fox": 4, "owl": 1}
REFERENCES = [["the", "dog", "sees", "the", "cat"], ["the", "zebra", "sees", "owl"], ["fox"]]
OUTPUTS = [["the", "dog", "the", "the", "zebra"], ["the", "owl", "owl"], []]


def by_brute_force(name: str) -> tuple[int, int, int]:
    """Words written, wanted and matched: every written word crosses out one equal word of the reference."""
    members = {word for word in {*TRAINING, "zebra"} if CLASSES[frequency_class(TRAINING.get(word, 0))] == name}
    matched = 0
    for output, reference in zip(OUTPUTS, REFERENCES, strict=True):
        left = list(reference)
        for word in output:
            if word in left:
                left.remove(word)
                matched += word in members
    written = sum(word in members for output in OUTPUTS for word in output)
    wanted = sum(word in members for reference in REFERENCES for word in reference)
    return written, wanted, matched


def test_counts_of_each_frequency_class_equal_brute_force() -> None:
    rows = word_accuracy(OUTPUTS, REFERENCES, TRAINING)
    assert [row["frequency"] for row in rows] == list(CLASSES)
    for row in rows:
        written, wanted, matched = by_brute_force(row["frequency"])
        assert (row["num_output"], row["num_reference"], row["num_matched"]) == (written, wanted, matched)
        precision, recall = matched / written if written else None, matched / wanted if wanted else None
        assert (row["precision"], row["recall"]) == (precision, recall)
        if precision and recall:
            assert abs(row["f1"] - 2 * precision * recall / (precision + recall)) < 1e-12
    unseen = rows[0]
    assert (unseen["num_output"], unseen["num_reference"], unseen["num_matched"]) == (1, 1, 0)  # zebra, misplaced


def test_the_classes_are_those_of_compare_mt() -> None:
    counts = [0, 1, 2, 3, 4, 5, 9, 10, 99, 100, 999, 1_000, 10_000]
    assert [frequency_class(count) for count in counts] == [0, 1, 2, 3, 4, 5, 5, 6, 6, 7, 7, 8, 8]


def test_a_class_without_words_has_no_f1() -> None:
    assert f1(0, 0, 0) is None
    assert f1(0, 3, 0) == 0.0


def test_words_that_only_one_of_two_outputs_has() -> None:
    first, second = [["a", "b", "b"]], [["b", "c", "d"]]
    rows = matches_of_two(first, second, [["a", "b", "b", "c", "e"]], Counter())
    never = rows[0]
    assert never == {"frequency": "never", "both": 1, "only_first": 2, "only_second": 1, "neither": 1}
    assert all(sum(row[key] for key in ("both", "only_first", "only_second", "neither")) == 0 for row in rows[1:])
