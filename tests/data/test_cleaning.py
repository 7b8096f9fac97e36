import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from translator.data.cleaning import CleanedCorpus, Cleaning, HeldOut, clean
from translator.data.cleaning_report import STEPS, CleaningReport
from translator.data.corpus import Corpus, Splits, open_text
from translator.data.normalization import normalize_text
from translator.errors import UserError
from translator.files.fingerprints import FileFingerprint, combined_fingerprint

OFF = Cleaning(False, False, 0, 0, False, False, False)
Pairs = list[tuple[str, str]]


class ListCorpus(Corpus):
    """Pairs in memory; `num_given` counts how many were read."""

    def __init__(self, pairs: Pairs, name: str = "train (list)") -> None:
        self.pairs = pairs
        self.name = name
        self.num_given = 0

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for pair in self.pairs:
            self.num_given += 1
            yield pair

    @property
    def files(self) -> list[FileFingerprint]:
        return []

    @property
    def fingerprint(self) -> str:
        return combined_fingerprint(*(text for pair in self.pairs for text in pair))


def cleaned(pairs: Pairs, cleaning: Cleaning, held_out: Pairs | None = None) -> tuple[Pairs, CleaningReport]:
    held = HeldOut([ListCorpus(held_out, "valid (list)")]) if held_out is not None else None
    corpus = CleanedCorpus(ListCorpus(pairs), cleaning, held_out=held)
    return list(corpus), corpus.report


def counts(report: CleaningReport) -> dict[str, int]:
    return {name: step.count for name, step in report.steps.items() if step.count}


# ------------------------------------------------------------------------------------------------- single steps


def test_blank_sides() -> None:
    pairs = [("one", "eins"), ("", "leer"), ("blank", " \t\u00a0"), ("invisible", "\u200b\ufeff\u200e"), (".", "!")]
    kept, report = cleaned(pairs, dataclasses.replace(OFF, drop_blank=True))
    assert kept == [("one", "eins"), (".", "!")]
    assert counts(report) == {"drop_blank": 3}


def test_length_limit() -> None:
    pairs = [("a" * 10, "b" * 10), ("a" * 11, "b"), ("a", "b" * 11), (" " * 5 + "a" * 10, "b")]
    kept, report = cleaned(pairs, dataclasses.replace(OFF, max_characters=10))
    assert kept == [pairs[0], pairs[3]]
    assert counts(report) == {"max_characters": 2}
    assert len(cleaned([("a" * 10**6, "b")], OFF)[0]) == 1


def test_ratio_only_of_longer_sentences() -> None:
    pairs = [
        ("a" * 20, "b"),  # too short to judge
        ("a" * 21, "b" * 7),  # a ratio of exactly three
        ("a" * 22, "b" * 7),
        ("a" * 7, "b" * 22),
        ("a" * 30, ""),  # blank sides are left to another step
    ]
    kept, report = cleaned(pairs, dataclasses.replace(OFF, max_ratio=3.0))
    assert kept == [pairs[0], pairs[1], pairs[4]]
    assert counts(report) == {"max_ratio": 2}


def test_identical_sides() -> None:
    pairs = [("same", "same"), ("u\u0308 ", "ü"), ("Same", "same")]
    kept, report = cleaned(pairs, dataclasses.replace(OFF, drop_identical=True))
    assert kept == [pairs[2]]
    assert counts(report) == {"drop_identical": 2}


def test_duplicates_keep_the_first() -> None:
    pairs = [("a", "b"), ("a", "c"), ("a ", "b"), ("b", "a"), ("a", "b"), ("a b", "c"), ("a", "b c")]
    kept, report = cleaned(pairs, dataclasses.replace(OFF, drop_duplicates=True))
    assert kept == [pairs[index] for index in (0, 1, 3, 5, 6)]
    assert counts(report) == {"drop_duplicates": 2}
    assert [example.line for example in report.steps["drop_duplicates"].examples] == [3, 5]


