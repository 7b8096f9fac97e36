"""The report that training writes at its end."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.configurations import configuration
from support.small_runs import TEST, make_small_run, write_corpora
from translator import train
from translator.build import end_report
from translator.build.data import PreparedData
from translator.build.end_report import EndReport, KeptTranslations, reserved_seconds
from translator.build.report import ReportRequest, load_material
from translator.config import load_file
from translator.runs.directory import RunDirectory
from translator.training.precision import Execution
from translator.training.validation import Validator
from translator.training.validation_result import TextScores

SMALL = [
    *("model=transformer_tiny", "model.encoder_layers=1", "model.decoder_layers=1", "model.model_size=16"),
    *("trainer=smoke", "trainer.max_updates=2", "trainer.validate_every=2", "tokenizer.vocab_size=330"),
    *("trainer.num_samples=0", "decode.max_length_ratio=1", "decode.max_length_extra=2", "data=text"),
]


def trained(folder: Path, *options: str, with_test: bool = True) -> Path:
    write_corpora(folder / "corpora")
    splits = ("train", "valid", "test") if with_test else ("train", "valid")
    data = [f"data.{split}={folder / 'corpora' / split}" for split in splits]
    run_dir = folder / "run"
    cache = f"data.cache_dir={folder / 'cache'}"
    train.run(configuration(*SMALL, *data, cache, f"run_dir={run_dir}", *options))
    return run_dir


@pytest.mark.parametrize(("with_test", "split"), [(True, "test"), pytest.param(False, "valid", marks=pytest.mark.slow)])
def test_training_ends_by_naming_its_report(
    with_test: bool, split: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = trained(tmp_path, with_test=with_test)
    assert capsys.readouterr().err.strip().splitlines()[-1] == f"report       {run / 'report.html'}"
    page = (run / "report.html").read_text(encoding="utf-8")
    metrics = json.loads((run / "metrics.json").read_text(encoding="utf-8"))
    shown = metrics["test"] if with_test else metrics["validation"]
    assert f"BLEU {shown['bleu']:.1f} [" in page
    assert f"without attention, calibration, search. The full one: <code>python -m translator.report {run}" in page
    lines = (run / f"{split}.hypotheses.txt").read_text(encoding="utf-8").split("\n")
    assert len(lines) - 1 == (len(TEST) if with_test else 2)
    manifest = RunDirectory(run).read_manifest()
    assert manifest["command"]
    assert manifest["hardware"]["cores"] >= 1
    # The full report uses these translations, and they are the ones that the model makes.
    held_out, (material,) = load_material(ReportRequest([run]))
    assert material.hypotheses == lines[:-1]
    for name in (f"{split}.hypotheses.txt", f"{split}.hypotheses.json"):
        (run / name).unlink()
    assert load_material(ReportRequest([run]))[1][0].hypotheses == lines[:-1]
    assert len(held_out) == len(lines) - 1


@pytest.mark.slow
def test_it_can_be_switched_off(tmp_path: Path) -> None:
    run = trained(tmp_path, "trainer.report=false")
    assert not (run / "report.html").exists()
    assert (run / "metrics.json").exists()


def test_a_failed_report_is_one_line_and_does_not_fail_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*arguments: Any, **options: Any) -> None:
        raise RuntimeError("a mistake\nin two lines")

    monkeypatch.setattr("translator.report.page.report_page", fail)
    run = trained(tmp_path)
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last.startswith("warning: the report could not be written (a mistake); make it with python -m")
    assert (run / "metrics.json").exists()
    assert not (run / "report.html").exists()


def test_a_complete_run_has_its_translations_and_nothing_temporary_wherever_it_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException): ...

    def be_killed(*arguments: Any) -> None:
        raise Killed

    monkeypatch.setattr(EndReport, "write", be_killed)  # while the page is being written
    with pytest.raises(Killed):
        trained(tmp_path)
    run = tmp_path / "run"
    left_behind = run / f".report.html.tmp-{2**22}"  # no process has such a number
    left_behind.touch()
    os.utime(left_behind, (0, 0))
    assert (run / "metrics.json").exists()
    assert (run / "test.hypotheses.json").exists()
    trained(tmp_path, "resume=auto")
    assert not left_behind.exists()


def test_it_is_left_out_if_no_time_remains(tmp_path: Path) -> None:
    write_corpora(tmp_path / "corpora")
    run = RunDirectory(make_small_run(tmp_path / "run", tmp_path / "corpora"))
    said: list[str] = []
    data: PreparedData = None  # type: ignore[assignment]  # not looked at
    writer = EndReport(load_file(run.config), data, run, said.append, lambda: True)
    validator = Validator(loss=None, batches=[], execution=Execution.__new__(Execution), sources=["a"])  # type: ignore[arg-type]
    writer.keep("test", validator, ["b"])
    assert writer.write("test", validator, ["b"]) is None
    assert said == [f"no time was left for the report; make it with python -m translator.report {run.path}"]
    assert (run.path / "test.hypotheses.txt").read_text(encoding="utf-8") == "b\n"


def test_translations_are_kept_while_they_may_be_those_of_the_final_weights() -> None:
    kept = KeptTranslations()
    scores = iter([10.0, 30.0, 20.0, 99.0])

    def score(hypotheses: list[str], references: list[str], sources: list[str]) -> TextScores:
        return TextScores({"bleu": next(scores)})

    plain = Validator(loss=None, batches=[], execution=None, sources=["a", "b"], score=score)  # type: ignore[arg-type]
    watched = kept.watch(plain)
    assert watched.score is not None
    for number in range(3):
        watched.score([f"{number}", "x"], ["r", "r"], ["a", "b"])
    sample = replace(watched, sources=["a"])
    assert sample.score is not None
    sample.score(["only a sample"], ["r"], ["a"])
    assert kept.with_scores({"bleu": 30.0, "loss": 1.0}) == ["1", "x"]  # the best
    assert kept.with_scores({"bleu": 20.0}) == ["2", "x"]  # the latest
    assert kept.with_scores({"bleu": 10.0}) is None
    assert kept.with_scores({}) is None


def test_translations_with_the_same_scores_cannot_be_told_apart() -> None:
    kept = KeptTranslations(num_sentences=1)
    for text in ("first", "second"):
        kept._keep({"bleu": 0.0}, [text])
    assert kept.with_scores({"bleu": 0.0}) is None
    kept._keep({"bleu": 1.0}, ["third"])
    assert kept.with_scores({"bleu": 1.0}) == ["third"]


def test_little_of_the_given_time_is_reserved(small_config: Any) -> None:
    assert reserved_seconds(small_config(None, True), 1_000) == 0
    assert reserved_seconds(small_config("1m", True), 1_000) == pytest.approx(60 * end_report._SHARE_OF_TIME)
    assert 2 < reserved_seconds(small_config("10h", True), 1_000) < 30
    assert reserved_seconds(small_config("10h", False), 1_000) == 0


@pytest.fixture
def small_config(tmp_path: Path) -> Any:
    write_corpora(tmp_path / "corpora")
    config = load_file(RunDirectory(make_small_run(tmp_path / "run", tmp_path / "corpora")).config)

    def make(max_time: str | None, report: bool) -> Any:
        return replace(config, trainer=replace(config.trainer, max_time=max_time, report=report))

    return make
