"""End to end, from text files to a translated file, in a few seconds for each model."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from support import warm_python
from support.configurations import configuration
from support.processes import environment
from translator import train
from translator.config import Config
from translator.demo import generate
from translator.errors import UserError
from translator.process_start import process_started
from translator.runs.directory import RunDirectory
from translator.runs.latest import newest_run
from translator.train_report import RunOutcome, sweep_table
from translator.training.precision import Execution

SMALL = {
    "transformer": [
        "model=transformer_tiny",
        "model.encoder_layers=1",
        "model.decoder_layers=1",
        "model.model_size=32",
    ],
    "lstm": ["model=lstm_small", "model.embedding_size=32", "model.hidden_size=32", "model.attention_size=32"],
}
QUICK = ["trainer=smoke", "trainer.max_updates=6", "trainer.validate_every=3", "tokenizer.vocab_size=900"]


def command(folder: Path, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`python -m translator.MODULE` in a new interpreter."""
    line = [sys.executable, "-m", f"translator.{module}", *arguments]
    return subprocess.run(line, cwd=folder, env=environment(), capture_output=True, text=True, check=False)


def warm_command(folder: Path, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The same without waiting for the imports."""
    code = f"import sys; from translator.{module} import main; sys.exit(main())"
    return warm_python.run(code, *arguments, cwd=folder, timeout=600)  # on a busy machine


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpora")
    for split, examples in generate(num_train=200, num_valid=12, num_test=8).items():
        for language in ("en", "zh"):
            lines = "".join(f"{example.text[language]}\n" for example in examples)
            (folder / f"{split}.{language}").write_text(lines, encoding="utf-8")
    return folder


# The LSTM, which takes longer, is trained by a new interpreter, as users start it.
@pytest.mark.parametrize("model", ["transformer", pytest.param("lstm", marks=pytest.mark.slow)])
def test_from_text_files_to_a_translation(model: str, corpora: Path, tmp_path: Path) -> None:
    prefixes = [f"data.{split}={corpora / split}" for split in ("train", "valid", "test")]
    options = ["data=text", "data.target=zh", *prefixes, *SMALL[model], *QUICK]
    run_command = warm_command if model == "transformer" else command
    trained = run_command(tmp_path, "train", *options)
    assert trained.returncode == 0, trained.stderr
    run = newest_run(tmp_path / "runs")
    assert "200 pairs read, 200 kept" in trained.stderr
    assert f"translate --model runs/{run.name} input.en -o output.zh" in trained.stderr  # by its path, perhaps

    metrics = json.loads((run / "metrics.json").read_text(encoding="utf-8"))
    assert metrics["num_updates"] == 6
    assert "tok:zh" in metrics["test"]["signatures"]["bleu"]
    assert [entry["update"] for entry in metrics["history"]] == [3, 6]
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    assert len(manifest["files"]) == 6
    assert all(len(file["sha256"]) == 64 for file in manifest["files"])
    assert list((run / "tensorboard").iterdir())

    (tmp_path / "input.en").write_text("The dog sleeps.\n\nAnna reads a book.\n", encoding="utf-8")
    translated = run_command(tmp_path, "translate", "input.en", "-o", "output.zh")
    assert translated.returncode == 0, translated.stderr
    lines = (tmp_path / "output.zh").read_text(encoding="utf-8").split("\n")
    assert len(lines) == 4
    assert lines[1] == lines[3] == ""

    again = warm_command(tmp_path, "train", *options, f"run_dir={run}")
    assert again.returncode == 2
    assert "holds another run" in again.stderr
    assert again.stderr.count("\n") == 1

    saved = (run / "config.yaml").read_text(encoding="utf-8")
    refused = warm_command(tmp_path, "train", "resume=true", "trainer.batch_tokens=333")
    assert refused.returncode == 2
    assert "batch_tokens" in refused.stderr
    assert (run / "config.yaml").read_text(encoding="utf-8") == saved

    longer = warm_command(tmp_path, "train", "resume=runs/latest", "trainer.max_updates=8")
    assert longer.returncode == 0, longer.stderr
    assert json.loads((run / "metrics.json").read_text(encoding="utf-8"))["num_updates"] == 8
    assert newest_run(tmp_path / "runs") == run
    assert (tmp_path / "runs" / "latest" / "metrics.json").samefile(run / "metrics.json")


# `translator.train` itself, which says when the test set is being translated.
WITH_A_SLOW_TEST = """
import sys, time
from translator import train
from translator.training.validation import Validator

validate = Validator.__call__

def slow_for_the_test_set(validator, model):
    if len(validator.sources) == 8:
        print("now", flush=True)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not validator.interrupted():
            time.sleep(0.01)
    return validate(validator, model)

Validator.__call__ = slow_for_the_test_set
sys.exit(train.main())
"""


@pytest.mark.slow
def test_a_test_set_that_was_interrupted_is_scored_when_the_same_command_runs_again(
    corpora: Path, tmp_path: Path
) -> None:
    prefixes = [f"data.{split}={corpora / split}" for split in ("train", "valid", "test")]
    options = ["data=text", "data.target=zh", *prefixes, *SMALL["lstm"], *QUICK, "run_dir=run", "resume=auto"]
    process = subprocess.Popen(
        [sys.executable, "-c", WITH_A_SLOW_TEST, *options],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "now\n"
    process.send_signal(signal.SIGTERM)
    _, messages = process.communicate(timeout=50)
    assert process.returncode == 143
    assert "stopped by SIGTERM after training, before the test set was scored; continue with resume=run" in messages
    assert not (tmp_path / "run" / "metrics.json").exists()

    again = warm_command(tmp_path, "train", *options)
    assert again.returncode == 0, again.stderr
    metrics = (tmp_path / "run" / "metrics.json").read_bytes()
    assert json.loads(metrics)["test"]["bleu"] >= 0
    assert json.loads(metrics)["num_updates"] == 6

    for arguments in (options, ["resume=run"]):
        complete = warm_command(tmp_path, "train", *arguments)
        assert complete.returncode == 0
        assert complete.stderr.startswith("run: complete, after 6 updates; ")
        assert complete.stderr.count("\n") == 1
        assert (tmp_path / "run" / "metrics.json").read_bytes() == metrics


def test_what_max_time_left_out_is_named_and_made_up_for_by_resuming(
    corpora: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    prefixes = [f"data.{split}={corpora / split}" for split in ("train", "valid", "test")]
    options = ["data=text", "data.target=zh", *prefixes, *SMALL["transformer"], *QUICK]

    def start(*arguments: str) -> dict[str, Any]:
        is_resumed = arguments[0].startswith("resume=")
        if is_resumed:
            (outcome,) = train.cli.main(train.run, list(arguments), check=train.check_config)
        else:
            outcome = train.run(configuration(*arguments))
        assert outcome.exit_code == 0
        figures: dict[str, Any] = json.loads((tmp_path / "run" / "metrics.json").read_text(encoding="utf-8"))
        return figures

    figures = start(*options, "run_dir=run", "trainer.max_time=0.1s")
    assert figures["stopped_by"] == "max_time"
    assert figures["num_updates"] == 1
    assert figures["left_out"] == ["the final validation", "the test set"]
    assert figures["validation"] is None
    assert figures["test"] is None
    assert (tmp_path / "run" / "model.safetensors").exists()
    messages = capsys.readouterr().err
    assert "trainer.max_time=0.1s left no time for the final validation and the test set; " in messages
    assert "resume=run makes up for it" in messages
    assert "not scored (max_time was up)" in messages

    figures = start("resume=run")
    assert figures["num_updates"] == 1
    assert figures["left_out"] == []
    assert figures["validation"]["loss"] > 0
    assert figures["test"]["loss"] > 0
    messages = capsys.readouterr().err
    assert "left no time" not in messages
    assert "no time was left" not in messages, "for the report"
    assert (tmp_path / "run" / "report.html").exists()
    assert all(link.exists() for link in (tmp_path / "latest").iterdir()), "what it has links to is all there"
    assert len(list((tmp_path / "latest").iterdir())) == len(RunDirectory(tmp_path / "run").contents)

    start("resume=run")
    complete = "run: complete, after 1 updates; to train longer, give resume=run trainer.max_time=0.2s"
    assert capsys.readouterr().err.strip() == complete


def test_bad_corpora_end_with_one_line(corpora: Path, tmp_path: Path) -> None:
    (tmp_path / "short.en").write_text("one\ntwo\n", encoding="utf-8")
    (tmp_path / "short.zh").write_text("一\n", encoding="utf-8")
    for prefix, fact in (("nowhere", "nowhere"), ("short", "2 lines")):
        options = ["data=text", "data.target=zh", f"data.train={prefix}", f"data.valid={corpora / 'valid'}"]
        result = warm_command(tmp_path, "train", *options)
        assert result.returncode == 2
        assert fact in result.stderr
        assert "Traceback" not in result.stderr
    assert not (tmp_path / "runs").exists()


def test_a_sweep_goes_on_after_a_refusal_and_stops_at_a_signal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    seeds: list[int] = []
    starts: list[float | None] = []

    def fake_run(config: Config, started: float | None) -> RunOutcome:
        seeds.append(config.seed)
        starts.append(started)
        if config.seed == 1:
            raise UserError("data.train=nowhere: no such file")
        code = 130 if config.seed == 3 else 0
        return RunOutcome(Path(f"runs/{config.seed}"), "lstm", config.seed, 1, 1.0, 1.0, 1.0, code)

    monkeypatch.setattr(train, "run", fake_run)
    monkeypatch.setattr(sys, "argv", ["train", "--multirun", "seed=1,2,3,4", f"hydra.sweep.dir={tmp_path}"])
    assert train.main() == 130
    assert seeds == [1, 2, 3]
    assert starts[0] == pytest.approx(process_started(), abs=0.05), "the first run's time began with the process"
    assert starts[1:] == [None, None]
    captured = capsys.readouterr()
    assert "train: data.train=nowhere" in captured.err
    assert "runs/2" in captured.out


def test_a_sweep_ends_with_a_table() -> None:
    outcomes = [
        RunOutcome(Path("runs/a"), "lstm", 1, 1200, 75.0, 61.234, 60.0, 0),
        RunOutcome(Path("runs/b"), "transformer", 2, 900, 80.0, 70.5, None, 0),
    ]
    heading, first, second = sweep_table(outcomes).split("\n")
    assert heading.split() == ["run", "model", "seed", "updates", "time", "valid", "BLEU", "test", "BLEU"]
    assert first.split() == ["runs/a", "lstm", "1", "1,200", "1m15s", "61.23", "60.00"]
    assert second.split()[-2:] == ["70.50", "-"]


@pytest.mark.parametrize(("device", "is_told"), [("cpu", True), ("cuda", False)])
def test_only_a_cpu_needs_the_allocator_to_keep_memory(
    device: str, is_told: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A GPU has a separate allocator, and keeping all host memory would gain nothing there."""
    (tmp_path / "manifest.json").touch()  # a folder that holds a run ends the command before any work
    told: list[bool] = []
    execution = Execution(torch.device(device))
    monkeypatch.setattr(train, "choose_execution", lambda *arguments: execution)
    monkeypatch.setattr(train, "keep_memory", lambda: told.append(True))
    config = configuration(f"run_dir={tmp_path}")
    with pytest.raises(UserError, match="holds another run"):
        train.run(config)
    assert bool(told) is is_told


@pytest.mark.parametrize(
    ("seconds", "cpu_seconds", "limit", "is_late"),
    [(80.0, 90.0, "100s", False), (80.0, 9.0, "100s", True), (80.0, 9.0, None, False), (99.0, 90.0, "100s", True)],
)
def test_the_report_is_left_out_where_a_busy_machine_would_make_it_late(
    seconds: float, cpu_seconds: float, limit: str | None, is_late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = configuration(f"trainer.max_time={limit or 'null'}")
    trainer: Any = SimpleNamespace(
        time=SimpleNamespace(seconds=seconds, exit_seconds=1.0),
        interruption=SimpleNamespace(requested=lambda: False),
        deadline=SimpleNamespace(is_binding=True),
    )
    monkeypatch.setattr(time, "process_time", lambda: cpu_seconds)
    monkeypatch.setattr(train, "process_started", lambda: time.monotonic() - 90.0)
    assert train._lateness(config, trainer, num_sentences=1_000)() is is_late