def test_normalisation_changes_and_removes_nothing() -> None:
    pairs = [("u\u0308", "x"), ("plain", "text"), ("", " ")]
    kept, report = cleaned(pairs, dataclasses.replace(OFF, normalize=True))
    assert kept == [("ü", "x"), ("plain", "text"), ("", "")]
    assert counts(report) == {"normalize": 2}


def test_without_normalisation_text_comes_out_as_it_was() -> None:
    pairs = [("u\u0308  x\t", "\u00ady"), ("ü x", "y")]
    kept, _ = cleaned(pairs, dataclasses.replace(Cleaning(), normalize=False))
    assert kept == pairs[:1], "the second is the same pair once both are normalised"


# ------------------------------------------------------------------------------------------------- leakage

HELD_OUT = [("known", "bekannt"), ("twice", "zweimal"), ("twice", "zweimal"), ("other", "anders")]
LEAKY = [("known", "bekannt "), ("other", "etwas anderes"), ("twice", "zweimal"), ("twice", "zweimal"), ("new", "neu")]


def test_leaked_pairs_are_removed() -> None:
    kept, report = cleaned(LEAKY, Cleaning(), HELD_OUT)
    assert kept == [("other", "etwas anderes"), ("new", "neu")]
    assert counts(report) == {"drop_leaked": 3}
    (overlap,) = report.overlaps
    assert dataclasses.astuple(overlap) == ("valid (list)", 4, 3, 1, False)


def test_leaked_pairs_may_stay_but_are_reported() -> None:
    kept, report = cleaned(LEAKY, dataclasses.replace(OFF, normalize=True), HELD_OUT)
    assert len(kept) == len(LEAKY) == report.num_kept
    assert counts(report) == {"normalize": 1, "drop_leaked": 3}
    assert dataclasses.astuple(report.overlaps[0]) == ("valid (list)", 4, 3, 4, False)
    assert "3 kept" in str(report)


def test_a_shared_target_is_not_a_leak() -> None:
    pairs = [("unknown", "bekannt"), ("known", "unbekannt")]
    assert cleaned(pairs, Cleaning(), HELD_OUT)[0] == pairs


def test_validation_and_test_are_told_apart() -> None:
    corpora = [ListCorpus([("a", "b"), ("c", "d")], "valid (v)"), ListCorpus([("c", "d"), ("e", "f")], "test (t)")]
    corpus = CleanedCorpus(ListCorpus([("c", "d"), ("e", "g"), ("h", "i")]), Cleaning(), held_out=HeldOut(corpora))
    assert list(corpus) == [("e", "g"), ("h", "i")]
    assert [dataclasses.astuple(overlap) for overlap in corpus.report.overlaps] == [
        ("valid (v)", 2, 1, 0, False),
        ("test (t)", 2, 1, 1, False),
    ]


# ------------------------------------------------------------------------------------------------- all steps together


def plainly_cleaned(pairs: Pairs, cleaning: Cleaning, held_out: Pairs) -> tuple[Pairs, dict[str, int]]:
    """The same rules, written with lists."""
    kept: Pairs = []
    seen: Pairs = []
    removed: list[str] = []
    leaks = [(normalize_text(source), normalize_text(target)) for source, target in held_out]
    for raw in pairs:
        source, target = pair = (normalize_text(raw[0]), normalize_text(raw[1]))
        lengths = [len(source), len(target)]
        reasons = {
            "drop_blank": cleaning.drop_blank and "" in pair,
            "max_characters": cleaning.max_characters > 0 and max(lengths) > cleaning.max_characters,
            "max_ratio": cleaning.max_ratio > 0
            and min(lengths) > 0
            and max(lengths) > 20
            and max(lengths) / min(lengths) > cleaning.max_ratio,
            "drop_identical": cleaning.drop_identical and source == target,
            "drop_leaked": pair in leaks,
            "drop_duplicates": cleaning.drop_duplicates and pair in seen,
        }
        met = [name for name, holds in reasons.items() if holds]
        if met[:1] == ["drop_leaked"] and not cleaning.drop_leaked:
            removed.append("drop_leaked")
            met = met[1:]
        if met:
            removed.append(met[0])
            continue
        seen.append(pair)
        kept.append(pair if cleaning.normalize else raw)
        if cleaning.normalize and pair != raw:
            removed.append("normalize")
    return kept, {name: removed.count(name) for name in STEPS if name in removed}


