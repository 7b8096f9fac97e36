"""Terms: files, matches in the source, how much of them has been written, and the `translate` command."""

import re
from pathlib import Path

import pytest

from support.fake_command import TranslateCommand
from support.fake_models import ByteTokenizer
from support.small_runs import make_small_run, write_corpora
from support.spelled_pieces import FewPieces
from translator.api import Translator
from translator.decoding.term_progress import PieceTexts, RequiredTerms, leave_out
from translator.decoding.term_requirements import NO_TERMS, Terminology
from translator.decoding.terms import Term, TermList
from translator.errors import OptionError, UserError
from translator.schema.decode import SearchOptions

BYTES = PieceTexts(ByteTokenizer())


def test_source_terms_are_whole_words_and_the_longest_wins() -> None:
    terms = TermList(
        [
            Term("card", "Karte"),
            Term("credit card", "Kreditkarte"),
            Term("US", "USA"),
            Term("c++", "C++"),
            Term("狗", "Hund"),
        ]
    )
    assert terms.required("Card by card, a credit card.") == ["Karte", "Karte", "Kreditkarte"]
    assert terms.required("discard cards postcard") == []
    assert terms.required("the US and us") == ["USA"]
    assert terms.required("We write C++ and c++.") == ["C++", "C++"]
    assert terms.required("大狗狗") == ["Hund", "Hund"]
    assert TermList([]).required("card") == []


def test_files_of_terms(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_bytes("\ufeff# a comment\n\n  dog \t der  Hund\r\ndog\tder Hund\n".encode())
    assert TermList.read(path, lambda text: " ".join(text.split())).required("a Dog") == ["der Hund"]
    for line, message in {
        "dog": "line 5: must be a source term, a tab and its translation",
        "dog\t ": "line 5: must be a source term",
        "a\tb\tc": "line 5: must be a source term",
        "dog\tKatze": "line 5: 'dog' already has the translation 'der  Hund'",
    }.items():
        path.write_text(f"# a comment\n\ndog\tder  Hund\n\n{line}\n", encoding="utf-8")
        with pytest.raises(UserError, match=message):
            TermList.read(path)


@pytest.mark.parametrize(
    ("text", "num_needed"),
    [
        ("", 4),  # a text may begin without a space
        (" ein", 5),
        (" ein Hund", 0),
        (" ein (Hund)", 0),
        (" Hunde", 5),
        (" Hundehund Hu", 2),
        (" Schund", 5),
        (" ein Schu", 5),
        (" Hund Hund", 0),
        (" ein ", 4),
    ],
)
def test_a_term_counts_as_a_whole_word_however_it_is_spelled(text: str, num_needed: int) -> None:
    assert RequiredTerms(["Hund"], BYTES).progress(text.encode()).num_needed == num_needed


def test_terms_do_not_overlap_in_the_text() -> None:
    both = RequiredTerms(["New York", "New York Times"], BYTES)
    needed = [
        both.progress(text.encode()).num_needed for text in (" New York", " New York Times", " New York Times New")
    ]
    # The first words are either of the terms; the longer one then takes them.
    assert needed == [15, 9, 5]
    assert both.progress(b" New York Times in New York").num_needed == 0
    twice = RequiredTerms(["a", "a"], BYTES)
    assert [twice.progress(text).num_needed for text in (b" a", b" a a", b" aa")] == [2, 0, 4]


def test_a_term_may_be_capitalised_at_the_beginning_only() -> None:
    required = RequiredTerms(["chien"], BYTES)
    assert required.progress(b" Chien").num_needed == 0
    assert required.progress(b" le Chien").num_needed > 0


def test_characters_written_byte_by_byte_and_languages_without_spaces() -> None:
    required = RequiredTerms(["猫"], BYTES, without_spaces=True)
    word = "猫".encode()
    assert [required.progress(b" " + "大".encode() + word[:n]).num_needed for n in range(4)] == [3, 2, 1, 0]
    latin = RequiredTerms(["iPad"], BYTES, without_spaces=True)
    assert BYTES.write(latin.progress("用".encode()).following) == b"i"
    assert BYTES.write(latin.progress(b"my").following) == b" ", "a word must not be joined to another"


def test_a_term_that_the_vocabulary_cannot_write_is_refused() -> None:
    with pytest.raises(UserError, match="cannot write 'cab'"):
        RequiredTerms(["cab"], PieceTexts(FewPieces()))


def test_the_last_terms_are_left_out_where_there_is_no_room() -> None:
    required = RequiredTerms(["a", "bb", "c"], BYTES)
    kept, left_out = leave_out(required, [], 5)
    assert (kept.terms, left_out) == (["a", "bb"], ["c"])
    assert leave_out(required, BYTES.spell(b" a") or [], 7)[1] == []
    assert leave_out(required, [], 0)[0].terms == []


def test_requirements_of_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "terms").write_text("dog\tHund\n", encoding="utf-8")
    terminology = Terminology(str(tmp_path / "terms"), ByteTokenizer(), None, " ")
    assert terminology.requirements("a cat", 5, [], SearchOptions()) is NO_TERMS
    assert terminology.requirements("a dog", 5, [], SearchOptions()).size == 5
    narrow = terminology.requirements("a dog", 5, [], SearchOptions(max_length_ratio=0, max_length_extra=3))
    assert (narrow.size, narrow.left_out) == (0, ("Hund",))


