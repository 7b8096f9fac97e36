"""`tune` on a tiny run: every setting is scored on the validation set, and the best is written into the run."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file as save_tensors

from translator import config as configuration
from translator.api import Translator
from translator.config import load_file
from translator.data.tokenizer import Tokenizer
from translator.evaluation.metrics import score_corpus
from translator.runs.directory import RunDirectory
from translator.runs.model import build_model
from translator.runs.weights import collect_weights
from translator.schema.data import TextDataConfig, TokenizerConfig
from translator.schema.decode import SearchOptions, Stop
from translator.schema.model import LstmConfig
from translator.schema.training import OptimConfig, TrainerConfig
from translator.tune import main
from translator.tune_run import grid

PAIRS = [
    ("A man reads a book.", "Ein Mann liest ein Buch."),
    ("Two dogs run through the snow.", "Zwei Hunde rennen durch den Schnee."),
    ("The house is red.", "Das Haus ist rot."),
]
DECODE = SearchOptions(beam_size=2, stop="first", max_length_ratio=1.0, max_length_extra=5)
GRID = ["--beam", "1", "3", "--alpha", "0", "1.2", "--stop", "first", "exact", "--metric", "chrf", "--device", "cpu"]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run as training leaves it, with an untrained model."""
    for side, suffix in enumerate(("en", "de")):
        lines = "".join(pair[side] + "\n" for pair in PAIRS)
        (tmp_path / f"valid.{suffix}").write_text(lines, encoding="utf-8")
        (tmp_path / f"train.{suffix}").write_text(lines, encoding="utf-8")
    folder = tmp_path / "run"
    folder.mkdir()
    model = LstmConfig(embedding_size=16, hidden_size=16, attention_size=16)
    settings = configuration.Config(
        model=model,
        data=TextDataConfig(source="en", target="de", train=str(tmp_path / "train"), valid=str(tmp_path / "valid")),
        tokenizer=TokenizerConfig(vocab_size=300),
        optim=OptimConfig(),
        trainer=TrainerConfig(),
        decode=DECODE,
    )
    tokenizer = Tokenizer.train(PAIRS * 5, vocab_size=300)
    torch.manual_seed(1)
    configuration.save_file(settings, folder / "config.yaml")
    tokenizer.save(folder / "tokenizer")
    module = build_model(model, tokenizer.source_vocab_size, tokenizer.target_vocab_size)
    save_tensors(collect_weights(module), folder / "model.safetensors")
    (folder / "manifest.json").write_text(json.dumps({"format_version": 1}), encoding="utf-8")
    return folder


def chrf(run: Path, **options: object) -> float:
    sources, references = zip(*PAIRS, strict=True)
    hypotheses = Translator.load(run, "cpu", **options).translate(sources)
    return score_corpus(hypotheses, references, "de", metrics=("chrf",))["chrf"]


