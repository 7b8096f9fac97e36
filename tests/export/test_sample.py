"""How the translations of an export are compared with those of the run."""

from collections.abc import Sequence
from types import SimpleNamespace

import pytest
import torch

from support.exported_runs import PAIRS, make_run
from translator.errors import UserError
from translator.export.sample import Sample, SampleSearch, _is_tie, compare, make_sample
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
    with pytest.raises(UserError, match="--sample"):
        make_sample(run, [("", "x")], 9)


def test_differences_are_counted_and_scored(run: LoadedRun) -> None:
    sample = Sample(LINES, REFERENCES)

    def translate(lines: Sequence[str], search: SampleSearch) -> list[str]:
        return [*REFERENCES[:-2], "Etwas ganz anderes.", REFERENCES[-1]]

    found = compare(run, sample, translate, SampleSearch(beam_size=3))
    assert (found.num_compared, found.num_equal, found.differing, found.ties) == (6, 5, [4], [])
    assert found.bleu is not None
    assert found.bleu[0] == pytest.approx(100)
    assert 0 < found.bleu[1] < 95
    assert "beam 3: 5 of 6 translations equal" in str(found)


def test_outputs_of_the_same_score_are_ties(run: LoadedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("translator.export.sample.TIE", 1e3)
    found = compare(run, Sample(LINES, None), lambda lines, search: ["x"] * len(lines), SampleSearch(1))
    assert (found.ties, found.differing, found.bleu) == (list(range(6)), [], None)
    assert "0 of 6 translations equal, 6 different but equally likely" in str(found)


@pytest.mark.parametrize(("difference", "is_tie"), [(0.9e-5, True), (1.1e-5, False), (-0.9e-5, True), (-1.1e-5, False)])
def test_a_tie_is_a_difference_below_one_in_a_hundred_thousand_per_piece(difference: float, is_tie: bool) -> None:
    def forced(per_piece: float, num_pieces: int) -> SimpleNamespace:
        return SimpleNamespace(score=per_piece * num_pieces, piece_scores=[per_piece] * num_pieces)

    results = [forced(-0.5, 4), forced(-0.5 + difference, 7)]
    translator = SimpleNamespace(score=lambda sources, targets: results)
    assert _is_tie(translator, "source", "ours", "theirs") is is_tie  # type: ignore[arg-type]


def test_unfinished_outputs_are_not_compared(run: LoadedRun) -> None:
    def translate(lines: Sequence[str], search: SampleSearch) -> list[str]:
        return ["x"] * len(lines)

    found = compare(run, Sample(LINES, None), translate, SampleSearch(1, max_length=12))
    assert 0 < found.num_unfinished < 6
    assert found.num_compared + found.num_unfinished == 6
    with pytest.raises(UserError, match="longer than 1 pieces"):
        compare(run, Sample(LINES, None), translate, SampleSearch(1, max_length=1))
