"""Measurements that train: their plans are valid, their buckets hold what they say, mistakes are one line."""

import argparse
from pathlib import Path

import pytest
import sacrebleu

from support.configurations import configuration
from translator.api import Translator
from translator.atlas.chapters import extrapolation as extrapolation_part
from translator.atlas.measure import bahdanau, extrapolation, heads, plans, trainings
from translator.atlas.measure.__main__ import MEASUREMENTS, main
from translator.atlas.measure.small_runs import COMMON, SmallRun, command, train
from translator.atlas.shipped import with_provenance
from translator.data.tokenizer import Tokenizer
from translator.runs.directory import RunDirectory

PLACES = ("data.train=a", "data.valid=b")


def all_runs() -> list[SmallRun]:
    return [*plans.length_runs().values(), *plans.norm_runs().values(), *plans.score_runs().values()]


@pytest.mark.slow
def test_every_planned_run_is_a_valid_configuration_and_has_a_folder_of_its_own() -> None:
    runs = all_runs()
    assert len({run.name for run in runs}) == len(runs)
    assert len({run.options for run in runs}) == len(runs)
    for run in runs[::6]:
        names = [option.split("=")[0] for option in (*COMMON, *run.options)]
        assert len(set(names)) == len(names)
        config = configuration(*COMMON, *run.options, *PLACES)
        assert config.trainer.validate_every == config.trainer.max_updates  # the last weights are the final ones
        assert command(run).startswith("python -m translator.train experiment=demo_transformer")


def test_runs_about_lengths_differ_in_positions_only() -> None:
    runs = plans.length_runs((1,))
    assert {scheme for scheme, _ in runs} == {*plans.POSITIONS, plans.ALL_LENGTHS}
    for scheme in plans.POSITIONS:
        others = set(runs["none", 1].options) - {"model.positions=none"}
        assert set(runs[scheme, 1].options) - others == {f"model.positions={scheme}"}
    assert f"data.max_pieces={plans.TRAINED_PIECES}" not in runs[plans.ALL_LENGTHS, 1].options


def test_buckets_are_by_the_longer_side_with_its_end_mark() -> None:
    sources = [f"{'a ' * number}b" for number in range(1, 30)]
    tokenizer = Tokenizer.train([(text, text) for text in sources], kind="char", vocab_size=300)
    references = ["b"] * len(sources)
    buckets = extrapolation.bucket_sentences(tokenizer, sources, references, most=5)
    assert len(buckets) == len(extrapolation.BUCKETS)
    for bucket, (shortest, longest) in zip(buckets, extrapolation.BUCKETS, strict=True):
        found = [len(ids) for ids in tokenizer.encode_source([sources[number] for number in bucket])]
        expected = [len(ids) for ids in tokenizer.encode_source(sources) if shortest <= len(ids) <= longest]
        assert found == expected[:5]
    swapped = extrapolation.bucket_sentences(tokenizer, references, sources, most=5)
    assert swapped == buckets


def test_a_finished_run_is_not_trained_again(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "done")
    directory.path.mkdir()
    directory.metrics.write_text("{}")
    assert train(tmp_path, SmallRun("done", ("no.such=option",))).path == directory.path


def test_scores_by_length(monkeypatch: pytest.MonkeyPatch, atlas_run: Path, corpora: Path) -> None:
    """Against sacrebleu, and as the page shows them."""
    monkeypatch.setattr(extrapolation, "prepare_corpus", lambda work: corpora)
    monkeypatch.setattr(extrapolation, "train", lambda work, run: RunDirectory(atlas_run))
    monkeypatch.setattr(extrapolation, "BUCKETS", ((1, 20), (21, 40), (1000, 2000)))
    monkeypatch.setattr(extrapolation, "POSITIONS", ("sinusoidal",))
    monkeypatch.setattr(plans, "POSITIONS", ("sinusoidal",))
    found = extrapolation.measure(argparse.Namespace(work=corpora, seeds=[1], quick=True))
    assert [scheme["name"] for scheme in found["schemes"]] == ["sinusoidal", plans.ALL_LENGTHS]
    assert found["num_sentences"][0] > 0
    assert found["num_sentences"][2] == 0
    translator = Translator.load(atlas_run, "cpu", beam_size=1)
    assert isinstance(translator.tokenizer, Tokenizer)
    pairs = [line.read_text(encoding="utf-8").splitlines() for line in (corpora / "test.en", corpora / "test.de")]
    chosen = extrapolation.bucket_sentences(translator.tokenizer, *pairs, most=10)[0]
    texts = translator.translate([pairs[0][number] for number in chosen])
    expected = sacrebleu.corpus_bleu(texts, [[pairs[1][number] for number in chosen]], force=True).score
    scores = found["schemes"][0]["runs"][0]["scores"]
    assert scores[0]["bleu"] == pytest.approx(expected)
    assert scores[0]["low"] <= scores[0]["high"]
    assert scores[2]["bleu"] is None
    page = extrapolation_part.write(with_provenance("python -m some.command", found))
    assert f"{scores[0]['bleu']:.1f} [" in page
    assert "One run of each kind" in page
    for scheme in found["schemes"]:
        scheme["runs"] *= 2
    assert "means of 2 runs" in extrapolation_part.write(with_provenance("python -m some.command", found))


def test_learning_curves_are_those_of_the_runs(monkeypatch: pytest.MonkeyPatch, atlas_run: Path) -> None:
    monkeypatch.setattr(trainings, "prepare_corpus", lambda work: work)
    monkeypatch.setattr(trainings, "train", lambda work, run: RunDirectory(atlas_run))
    found = trainings.measure(argparse.Namespace(work=atlas_run, quick=False))
    assert [one["name"] for one in found["scores"]] == list(plans.SCORES)
    assert len(found["norms"]) == 4
    assert found["norms"][0]["train"] == [(10, 6.0), (20, 5.0), (30, 4.5)]  # as the run's log has them
    assert found["norms"][0]["validation"] == (30, 3.5)


def test_runs_are_measured_with_the_sizes_asked_for(
    monkeypatch: pytest.MonkeyPatch, atlas_run: Path, small_lstm: Path
) -> None:
    monkeypatch.setattr(heads, "measure_heads", lambda run, quick: {"run": run.folder, "quick": quick})
    monkeypatch.setattr(bahdanau, "measure_bahdanau", lambda run, quick: {"run": run.folder, "quick": quick})
    assert heads.measure(argparse.Namespace(run=atlas_run, quick=True)) == {"run": atlas_run, "quick": True}
    assert bahdanau.measure(argparse.Namespace(lstm_run=small_lstm, quick=False))["run"] == small_lstm


def test_mistakes_are_one_line(tmp_path: Path, small_lstm: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "out.json"
    (tmp_path / "file").touch()
    assert set(MEASUREMENTS) >= {"bahdanau", "extrapolation", "heads", "trainings"}
    for arguments, message in (
        (["heads", "--run", str(small_lstm)], "is a run with model=lstm; give it as --lstm-run"),
        (["heads", "--run", str(tmp_path / "gone")], "gone"),
        (["bahdanau", "--lstm-run", str(small_lstm)], "has no checkpoints"),
        (["trainings", "--work", str(tmp_path / "file")], "--work"),
        (["extrapolation", "--work", str(tmp_path / "file")], "--work"),
    ):
        assert main([*arguments, "-o", str(output)]) == 2
        lines = capsys.readouterr().err.splitlines()
        assert message in lines[-1]
        assert "Traceback" not in "".join(lines)
        assert not output.exists()