def test_the_best_setting_is_written_into_the_run(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = {"beam_size": 2, "stop": "first", "alpha": 1.0}
    assert main([str(run), *GRID]) == 0
    record = json.loads((run / "tuning.json").read_text(encoding="utf-8"))
    trials = [({name: one[name] for name in own}, one["score"]) for one in record["trials"]]
    assert [tuple(setting.values()) for setting, _ in trials] == [
        (2, "first", 1.0),
        (1, "first", 0.0),
        (3, "first", 0.0),
        (3, "first", 1.2),
        (3, "exact", 1.2),
    ]
    for setting, score in trials:
        assert score == pytest.approx(chrf(run, **setting), abs=1e-3)
    assert record["before"] == own
    assert record["metric"] == "chrf"
    best = max(score for _, score in trials)
    assert (record["chosen"], best) in trials
    tuned = load_file(run / "config.yaml").decode  # its checksum holds
    assert {name: getattr(tuned, name) for name in own} == record["chosen"]
    assert tuned.max_length_extra == DECODE.max_length_extra
    assert chrf(run) == pytest.approx(best, abs=1e-3)
    assert "best by chrf" in capsys.readouterr().out

    assert main([str(run), *GRID, "--beam", "1"]) == 0
    again = json.loads((run / "tuning.json").read_text(encoding="utf-8"))
    assert again["before"] == own, "what the run was trained with is not forgotten"


@pytest.mark.parametrize("rule", ["exact", "first"])
def test_without_options_the_run_keeps_its_stopping_rule(run: Path, rule: str) -> None:
    config = load_file(run / "config.yaml")
    config.decode.stop = Stop(rule)
    configuration.save_file(config, run / "config.yaml")
    assert main([str(run), "--metric", "chrf", "--device", "cpu"]) == 0
    trials = json.loads((run / "tuning.json").read_text(encoding="utf-8"))["trials"]
    assert {one["beam_size"] for one in trials} == {1, 2, 3, 5, 8}
    assert {one["alpha"] for one in trials} >= {0.0, 0.5, 1.0, 1.5}
    assert {one["stop"] for one in trials} == {rule}
    assert load_file(run / "config.yaml").decode.stop == rule


def test_a_run_that_does_not_use_its_beam_is_told(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for search, named in ({"mbr": 2}, "decode.mbr=2"), ({"sample": True}, "decode.sample=true"), ({}, ""):
        config = load_file(run / "config.yaml")
        config.decode = DECODE.changed(**search)
        configuration.save_file(config, run / "config.yaml")
        assert main([str(run), "--beam", "2", "--alpha", "1", "--device", "cpu", "--dry-run"]) == 0
        note = f"note: {run} translates with {named}; the settings are compared without"
        assert (note in capsys.readouterr().err) == bool(named)


def test_a_dry_run_changes_nothing(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (run / "config.yaml").read_bytes()
    assert main([str(run), *GRID, "--dry-run"]) == 0
    assert (run / "config.yaml").read_bytes() == before
    assert not (run / "tuning.json").exists()
    captured = capsys.readouterr()
    assert captured.err.count("alpha") == 5
    assert "best by chrf" in captured.out


def another_set(run: Path) -> None:
    manifest = {"format_version": 1, "identity": {"data": {"valid": "of other text"}}}
    (run / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def without_validation_set(run: Path) -> None:
    (run.parent / "valid.de").unlink()


@pytest.mark.parametrize(
    ("damage", "arguments", "message"),
    [
        (lambda run: None, ["--metric", "ter"], "--metric ter: not available"),
        (lambda run: None, ["--alpha", "-1"], "--alpha -1.0: must be at least 0"),
        (lambda run: None, ["--device", "abacus"], "tune: --device abacus: there is no such device here"),
        (lambda run: (run / "model.safetensors").unlink(), [], "the run has no weights yet"),
        (another_set, [], "the validation set has changed since"),
        (without_validation_set, [], "valid.de"),
    ],
)
def test_mistakes_get_one_line(
    run: Path,
    damage: Callable[[Path], None],
    arguments: Sequence[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    damage(run)
    before = (run / "config.yaml").read_bytes()
    assert main([str(run), "--device", "cpu", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("tune: ")
    assert error.count("\n") == 1
    assert (run / "config.yaml").read_bytes() == before


def test_a_run_that_is_being_trained_is_left_alone(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with RunDirectory(run).locked():
        assert main([str(run), *GRID]) == 2
    assert "another process is training or tuning this run" in capsys.readouterr().err
    assert not (run / "tuning.json").exists()


def test_settings_that_give_the_same_results_are_tried_once() -> None:
    def tried(options: SearchOptions) -> list[tuple[object, ...]]:
        return [tuple(setting.values()) for setting in grid(options, [4, 1], ["first", "exact"], [0.0, 1.0])]

    assert tried(SearchOptions(beam_size=5, stop="first")) == [
        (5, "first", 1.0),
        (1, "first", 0.0),
        (4, "first", 0.0),
        (4, "first", 1.0),
        (4, "exact", 1.0),
    ]
    assert [beam for beam, *_ in tried(SearchOptions(beam_size=5, stop="first", length_penalty="none"))] == [5, 1, 4]
    narrow = tried(SearchOptions(beam_size=5, num_hypotheses=3))
    assert all(isinstance(beam, int) and beam >= 3 for beam, *_ in narrow), "its n-best list must remain possible"
    with_terms = tried(SearchOptions(beam_size=5, terms="terms.tsv"))
    assert {beam for beam, *_ in with_terms} == {5, 4}, "greedy search cannot enforce terms"
    sampled = tried(SearchOptions(beam_size=5, num_hypotheses=20, sample=True))
    assert [beam for beam, *_ in sampled] == [5, 1, 4, 4, 4], "samples need no beam"
