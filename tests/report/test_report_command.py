"""`python -m translator.report` on small, untrained runs."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.small_runs import HOSTILE, TEST, TRAIN, make_small_run, write_corpora
from translator.api import Translator
from translator.build import report_command
from translator.build.report import ReportRequest, load_material
from translator.config import load_file
from translator.report import gather
from translator.report.__main__ import main, parser
from translator.report.gather import gather_figures
from translator.report.material import HeldOut, RunMaterial, text_statistics
from translator.report.page import report_page
from translator.runs.directory import RunDirectory
from translator.runs.hypotheses import store_hypotheses, stored_hypotheses
from translator.runs.latest import point_latest

SECTIONS = (
    *("verdict", "curves", "lengths", "frequency", "ngrams", "sentences", "detectors", "calibration", "attention"),
    *("search", "data", "reproducibility"),
)


@pytest.fixture(scope="module")
def reported(small_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    assert main([str(small_run), "-o", str(folder / "r.html"), "--json", str(folder / "r.json")]) == 0
    return folder


def test_the_page_has_every_section_and_the_json_the_same_figures(reported: Path) -> None:
    page = (reported / "r.html").read_text(encoding="utf-8")
    figures = json.loads((reported / "r.json").read_text(encoding="utf-8"))
    assert [page.index(f'<section id="{name}">') for name in SECTIONS] == sorted(
        page.index(f'<section id="{name}">') for name in SECTIONS
    )
    run = figures["runs"][0]
    assert figures["left_out"] == []
    assert f"{run['scores']['bleu']['value']:.1f}" in page
    assert run["scores"]["bleu"]["signature"] in page
    assert f"{100 * run['calibration']['expected_calibration_error']:.1f} %" in page
    assert run["attention"]["alignment"]["of_mean"]["num_sure"] == 9
    assert len(figures["sentences"]) == len(TEST)
    assert len(page.encode()) < 5_000_000
    assert report_page(figures) == page  # the page has no other source


def test_hostile_text_stays_text(reported: Path) -> None:
    page = (reported / "r.html").read_text(encoding="utf-8")
    assert "<script>window.hacked" not in page
    assert "<img" not in page
    assert "hacked" in page


@pytest.mark.slow  # two models
def test_two_runs_side_by_side(
    small_run: Path, small_lstm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "two.html"
    assert main([str(small_run), str(small_lstm), "-o", str(output), "--json", str(tmp_path / "two.json")]) == 0
    figures = json.loads((tmp_path / "two.json").read_text(encoding="utf-8"))
    assert [run["name"] for run in figures["runs"]] == ["small", "lstm"]
    assert figures["comparison"]["tests"][0]["metric"] == "bleu"
    assert '<section id="comparison">' in output.read_text(encoding="utf-8")
    assert figures["runs"][1]["attention"]["entropy"][0][0] > 0


def test_another_set_and_the_standard_output(
    small_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.en").write_text("A man reads.\nThe house is red.\n", encoding="utf-8")
    (tmp_path / "a.de").write_text("Ein Mann liest.\nDas Haus ist rot.\n", encoding="utf-8")
    texts = ["--source", str(tmp_path / "a.en"), "--reference", str(tmp_path / "a.de")]
    assert main([str(small_run), *texts, "-o", str(tmp_path / "r.html"), "--json", "-"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["held_out"]["num_sentences"] == 2
    assert figures["runs"][0]["attention"]["alignment"] is None


def test_stored_translations_are_not_made_again(corpora: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = RunDirectory(make_small_run(tmp_path / "run", corpora))
    sources = [source for source, _ in TEST]
    options = Translator.load(run.path, "cpu").options
    texts = ["x", "a\nb", "", "ü", "猫", "z"]
    store_hypotheses(run, "test", texts, sources, options)
    assert (run.path / "test.hypotheses.txt").read_text(encoding="utf-8") == "x\na b\n\nü\n猫\nz\n"
    _, (material,) = load_material(ReportRequest([run.path]))
    assert material.hypotheses == ["x", "a b", "", "ü", "猫", "z"]
    assert stored_hypotheses(run, "test", sources[1:], options) is None
    assert stored_hypotheses(run, "test", sources, options.changed(beam_size=1)) is None
    (run.path / "test.hypotheses.txt").write_text("y\n", encoding="utf-8")
    assert stored_hypotheses(run, "test", sources, options) is None
    store_hypotheses(run, "test", texts, sources, options)
    shutil.copy(make_small_run(tmp_path / "other", corpora, seed=5) / "model.safetensors", run.weights)
    assert stored_hypotheses(run, "test", sources, options) is None


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["{run}", "--source", "a.en"], "--source: needs --reference"),
        (["missing"], "missing: no such directory; give the directory of a training run"),
        (["{run}", "--source", "a.en", "--reference", "b.de"], "a.en: no such file"),
        (["{run}", "--gold-alignment", "{corpora}/train.en"], "is not an alignment"),
        (["{run}", "--source", "{corpora}/test.en", "--reference", "{corpora}/train.de"], "lines"),
        (["{run}", "-o", "{corpora}"], "is a directory"),
        (["{run}", "--device", "abacus"], "report: --device abacus: there is no such device here"),
    ],
)  # fmt: skip
def test_mistakes_get_one_line(
    arguments: list[str], expected: str, small_run: Path, corpora: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([argument.format(run=small_run, corpora=corpora) for argument in arguments]) == 2
    error = capsys.readouterr().err
    assert expected in error
    assert error.count("\n") == 1


def test_missing_corpora_are_named_with_a_remedy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_corpora(tmp_path / "corpora")
    run = make_small_run(tmp_path / "run", tmp_path / "corpora")
    (tmp_path / "corpora" / "test.en").rename(tmp_path / "kept.en")
    assert main([str(run)]) == 2
    error = capsys.readouterr().err
    assert f"{tmp_path}/corpora/test.en" in error
    assert "--source FILE --reference FILE" in error
    assert error.count("\n") == 1
    texts = ["--source", str(tmp_path / "kept.en"), "--reference", str(tmp_path / "corpora" / "test.de")]
    assert main([str(run), *texts]) == 0
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "the training text was not available" in page


def test_what_there_is_no_time_for_is_left_out_and_named(small_run: Path) -> None:
    held_out, materials = load_material(ReportRequest([small_run]))
    times = iter(range(100))
    figures = gather_figures(held_out, materials, full_command="make it", is_late=lambda: next(times) >= 3)
    assert figures["runs"][0]["scores"] is not None
    assert figures["runs"][0]["ngrams"] is None
    assert "ngrams" in figures["left_out"]
    page = report_page(figures)
    assert "make it" in page
    assert HOSTILE not in page
    assert figures["format"] == gather.FORMAT


def test_a_run_is_not_compared_with_itself(corpora: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_small_run(tmp_path / "run", corpora)
    point_latest(RunDirectory(run))
    for other in (tmp_path / "latest", tmp_path / "run" / ".." / "run"):
        assert main([str(run), str(other)]) == 2
        assert capsys.readouterr().err == f"report: {other}: is the same run as {run}; give another run, or one only\n"


def counted_run(
    small_run: Path, name: str, training: Sequence[tuple[str, str]], at_most: int | None = None
) -> RunMaterial:
    """A run whose translations are the references."""
    run = RunDirectory(small_run)
    counted = text_statistics(training, "en", "de", at_most=at_most)
    return RunMaterial(name, run, load_file(run.config), [target for _, target in TEST], counted)


def judged_set() -> HeldOut:
    return HeldOut("test", [source for source, _ in TEST], [target for _, target in TEST], "en", "de")


def test_counts_over_a_part_of_the_training_text_are_labelled_as_such(small_run: Path) -> None:
    whole = report_page(gather_figures(judged_set(), [counted_run(small_run, "a", TRAIN)]))
    assert "Word accuracy by frequency in training<" in whole
    assert "pairs of training" not in whole
    part = report_page(gather_figures(judged_set(), [counted_run(small_run, "a", TRAIN, 3)]))
    assert "Word accuracy by frequency in the first 3 pairs of training<" in part
    assert "in training<" not in part
    assert '"x":"times in the first 3 pairs of training"' in part
    assert "words of the held-out set that are in the first 3 pairs of training" in part
    nothing = gather_figures(judged_set(), [counted_run(small_run, "a", TRAIN, 0)])
    assert nothing["runs"][0]["frequency"] is None


def test_the_vocabulary_is_judged_by_text_as_the_run_normalises_it(small_run: Path) -> None:
    run = counted_run(small_run, "a", TRAIN)
    run.hypotheses = None
    cards = [
        gather_figures(HeldOut("test", ["A man."], [text], "en", "de"), [run])["runs"][0]["data"]["vocabulary"]
        for text in ("M\u00e4nner", "Ma\u0308n\u00adner")
    ]
    assert cards[0] == cards[1]


def test_figures_by_training_frequency_name_their_run_if_the_runs_differ(small_run: Path) -> None:
    first = counted_run(small_run, "a", TRAIN)
    same = report_page(gather_figures(judged_set(), [first, counted_run(small_run, "b", TRAIN)]))
    assert '"x":"times in training"' in same
    assert "training of a" not in same
    differing = gather_figures(judged_set(), [first, counted_run(small_run, "b", TRAIN[:3])])
    page = report_page(differing)
    assert '"x":"times in training of a"' in page
    never = [run["frequency"][0]["num_reference"] for run in differing["runs"]]
    assert never[0] != never[1]
    assert f"{never[0]} (a), {never[1]} (b) in the references" in page


def test_without_a_name_the_page_is_in_the_folder_of_the_run(corpora: Path, tmp_path: Path) -> None:
    run = make_small_run(tmp_path / "run", corpora)
    texts = ["--source", str(corpora / "valid.en"), "--reference", str(corpora / "valid.de")]
    report_command.run(parser().parse_args([str(run), *texts, "--threads", "1"]))
    assert "2 sentences of" in (run / "report.html").read_text(encoding="utf-8")
