"""How the translations of an export are compared with those of the run."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from support.exported_runs import PAIRS, make_run
from translator.decoding.line_translator import LineTranslator
from translator.errors import UserError
from translator.evaluation.metrics import score_corpus
from translator.export.sample import (
    Sample,
    SampleSearch,
    Written,
    _is_tie,
    compare,
    make_sample,
    search_options,
    written_by,
)
from translator.runs.loading import LoadedRun, load_run

LINES = [source for source, _ in PAIRS]
REFERENCES = [target for _, target in PAIRS]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> LoadedRun:
    return load_run(make_run(tmp_path_factory.mktemp("runs") / "run"), torch.device("cpu"))


def test_lines_are_spread_over_the_set_and_fit_the_model(run: LoadedRun) -> None:
    pairs = [(f"line  {number}", f"Zeile {number}") for number in range(10)]
    assert make_sample(run, pairs, 3).lines == ["line 0", "line 3", "line 6"]
    assert make_sample(run, pairs, 3).references == ["Zeile 0", "Zeile 3", "Zeile 6"]
    assert make_sample(run, [("", "x"), (" ", "x"), ("word " * 500, "x"), ("a", None)], 9) == Sample(["a"], None)
    with pytest.raises(UserError, match=r"^lines\.txt: has no line that is neither blank nor .*--sample FILE$"):
        make_sample(run, [("", "x")], 9, origin="lines.txt")


@pytest.mark.parametrize("normalize", [False, True])
def test_every_line_has_a_translation(normalize: bool, run: LoadedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Invisible lines have none."""
    monkeypatch.setattr(run.config.data.cleaning, "normalize", normalize)
    pairs = [(text, None) for text in ("\u200b", "\u3000", "▁▁", "\ufeff\u00ad", "She sings.")]
    sample = make_sample(run, pairs, 9)
    assert sample.lines == ["She sings."]
    translator = LineTranslator(run.model, run.tokenizer, options=search_options(SampleSearch(1)))
    assert len(written_by(translator, sample.lines)) == 1


def test_lines_are_no_longer_than_the_positions_of_any_format(run: LoadedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run.config.data, "max_pieces", 6_000)
    fits, too_long = ("a " * number for number in (400, 1_200))
    assert [len(ids) > 1_024 for ids in run.tokenizer.encode_source([fits, too_long])] == [False, True]
    assert make_sample(run, [(too_long, None), (fits, None)], 9).lines == [fits.strip()]


