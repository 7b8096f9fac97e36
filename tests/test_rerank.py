"""Reranking: other runs judge the hypotheses of a beam, with weights that are given or tuned on the validation set."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from support.small_runs import TEST, make_small_run, write_corpora
from translator import compare, evaluate, translate
from translator.api import Translator
from translator.augment import main as augment
from translator.build.report import ReportRequest, load_material
from translator.config import load_file, save_file
from translator.data.normalization import normalize_text
from translator.decoding.forced_decoding import Forced
from translator.decoding.hypotheses import Hypothesis
from translator.decoding.rerank import Judge, Reranker
from translator.errors import OptionError, UserError
from translator.evaluation.metrics import score_corpus
from translator.ids import BOS, EOS
from translator.runs.loading import load_run
from translator.runs.reranking import load_judge, tuned_judges
from translator.schema.rerank import RerankOptions, split_weight
from translator.tune import main as tune
from translator.tune_rerank import run as tune_rerank

SOURCES = [source for source, _ in TEST if source]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run from English to German, one of another kind, one of the opposite direction, and one from right to left."""
    folder = tmp_path_factory.mktemp("rerank")
    write_corpora(folder)
    make_small_run(folder / "run", folder)
    make_small_run(folder / "other", folder, "lstm", seed=2)
    reverse = make_small_run(folder / "reverse", folder, seed=3)
    config = load_file(reverse / "config.yaml")
    config.data.source, config.data.target = "de", "en"
    save_file(config, reverse / "config.yaml")
    backwards = make_small_run(folder / "backwards", folder, seed=4)
    config = load_file(backwards / "config.yaml")
    config.data.reverse_target = True
    save_file(config, backwards / "config.yaml")
    return folder


def checksum(run: Path) -> str:
    return load_run(run, torch.device("cpu")).weights_checksum


def test_hypotheses_are_ordered_by_the_weighted_sum_of_all_judgements(folder: Path) -> None:
    plain = Translator.load(folder / "run", "cpu", num_hypotheses=3).translate_fully(SOURCES)
    same, opposite = (Translator.load(folder / name, "cpu") for name in ("other", "reverse"))
    judges = [f"{folder / 'other'}:0.7", f"{folder / 'reverse'}:0.4"]
    reranked = Translator.load(folder / "run", "cpu", num_hypotheses=2, rerank=judges, rerank_length=0.05)
    moved = 0
    for source, before, after in zip(SOURCES, plain, reranked.translate_fully(SOURCES), strict=True):
        expected = []
        for output in before.outputs:
            (forward,), (backward,) = same.score([source], [output.text]), opposite.score([output.text], [source])
            value = output.normalized_score + 0.7 * np.mean(forward.piece_scores) + 0.4 * np.mean(backward.piece_scores)
            expected.append((value + 0.05 * (output.num_pieces + 1), output.text, output.score))
        expected.sort(key=lambda one: -one[0])
        assert [output.text for output in after.outputs] == [text for _, text, _ in expected[:2]]
        values = [(output.normalized_score, output.score) for output in after.outputs]
        assert values == [pytest.approx((value, score), abs=1e-3) for value, _, score in expected[:2]]
        moved += after.outputs[0].text != before.outputs[0].text
    assert moved, "in one case at least the order has changed"
    small = Translator.load(folder / "run", "cpu", rerank=judges, rerank_length=0.05, batch_tokens=1)
    assert small.translate(["", *SOURCES]) == ["", *(one.outputs[0].text for one in reranked.translate_fully(SOURCES))]


