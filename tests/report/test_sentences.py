import random

import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from translator.languages import alignment_tokens
from translator.report.figures import sentences
from translator.report.figures.sentences import (
    alternating,
    choose_sentences,
    mark_differences,
    sentence_list,
    sentence_scores,
)
from translator.report.material import HeldOut
from translator.report.sections.sentences import sentence_browser

SET = HeldOut("test", ["one", "two", "three"], ["eins ist da", "zwei sind da", "drei"], "en", "de")
OUTPUT = ["eins war da", "zwei sind da", ""]


def test_scores_are_sacrebleus() -> None:
    expected = [sacrebleu.sentence_chrf(o, [r]).score for o, r in zip(OUTPUT, SET.references, strict=True)]
    assert sentence_scores(OUTPUT, SET) == expected


@given(st.text(alphabet="ab 猫狗,", max_size=30), st.text(alphabet="ab 猫狗,", max_size=30))
def test_marks_keep_the_text_and_leave_a_common_subsequence(output: str, reference: str) -> None:
    marked = mark_differences(output, reference)
    plain = []
    for text, segments in zip((output, reference), marked, strict=True):
        assert "".join(stretch for stretch, _ in segments) == text
        assert all(stretch for stretch, _ in segments)
        assert "".join(alternating(segments)) == text
        assert alternating(segments)[1::2] == [stretch for stretch, is_marked in segments if is_marked]
        plain.append(" ".join(stretch for stretch, is_marked in segments if not is_marked))
    if not any(is_marked for segments in marked for _, is_marked in segments):
        assert alignment_tokens(output) == alignment_tokens(reference)
    else:
        assert alignment_tokens(output) != alignment_tokens(reference)


def test_only_the_differing_words_are_marked() -> None:
    output, reference = mark_differences("Der Hund war gestern müde.", "Der Hund ist müde.")
    assert output == [("Der Hund ", False), ("war gestern", True), (" müde.", False)]
    assert reference == [("Der Hund ", False), ("ist", True), (" müde.", False)]


def test_a_small_set_is_listed_as_a_whole() -> None:
    entries = sentence_list(SET, [OUTPUT, SET.references], [[[], [], ["empty"]], [[], [], []]])
    assert [entry["line"] for entry in entries] == [1, 2, 3]
    assert entries[2]["runs"][0] == {"output": "", "chrf": 0.0, "faults": ["empty"]}
    assert entries[2]["runs"][1]["chrf"] == pytest.approx(100)
    assert sorted(entry["random"] for entry in entries) == [0, 1, 2]


def test_of_a_large_set_worst_best_faulty_and_random_ones_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentences, "MOST_BYTES", 4_000)
    scores = list(map(float, range(1_000)))
    random.Random(1).shuffle(scores)
    faults = [["empty"] if index in (5, 6) else [] for index in range(1_000)]
    chosen = choose_sentences([scores], faults, [60] * 1_000, lambda index: 100)
    assert len(chosen) == 40
    assert chosen == sorted(set(chosen))
    shown = {scores[index] for index in chosen}
    assert {0.0, 1.0, 2.0, 997.0, 998.0, 999.0} <= shown
    assert {5, 6} <= set(chosen)


def test_the_page_stays_small_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even in Chinese, with three bytes per character."""
    chance = random.Random(1)
    lines = ["".join(chr(0x4E00 + chance.randrange(5_000)) for _ in range(90)) for _ in range(2_500)]
    outputs = [[line[7:] + line[:7] for line in lines], ["".join(chr(ord(c) + 5_000) for c in line) for line in lines]]
    held_out = HeldOut("test", lines, lines, "zh", "zh")
    monkeypatch.setattr(
        sentences, "sentence_scores", lambda output, held_out: [50.0] * len(output)
    )  # the real one is slow
    shown = sentence_list(held_out, outputs, [[[]] * len(lines)] * 2)
    figures = {
        "held_out": {"num_sentences": len(lines), "source_language": "zh", "target_language": "zh"},
        "runs": [{"name": "a"}, {"name": "b"}],
        "sentences": shown,
    }
    num_bytes = len(sentence_browser(figures).to_html().encode())
    assert 0.9 * sentences.MOST_BYTES < num_bytes < sentences.MOST_BYTES + 10_000
    assert sentences.MOST_BYTES < 5_000_000 / 2  # the other half of the page is for everything else
    assert len(shown) < len(lines)
