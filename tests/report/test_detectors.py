import pytest

from translator.report.figures.detectors import DETECTORS, fault_counts, find_faults

LOWER = "She bought it in the city with her brother for nothing at all"


@pytest.mark.parametrize(
    ("source", "reference", "output", "expected"),
    [
        ("A dog sleeps here.", "Ein Hund schläft hier.", "Ein Hund schläft hier.", []),
        ("A dog sleeps here.", "Ein Hund schläft hier.", " ", ["empty"]),
        ("A dog sleeps here.", "Ein Hund schläft hier.", "a dog  sleeps here.", ["copied"]),
        ("Hotel Adlon Berlin", "Hotel Adlon Berlin", "Hotel Adlon Berlin", []),  # so does the reference
        ("A dog sleeps.", "Ein Hund schläft.", "Ein Hund Hund Hund", ["repeating"]),
        ("a b c d e f g", "a b c d e f g", "a b c", ["too short"]),
        ("a b c d", "a b c d", "a b", []),  # only two words shorter
        ("a b c", "a b c", "b d e f g h i", ["too long"]),
        ("It is 7:30 on track 4", "Es ist 7:30 auf Gleis 4", "Es ist 7:30 auf Gleis", ["number lost"]),
        ("It is half past 7", "Es ist halb acht", "Es ist halb acht", []),  # the reference has no number either
        ("Anna saw Peter", "Anna sah Peter", "Anna sah", ["name lost"]),
        ("In the city", "In der Stadt", "die Stadt", []),  # "in" is written in lower case elsewhere
        ("A butterfly flies.", "Ein Schmetterling fliegt.", "Schmetterling.", []),  # only two words shorter
        ("Really?", "Tatsächlich?", "Ist das wahr?", []),  # only two words longer
        ("", "Ein Hund", "", []),  # nothing to translate
    ],
)  # fmt: skip
def test_a_sentence_sets_off_the_right_detectors(source: str, reference: str, output: str, expected: list[str]) -> None:
    found = find_faults([source, LOWER], [reference, LOWER], [output, LOWER], "de")
    assert found[0] == expected


def test_chinese_lengths_are_in_characters() -> None:
    found = find_faults(["The dog sleeps in the garden now."], ["那只狗现在在花园里睡觉。"], ["狗睡。"], "zh")
    assert found == [["too short"]]
    spaced = find_faults(
        ["The dog sleeps in the garden now."], ["那只狗 现在 在花园里睡觉。"], ["那只狗现在睡觉。"], "zh"
    )
    assert spaced == [[]], "a space in the reference changes nothing"


def test_counts() -> None:
    counts = fault_counts([["empty"], [], ["repeating", "too long"], ["empty"]])
    assert counts == dict.fromkeys(DETECTORS, 0) | {"empty": 2, "repeating": 1, "too long": 1}