few_texts = st.sampled_from(["", " ", "a", "a ", "b", "ü", "u\u0308", "a" * 21, "b" * 21, "a" * 30, "ab" * 3])
few_pairs = st.lists(st.tuples(few_texts, few_texts), max_size=30)
any_cleaning = st.builds(
    Cleaning,
    normalize=st.booleans(),
    drop_blank=st.booleans(),
    max_characters=st.sampled_from([0, 5, 25]),
    max_ratio=st.sampled_from([0, 2.0, 21.0]),
    drop_identical=st.booleans(),
    drop_duplicates=st.booleans(),
    drop_leaked=st.booleans(),
)


@given(few_pairs, any_cleaning, few_pairs)
def test_agrees_with_the_rules_written_plainly(pairs: Pairs, cleaning: Cleaning, held_out: Pairs) -> None:
    pairs = [*pairs, ("one", "eins")]  # passes every step
    expected, numbers = plainly_cleaned(pairs, cleaning, held_out)
    kept, report = cleaned(pairs, cleaning, held_out)
    assert kept == expected
    assert counts(report) == numbers
    assert (report.num_read, report.num_kept) == (len(pairs), len(expected))


def splits_of(train: list[Pairs], valid: Pairs, test: Pairs | None = None) -> Splits:
    return Splits(
        train=[(ListCorpus(pairs, f"train ({number})"), 1.0 + number) for number, pairs in enumerate(train)],
        valid=ListCorpus(valid, "valid (list)"),
        test=None if test is None else ListCorpus(test, "test (list)"),
    )


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 1, 0, 2, 0)])
def test_duplicates_across_corpora_do_not_depend_on_the_order_of_reading(order: tuple[int, ...]) -> None:
    train = [[("a", "1"), ("b", "2")], [("b", "2"), ("c", "3"), ("c", "3")], [("c", "3"), ("a", "1"), ("d", "4")]]
    expected = [[("a", "1"), ("b", "2")], [("c", "3")], [("d", "4")]]
    corpora = clean(splits_of(train, [("v", "v1")]), Cleaning()).train
    for number in order:
        corpus, weight = corpora[number]
        assert list(corpus) == expected[number]
        assert weight == 1.0 + number
        assert corpus.report.num_kept == len(expected[number])


def test_held_out_corpora_keep_their_lines() -> None:
    valid = [("", ""), ("same", "same"), ("same", "same"), ("a" * 5000, "u\u0308"), ("train", "Zug")]
    test = [*valid, ("x", " y ")]
    result = clean(splits_of([[("train", "Zug"), ("p", "q")]], valid, test), Cleaning())
    assert list(result.valid) == [(source, normalize_text(target)) for source, target in valid]
    assert result.test is not None
    assert list(result.test)[-1] == ("x", "y")
    assert len(list(result.test)) == len(test)
    raw = clean(splits_of([[("p", "q")]], valid), dataclasses.replace(Cleaning(), normalize=False))
    assert list(raw.valid) == valid
    assert raw.test is None


def test_can_be_read_again_with_the_same_report() -> None:
    corpus = CleanedCorpus(ListCorpus([("a", "b"), ("a", "b"), ("", "")]), Cleaning())
    first, first_report = list(corpus), corpus.report
    assert list(corpus) == first == [("a", "b")]
    assert corpus.report == first_report
    assert corpus.report is not first_report


def test_streams() -> None:
    pairs = [(f"a{number}", f"b{number}") for number in range(1000)]
    corpus = ListCorpus(pairs)
    reading = CleanedCorpus(corpus, Cleaning())
    for number, _ in enumerate(reading, start=1):
        assert corpus.num_given == number
        if number == 10:
            break
    assert reading.report.num_read == 10