def test_only_our_own_tokenizer_tells_its_mark_from_a_space(run: LoadedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [("a▁man", None), ("She sings.", None)]
    assert make_sample(run, pairs, 9).lines == ["a man", "She sings."]
    monkeypatch.setattr(run.config.data.cleaning, "normalize", False)
    assert make_sample(run, pairs, 9).lines == ["She sings."]


def written(run: LoadedRun, texts: Sequence[str]) -> list[Written]:
    return [Written(*both) for both in zip(texts, run.tokenizer.encode_target(list(texts)), strict=True)]


def test_differences_are_counted_and_scored(run: LoadedRun) -> None:
    def translate(lines: Sequence[str], search: SampleSearch) -> list[Written]:
        return written(run, [*REFERENCES[:-2], "Etwas ganz anderes.", REFERENCES[-1]])

    for search in (SampleSearch(1), SampleSearch(3)):
        found = compare(run, Sample(LINES, REFERENCES), translate, search)
        assert (found.num_compared, found.num_equal, found.differing, found.ties) == (6, 5, [4], [])
        assert found.bleu is not None
        assert found.bleu[0] == pytest.approx(100)
        assert 0 < found.bleu[1] < 95
        assert str(found).startswith(f"{search.name}: 5 of 6 translations equal; BLEU 100.00 before the export, ")
        assert found.is_telling


def test_without_references_lower_precision_is_scored_against_the_translations_of_the_run(run: LoadedRun) -> None:
    def translate(lines: Sequence[str], search: SampleSearch) -> list[Written]:
        return written(run, [*REFERENCES[:-2], "Etwas ganz anderes.", REFERENCES[-1]])

    found = compare(run, Sample(LINES, None), translate, SampleSearch(1), is_exact=False)
    expected = score_corpus([one.text for one in translate([], found.search)], REFERENCES, "de", metrics=("bleu",))
    assert found.bleu is None
    assert found.own_bleu == expected["bleu"]
    assert str(found).endswith(f"; BLEU {expected['bleu']:.2f} against the run's own translations")
    for sample, is_exact in ((Sample(LINES, None), True), (Sample(LINES, REFERENCES), False)):
        assert "own translations" not in str(compare(run, sample, translate, SampleSearch(1), is_exact=is_exact))


def test_outputs_of_the_same_score_are_ties(run: LoadedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("translator.export.sample.TIE", 1e3)
    for search in (SampleSearch(1), SampleSearch(3)):
        found = compare(run, Sample(LINES, None), lambda lines, _: written(run, ["x"] * len(lines)), search)
        assert (found.ties, found.differing, found.bleu) == (list(range(6)), [], None)
        assert "0 of 6 translations equal, 6 different but equally likely" in str(found)


def test_the_same_pieces_with_another_text_are_not_a_tie(run: LoadedRun) -> None:
    def misspelt(lines: Sequence[str], search: SampleSearch) -> list[Written]:
        return [
            one if number else Written(f" {one.text}", one.ids) for number, one in enumerate(written(run, REFERENCES))
        ]

    assert compare(run, Sample(LINES, None), misspelt, SampleSearch(1)).differing == [0]


@pytest.mark.parametrize(("difference", "is_tie"), [(0.9e-5, True), (1.1e-5, False), (-0.9e-5, True), (-1.1e-5, False)])
def test_a_tie_is_a_difference_below_one_in_a_hundred_thousand_per_piece(difference: float, is_tie: bool) -> None:
    def forced(per_piece: float, num_pieces: int) -> SimpleNamespace:
        return SimpleNamespace(score=per_piece * num_pieces, piece_scores=[per_piece] * num_pieces)

    translator = forcing(lambda targets: [forced(-0.5, 4), forced(-0.5 + difference, 7)])
    ours, theirs = Written("ours", [5, 6, 7]), Written("theirs", [5, 7, 9, 9, 9, 9])
    assert _is_tie(translator, SampleSearch(3), "source", ours, theirs) is is_tie


@pytest.mark.parametrize(("difference", "is_tie"), [(0.9e-5, True), (1.1e-5, False)])
@pytest.mark.parametrize(("theirs", "compared"), [([5, 7, 9, 9], [5, 7]), ([5], [5])], ids=["other piece", "end"])
def test_greedily_only_the_first_piece_that_differs_decides_on_a_tie(
    difference: float, is_tie: bool, theirs: list[int], compared: list[int]
) -> None:
    def force(targets: list[list[int]]) -> list[SimpleNamespace]:
        assert targets == [[5, 6], compared]
        return [SimpleNamespace(piece_scores=[-1, -0.5, -3]), SimpleNamespace(piece_scores=[-1, -0.5 - difference])]

    ours, others = Written("ours", [5, 6, 8]), Written("theirs", theirs)
    assert _is_tie(forcing(force), SampleSearch(1), "source", ours, others) is is_tie


def forcing(force: Callable[[list[list[int]]], list[SimpleNamespace]]) -> Any:
    """In place of a translator, with given results of forced decoding."""
    return SimpleNamespace(
        model=torch.nn.Identity(),
        encode_sources=lambda texts: texts,
        tensors=lambda ids: (None, None),
        force=lambda source, mask, targets: force(targets),
    )


def test_greedy_outputs_are_compared_up_to_the_longest_length_and_longer_beams_not_at_all(run: LoadedRun) -> None:
    def translate(lines: Sequence[str], search: SampleSearch) -> list[Written]:
        return [*written(run, REFERENCES[:-1]), Written("x", [9] * 12)]

    greedy = compare(run, Sample(LINES, None), translate, SampleSearch(1, max_length=12))
    assert (greedy.num_compared, greedy.differing) == (6, [5])
    assert 0 < greedy.num_unfinished < 6
    assert str(greedy).endswith(f"; {greedy.num_unfinished} longer than 12 pieces compared up to there")
    beam = compare(run, Sample(LINES, None), translate, SampleSearch(3, max_length=12))
    assert (beam.num_unfinished, beam.num_compared) == (greedy.num_unfinished, 6 - greedy.num_unfinished)
    nothing = compare(run, Sample(LINES, None), translate, SampleSearch(3, max_length=1))
    assert str(nothing).startswith("beam 3: 0 of 0 translations equal")
    assert str(nothing).endswith("; 6 longer than 1 pieces not compared")
    assert not nothing.is_telling


def test_equal_translations_of_different_lines_are_named(run: LoadedRun) -> None:
    sample = Sample([LINES[0]] * 4 + LINES[1:2], None)
    found = compare(run, sample, lambda lines, _: written(run, REFERENCES[:1] * 4 + REFERENCES[1:2]), SampleSearch(1))
    assert str(found) == "greedy: 5 of 5 translations equal; they are only 2 different texts, which shows little"
    assert not found.is_telling
    one = compare(run, sample, lambda lines, _: written(run, ["x"] * 5), SampleSearch(1, max_length=1))
    assert "; they are the same text, which shows little; 5 longer" in str(one)