def test_translate_with_terms(translate: TranslateCommand, tmp_path: Path) -> None:
    (tmp_path / "terms.tsv").write_text("dog\thund\nbig dog\tdogge\n", encoding="utf-8")
    text = b"a dog and a Dog\n\ncats\nthe big dog. A dog!\n"
    plain = translate(stdin=text)[1].decode().splitlines()
    code, out, _ = translate("--terms", "terms.tsv", "--beam", 4, stdin=text)
    lines = out.decode().splitlines()
    assert code == 0
    assert lines[0].count("HUND") == 2
    assert lines[1:3] == plain[1:3] == ["", "CATS"]
    assert ("DOGGE" in lines[3], "HUND" in lines[3]) == (True, True)
    for options in (["--batch-tokens", "1"], ["--split-sentences"]):
        again = translate("--terms", "terms.tsv", "--beam", 4, *options, stdin=text)[1].decode().splitlines()
        assert again[:3] == lines[:3]
        assert all(word in again[3] for word in ("DOGGE", "HUND"))
    rows = translate("--terms", "terms.tsv", "--nbest", 3, "--scores", stdin=b"a dog\n")[1].decode().splitlines()
    assert len(rows) == 3
    assert all("HUND" in row for row in rows)
    (tmp_path / "prefix").write_text("xy\n", encoding="utf-8")
    out = translate("--terms", "terms.tsv", "--prefix", "prefix", stdin=b"a dog\n")[1]
    assert (out.startswith(b"XY"), b"HUND" in out) == (True, True)
    err = translate("--terms", "terms.tsv", "--max-length-ratio", 0, "--max-length-extra", 3, stdin=b"a dog\n")[2]
    assert "Warning: line 1 has no room for hund within its maximum length" in err


@pytest.mark.parametrize("model", ["transformer", "lstm"])
def test_real_models_write_their_terms_whatever_the_other_lines_are(tmp_path: Path, model: str) -> None:
    write_corpora(tmp_path)
    run = make_small_run(tmp_path / "run", tmp_path, model)
    (tmp_path / "terms").write_text("dogs\tHunde\nhouse\tHaus\nred\trot\n", encoding="utf-8")
    lines = ["Two dogs run.", "A man reads a book in the snow.", "The house is red.", "Red dogs, red house!", "Anna"]
    wanted = [["Hunde"], [], ["Haus", "rot"], ["Rot|rot", "Hunde", "rot", "Haus"], []]
    options = {"terms": str(tmp_path / "terms"), "max_length_extra": 25, "num_hypotheses": 2}
    translator = Translator.load(run, "cpu", **options)
    together = translator.translate_fully(lines)
    narrow = Translator.load(run, "cpu", **options, batch_tokens=1).translate_fully(lines)
    for line, words, found, in_small_batch in zip(lines, wanted, together, narrow, strict=True):
        (alone,) = translator.translate_fully([line])
        for other in (alone, in_small_batch):
            assert [output.text for output in other.outputs] == [output.text for output in found.outputs]
            scores = [output.score for output in other.outputs]
            assert scores == pytest.approx([output.score for output in found.outputs], rel=1e-4)
        assert not found.terms_left_out
        for output in found.outputs:
            assert all(re.search(rf"\b({word})\b", output.text) for word in words)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--terms", "missing"], "missing: no such file"),
        (["--terms", "terms", "--beam", "1"], "--terms terms: greedy search cannot enforce terms"),
        (["--terms", "terms", "--sample"], "--terms terms: sampling cannot enforce terms"),
        (["--terms", "terms", "--mbr", "4"], "--terms terms: minimum Bayes risk cannot enforce terms"),
        (["--terms", "terms"], "--terms terms, line 1: must be a source term, a tab and its translation"),
        (["--terms", "terms", "-o", "terms"], "terms would be overwritten"),
    ],
)
def test_mistakes_get_one_line(translate: TranslateCommand, tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "terms").write_text("dog\n", encoding="utf-8")
    code, _, err = translate(*arguments, stdin=b"a dog\n")
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


def test_ctranslate2_refuses_terms_by_name() -> None:
    from translator.engines.choice import check_options

    with pytest.raises(OptionError, match="terms=x: the ctranslate2 engine cannot enforce terms"):
        check_options(SearchOptions(terms="x"))