def test_weights_are_tuned_on_the_validation_set_and_used_from_then_on(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_small_run(tmp_path / "run", folder)
    arguments = [str(run), "--rerank", str(folder / "other"), "--rerank", str(folder / "reverse"), "--metric", "chrf"]
    arguments += ["--device", "cpu"]
    before = (run / "config.yaml").read_bytes()
    assert tune([*arguments, "--dry-run"]) == 0
    assert not (run / "tuning.json").exists()
    capsys.readouterr()
    assert tune(arguments) == 0
    said = capsys.readouterr()
    assert "chrf" in said.out
    record = json.loads((run / "tuning.json").read_text(encoding="utf-8"))
    rerank = record["rerank"]
    assert rerank["after"] > rerank["before"]
    useful = [name for weight, name in re.findall(r"^weight +([0-9.]+)  \S+/(\w+)", said.err, re.M) if float(weight)]
    assert useful, "one without weight would be asked for nothing"
    for judge, name in zip(rerank["judges"], useful, strict=True):
        assert not Path(judge["run"]).is_absolute()
        assert (run / judge["run"]).resolve() == (folder / name).resolve()
        assert judge["weights_sha256"] == checksum(folder / name)
    assert all(judge["weight"] > 0 for judge in rerank["judges"])
    assert (run / "config.yaml").read_bytes() == before
    sources, references = zip(*TEST[:2], strict=True)  # the validation set of the small runs
    for options, expected in (({}, rerank["after"]), ({"rerank": ["none"]}, rerank["before"])):
        hypotheses = Translator.load(run, "cpu", **options).translate(sources)  # type: ignore[arg-type]
        assert score_corpus(hypotheses, references, "de", metrics=("chrf",))["chrf"] == pytest.approx(
            expected, abs=1e-3
        )
    for name, texts in (("source", sources), ("reference", references)):
        (tmp_path / name).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    request = ReportRequest([run], tmp_path / "source", tmp_path / "reference", device="cpu")
    assert load_material(request)[1][0].hypotheses == hypotheses, "a report is about the run by itself"
    # Tuning the search makes the weights obsolete.
    assert tune([str(run), "--beam", "2", "--alpha", "1", "--metric", "chrf", "--device", "cpu"]) == 0
    assert "tune them again" in capsys.readouterr().err
    assert tuned_judges(run) == ([], 0.0)


def mean_log_probability(run: Path, source: str, target: str) -> float:
    """Of the reversed pieces and EOS, by the forward pass of the model in double precision."""
    loaded = load_run(run, torch.device("cpu"))
    (source_ids,) = loaded.tokenizer.encode_source([source])
    (pieces,) = loaded.tokenizer.encode_target([normalize_text(target)])
    sources, written = torch.tensor([source_ids]), [*reversed(pieces), EOS]
    model = loaded.model.double()
    with torch.no_grad():
        states = model(sources, torch.ones_like(sources, dtype=torch.bool), torch.tensor([[BOS, *written[:-1]]])).states
        log_probs = torch.log_softmax(model.project(states[0]), -1)
    return float(log_probs[range(len(written)), written].mean())


def test_a_judge_from_right_to_left_scores_the_reversed_pieces(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judge = load_judge(("en", "de"), str(folder / "backwards"), 1.0, torch.device("cpu"))
    assert not judge.is_reverse, "it is of the same direction"
    plain = Translator.load(folder / "run", "cpu", num_hypotheses=3).translate_fully(SOURCES[:2])
    judged = Translator.load(folder / "run", "cpu", num_hypotheses=3, rerank=[f"{folder / 'backwards'}:0.8"])
    for source, before, after in zip(SOURCES[:2], plain, judged.translate_fully(SOURCES[:2]), strict=True):
        texts = [output.text for output in before.outputs]
        expected = [mean_log_probability(folder / "backwards", source, text) for text in texts]
        assert judge.scores([source] * 3, texts) == pytest.approx(expected, rel=1e-4)
        sums = [output.normalized_score + 0.8 * value for output, value in zip(before.outputs, expected, strict=True)]
        order = sorted(range(3), key=lambda index: -sums[index])
        assert [output.text for output in after.outputs] == [texts[index] for index in order]
        assert [output.normalized_score for output in after.outputs] == pytest.approx(
            [sums[index] for index in order], rel=1e-4
        )
    run = make_small_run(tmp_path / "run", folder)
    assert tune([str(run), "--rerank", str(folder / "backwards"), "--metric", "chrf", "--device", "cpu"]) == 0
    assert str(folder / "backwards") in capsys.readouterr().err
    french = load_file(make_small_run(folder / "backwards-french", folder) / "config.yaml")
    french.data.target, french.data.reverse_target = "fr", True
    save_file(french, folder / "backwards-french/config.yaml")
    with pytest.raises(UserError, match="it translates from en to fr; a run from en to de can be reranked"):
        load_judge(("en", "de"), str(folder / "backwards-french"), 1.0, torch.device("cpu"))


@pytest.mark.parametrize("options", [[], ["--mbr", "3"]], ids=["reranked", "minimum risk"])
def test_synthetic_pairs_are_kept_by_what_the_run_itself_says_of_them(
    folder: Path, tmp_path: Path, options: list[str]
) -> None:
    run = make_small_run(tmp_path / "run", folder)
    if not options:
        judges = [{"run": str(folder / "other"), "weight": 0.5}]
        (run / "tuning.json").write_text(json.dumps({"rerank": {"judges": judges, "length": 3.0}}), encoding="utf-8")
    (tmp_path / "text").write_text("".join(f"{source}\n" for source in SOURCES), encoding="utf-8")
    loaded = Translator.load(run, "cpu", num_hypotheses=3, max_length_ratio=0.2, rerank=["none"])
    plain = loaded.translate_fully(SOURCES)
    scores = {normalize_text(output.text): output.normalized_score for found in plain for output in found.outputs}
    arguments = ["--model", str(run), "--kind", "forward", str(tmp_path / "text"), "--nbest", "3", "--max-ratio", "0"]
    arguments += ["--device", "cpu", "--quiet", "--max-length-ratio", "0.2", *options]

    def kept(name: str, *limits: str) -> list[str]:
        assert augment([*arguments, "-o", str(tmp_path / name), *limits]) == 0
        return (tmp_path / f"{name}.de").read_text(encoding="utf-8").splitlines()

    everything = kept("all")
    assert len(everything) > 3
    limit = sorted(scores[text] for text in everything)[len(everything) // 2]
    likely = [text for text in everything if scores[text] >= limit]
    assert kept("likely", "--min-score", str(limit - 1e-4)) == likely
    assert kept("share", "--keep-share", str(len(likely) / len(everything))) == likely


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rerank", "missing"], "--rerank missing: no such directory"),
        (["--rerank", "run:0.5", "--rerank", "none"], "`none` cannot be given together with runs"),
        (["--rerank", "reverse", "--beam", "1"], "--rerank: greedy search finds only one translation"),
        (["--rerank", "reverse", "--sample"], "--rerank: sampling finds only one translation; add --nbest 8"),
        (["--rerank", "reverse", "--mbr", "4"], "--rerank: minimum Bayes risk makes its own choice"),
        (["--rerank-length", "1"], "--rerank-length 1.0: is only used for reranking; add --rerank RUN"),
        (["--rerank", "run"], "--rerank run: is the run itself, whose score is always used; give another run"),
        (["--rerank", "french"], "--rerank french: it translates from en to fr; a run from en to de can be reranked"),
    ],
)
def test_mistakes_get_one_line(
    folder: Path,
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    if not (folder / "french").exists():
        config = load_file(make_small_run(folder / "french", folder) / "config.yaml")
        config.data.target = "fr"
        save_file(config, folder / "french/config.yaml")
    assert translate.main(["--model", "run", "--quiet", "test.en", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_tuning_refuses_what_contradicts_reranking(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tune_rerank.__module__ == "translator.tune_rerank"
    for arguments, message in (
        (["--rerank", str(folder / "run")], "is the run itself"),
        (["--rerank", str(folder / "other"), "--beam", "4"], "--beam: reranking uses the run's own beam"),
        (["--rerank", f"{folder / 'other'}:0.5"], f"the weight is what is tuned; leave :0.5 out and give {folder}"),
    ):
        assert tune([str(folder / "run"), *arguments, "--device", "cpu"]) == 2
        assert message in capsys.readouterr().err
    both = make_small_run(folder / "both", folder, both_directions=True)
    assert tune([str(both), "--rerank", str(folder / "other"), "--to", "en", "--device", "cpu"]) == 2
    assert "--to en: weights for reranking are those of the run's own direction, into de" in capsys.readouterr().err


@pytest.fixture
def tuned(folder: Path, tmp_path: Path) -> Path:
    """A folder with a run, its judge and what `tune --rerank` has written."""
    shutil.copytree(folder / "run", tmp_path / "runs/run")
    shutil.copytree(folder / "other", tmp_path / "runs/other")
    judge = {"run": "../other", "weight": 2.0, "weights_sha256": checksum(folder / "other")}
    record = {"rerank": {"judges": [judge], "length": 0.1}}
    (tmp_path / "runs/run/tuning.json").write_text(json.dumps(record), encoding="utf-8")
    return tmp_path / "runs"


def test_a_tuned_run_and_its_judge_can_be_moved_together(folder: Path, tuned: Path) -> None:
    def found(run: Path, **options: Any) -> list[tuple[str, float]]:
        outputs = (one.outputs[0] for one in Translator.load(run, "cpu", **options).translate_fully(SOURCES))
        return [(output.text, output.normalized_score) for output in outputs]

    expected = found(folder / "run", rerank=[f"{folder / 'other'}:2"], rerank_length=0.1)
    assert expected != found(folder / "run")
    assert found(tuned / "run") == expected
    moved = tuned.rename(tuned.with_name("elsewhere"))
    assert found(moved / "run") == expected
    record = json.loads((moved / "run/tuning.json").read_text(encoding="utf-8"))
    record["rerank"]["judges"] = [{"run": str(folder / "other"), "weight": 2.0}]  # as earlier versions wrote it
    (moved / "run/tuning.json").write_text(json.dumps(record), encoding="utf-8")
    assert found(moved / "run") == expected


def gone(judge: Path) -> None:
    judge.rename(judge.with_name("renamed"))


def retrained(judge: Path) -> None:
    shutil.rmtree(judge)
    make_small_run(judge, judge.parents[1], "lstm", seed=9)


@pytest.mark.parametrize(
    ("change", "why"),
    [(gone, "no such directory"), (retrained, "its weights are no longer those that it was tuned with")],
)
def test_a_judge_that_is_no_longer_there_is_missed_only_where_it_is_needed(
    folder: Path, tuned: Path, change: Callable[[Path], None], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_corpora(tuned.parent)
    change(tuned / "other")
    run, text, reference = str(tuned / "run"), str(folder / "test.en"), str(folder / "test.de")
    scored = ["--source", text, "--reference", reference, "--bootstrap", "0", "--device", "cpu"]
    commands: list[Callable[..., int]] = [
        lambda *options: translate.main(["--model", run, text, "--quiet", "--device", "cpu", *options]),
        lambda *options: evaluate.main(["--model", run, *scored, *options]),
        lambda *options: compare.main([run, str(folder / "run"), *scored[:4], "--device", "cpu", *options]),
        lambda *options: augment(
            ["--model", run, text, "--kind", "forward", "-o", str(tuned / "new"), "--overwrite", *options]
        ),
    ]
    message = (
        f"{tuned / 'run/tuning.json'}: reranks with {tuned / 'other'}: {why}; put it back, tune again with --rerank, "
        "or go on with --rerank none\n"
    )
    for command in commands:
        assert command() == 2
        assert capsys.readouterr().err.endswith(message)
        assert command("--rerank", "none") == 0
    for options in (["--beam", "1"], ["--mbr", "2"], ["--sample"]):
        assert commands[0](*options) == 0, "there is nothing to choose from, or the judges have no say"


def test_evaluate_and_compare_rerank_as_translate_does(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judges = ["--rerank", f"{folder / 'other'}:2", "--rerank-length", "0.1"]
    text, reference = str(folder / "test.en"), str(folder / "test.de")
    outputs = []
    for options in ([], judges):
        translation = tmp_path / f"translated{len(options)}"
        command = ["--model", str(folder / "run"), text, "-o", str(translation), "--quiet", "--device", "cpu"]
        assert translate.main([*command, *options]) == 0
        outputs.append(translation.read_text(encoding="utf-8"))
        kept = tmp_path / f"evaluated{len(options)}"
        command = ["--model", str(folder / "run"), "--source", text, "--reference", reference, "--device", "cpu"]
        assert evaluate.main([*command, "--output", str(kept), *options]) == 0
        assert kept.read_text(encoding="utf-8") == outputs[-1]
    assert outputs[0] != outputs[1]
    finished = ["--hypothesis", reference, "--reference", reference]
    assert evaluate.main([*finished, *judges]) == 2
    assert "search options need --model" in capsys.readouterr().err
    assert compare.main([reference, reference, "--reference", reference, "--rerank", "none"]) == 2
    assert "search options need a run" in capsys.readouterr().err
    command = [str(folder / "run"), str(tmp_path / "translated4"), "--source", text, "--reference", reference]
    assert compare.main([*command, "--device", "cpu", "--json", "-", *judges]) == 0
    differences = json.loads(capsys.readouterr().out)["metrics"]
    assert all(one["score_a"] == one["score_b"] for one in differences)


def test_a_run_with_both_directions_judges_itself_by_the_other_one(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = make_small_run(tmp_path / "both", folder, both_directions=True)
    plain = Translator.load(both, "cpu", num_hypotheses=3).translate_fully(SOURCES)
    judged = Translator.load(both, "cpu", num_hypotheses=3, rerank=[f"{both}:0.7"]).translate_fully(SOURCES)
    other_way = Translator.load(both, "cpu", to="en")
    for source, before, after in zip(SOURCES, plain, judged, strict=True):
        expected = {}
        for output in before.outputs:
            (forced,) = other_way.score([output.text], [source])
            expected[output.text] = output.normalized_score + 0.7 * np.mean(forced.piece_scores)
        scores = [output.normalized_score for output in after.outputs]
        assert scores == pytest.approx([expected[output.text] for output in after.outputs], abs=1e-3)
        assert scores == sorted(scores, reverse=True)
    backwards = Translator.load(both, "cpu", to="en", rerank=[str(both)])
    assert backwards.reranker is not None
    assert backwards.reranker.judges[0].is_reverse
    other = make_small_run(tmp_path / "other", folder, seed=5, both_directions=True)
    assert not load_judge(("en", "de"), str(other), 1.0, torch.device("cpu"), [both]).is_reverse
    assert tune([str(both), "--rerank", str(both), "--metric", "chrf", "--device", "cpu"]) == 0
    assert f"{both} (from its translations to their sources)" in capsys.readouterr().err
    tuned, _ = tuned_judges(both)
    assert [judge.run for judge in tuned] in ([], ["."])


def test_names_and_weights() -> None:
    assert split_weight("runs/a:0.5") == ("runs/a", 0.5)
    assert split_weight("runs/a") == ("runs/a", 1.0)
    assert split_weight("C:\\runs") == ("C:\\runs", 1.0)
    with pytest.raises(OptionError):
        RerankOptions(rerank=[" "])
    with pytest.raises(OptionError, match="must be a finite number"):
        RerankOptions(rerank=["runs/a:nan"])


def test_a_judge_of_the_opposite_direction_is_asked_the_other_way_round(folder: Path) -> None:
    class Spy:
        def score(self, sources: list[str], targets: list[str]) -> list[Forced]:
            self.asked = (sources, targets)
            return [Forced(float("nan"), [0.0], None) for _ in sources]

    spy = Spy()
    reranker = Reranker([Judge(spy, is_reverse=True)])  # type: ignore[arg-type]
    hypotheses = [Hypothesis([5], -1.0, -0.5), Hypothesis([5, 6], -2.0, -0.7)]
    features = reranker.features(["a"] * 2, ["x", "y"], hypotheses)
    assert spy.asked == (["x", "y"], ["a", "a"])
    assert np.isfinite(features).all()
    assert [one.ids for one in reranker.best_first(hypotheses, features)] == [[5], [5, 6]]
    assert load_judge(("en", "de"), str(folder / "reverse"), 1.0, torch.device("cpu")).is_reverse


def test_the_length_alone_may_decide(folder: Path, tmp_path: Path) -> None:
    run = shutil.copytree(folder / "run", tmp_path / "run")
    for weight in (0.0, 0.5):
        record = {"rerank": {"judges": [], "length": weight}}
        (run / "tuning.json").write_text(json.dumps(record), encoding="utf-8")
        reranker = Translator.load(run, "cpu", beam_size=4).reranker
        assert (reranker is None) == (weight == 0)
    assert reranker is not None
    hypotheses = [Hypothesis([5] * length, -length, -1.0) for length in (2, 4, 3)]
    features = reranker.features([""] * 3, [""] * 3, hypotheses)
    assert [len(one.ids) for one in reranker.best_first(hypotheses, features)] == [4, 3, 2]