def test_nothing_left() -> None:
    with pytest.raises(UserError) as caught:
        cleaned([("same", "same"), ("", "")], Cleaning())
    assert str(caught.value) == (
        "train (list): cleaning leaves none of 2 pairs: data.cleaning.drop_blank removed 1 (such as line 2:  | ),"
        " data.cleaning.drop_identical removed 1 (such as line 1: same | same)"
    )


def test_fingerprint_changes_with_whatever_changes_the_result() -> None:
    pairs, held_out = [("a", "b")], [("c", "d")]

    def fingerprint(cleaning: Cleaning, pairs: Pairs = pairs, held_out: Pairs = held_out, *earlier: Pairs) -> str:
        train = clean(splits_of([*earlier, pairs], held_out), cleaning).train
        return train[-1][0].fingerprint

    base = Cleaning()
    variants = [
        dataclasses.replace(base, normalize=False),
        dataclasses.replace(base, drop_blank=False),
        dataclasses.replace(base, max_characters=7),
        dataclasses.replace(base, max_ratio=7.0),
        dataclasses.replace(base, drop_identical=False),
        dataclasses.replace(base, drop_duplicates=False),
        dataclasses.replace(base, drop_leaked=False),
    ]
    fingerprints = [fingerprint(cleaning) for cleaning in (base, *variants)]
    fingerprints += [fingerprint(base, [("a", "x")]), fingerprint(base, pairs, [("c", "x")])]
    fingerprints.append(fingerprint(base, pairs, held_out, [("e", "f")]))
    assert len(set(fingerprints)) == len(fingerprints)
    assert fingerprint(base) == fingerprints[0]
    # A change that does not affect the result does not invalidate the cache.
    kept_leaks = dataclasses.replace(base, drop_leaked=False)
    assert fingerprint(kept_leaks) == fingerprint(kept_leaks, pairs, [("c", "x")])


# ------------------------------------------------------------------------------------------------- the report


def test_report_as_text() -> None:
    pairs = [("x" * 300, "y"), *[("\x1b[31mred", "\x1b[31mred")] * 5, ("a", "b")]
    _, report = cleaned(pairs, dataclasses.replace(Cleaning(), max_characters=0), HELD_OUT)
    text = str(report)
    assert "train (list): 7 pairs read, 1 kept" in text
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines()[1:]}
    assert rows["drop_identical"][:2] == ["5", "removed"]
    assert rows["max_characters"] == ["0", "(off)"]
    assert rows["drop_blank"] == ["0", "removed"]
    assert text.count("\\x1b[31mred | ") == 3, "three examples, escaped"
    assert "\x1b" not in text
    assert max(len(line) for line in text.splitlines()) < 150
    assert "valid (list), 4 pairs: 0 found" in text


def test_examples_are_shortened_where_they_are_kept() -> None:
    _, report = cleaned([("x" * 10**5, "y"), ("a", "b")], Cleaning())
    (example,) = report.steps["max_characters"].examples
    assert (example.line, example.target) == (1, "y")
    assert example.source == "x" * 199 + "…"


def test_report_json_round_trip() -> None:
    _, report = cleaned([*LEAKY, ("", "leer"), ("u\u0308", "x")], Cleaning(), HELD_OUT)
    again = CleaningReport.from_dict(json.loads(json.dumps(report.to_dict())))
    assert again == report
    assert str(again) == str(report)


def test_multi30k(multi30k: Path) -> None:
    splits = open_text(
        source="en",
        target="de",
        train=[str(multi30k / "train")],
        train_weights=None,
        valid=str(multi30k / "val"),
        test=str(multi30k / "test_2016_flickr"),
    )
    result = clean(splits, Cleaning())
    train = result.train[0][0]
    kept = list(train)
    unique = {(normalize_text(source), normalize_text(target)) for source, target in splits.train[0][0]}
    assert train.report.num_read == 29_000
    assert counts(train.report)["drop_duplicates"] == 29_000 - len(unique)
    assert len(kept) == len(set(kept)) == train.report.num_kept
    assert set(kept) <= unique
    assert not set(kept) & {(normalize_text(source), normalize_text(target)) for source, target in splits.valid}
    assert result.test is not None
    assert (len(list(result.valid)), len(list(result.test))) == (1014, 1000)
