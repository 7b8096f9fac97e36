"""The command that verifies resuming: it finds equal runs equal and others different, and refuses as training does."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from support.processes import environment
from translator import train
from translator.verify_resume import __main__ as verify_resume
from translator.verify_resume.__main__ import Attempt
from translator.verify_resume.comparison import Finding

SMOKE = ["experiment=smoke", "trainer.threads=1"]
EQUAL, DIFFERENT = Finding("weights", "12 numbers", ""), Finding("weights", "12 numbers", "a.weight: 1 of 12 numbers")


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    (folder / "temporary").mkdir()
    command = [sys.executable, "-m", "translator.verify_resume", *arguments]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=folder, env=environment(TMPDIR=str(folder / "temporary")), text=True, **pipes)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["transformer_tiny", "lstm_small"])
def test_killed_and_resumed_is_the_same_bit_for_bit(model: str, tmp_path: Path) -> None:
    own = ["trainer.ema_decay=0.9", "trainer.update_tokens=900", "tokenizer.sampling=0.1", "trainer.best_metric=loss"]
    with start(tmp_path, "--updates", "16", "--kills", "2", *SMOKE, *own, f"model={model}") as process:
        out, messages = process.communicate(timeout=600)
    assert process.returncode == 0, out + messages
    assert messages == ""
    assert out.count("killed 0.") >= 1
    assert len(re.findall(r"^  [a-z ]+  .+  equal$", out, re.MULTILINE)) == 8
    assert "Identical bit for bit" in out
    assert not list((tmp_path / "temporary").glob("verify_resume*"))
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_quietly_and_leaves_nothing(number: signal.Signals, tmp_path: Path) -> None:
    with start(tmp_path, *SMOKE) as process:
        deadline = time.monotonic() + 120
        while not list((tmp_path / "temporary").glob("verify_resume*")) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(number)
        _, messages = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert messages == ""
    assert not list((tmp_path / "temporary").glob("verify_resume*"))


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["verify_resume", *arguments])
    return verify_resume.main()


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        (["model.num_head=8"], "model.num_head: unknown option; did you mean model.num_heads?"),
        (["run_dir=elsewhere"], "run_dir=elsewhere: a temporary folder is used; leave it out"),
        (["--multirun", "seed=1,2"], "--multirun: one configuration is verified at a time"),
        (["--kills", "12"], "--kills 12: must be less than --updates 12"),
    ],
)
def test_refusals(
    arguments: list[str], refusal: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, *arguments) == 2
    assert capsys.readouterr().err == f"verify_resume: {refusal}\n"


def test_wrong_options_are_refused_in_the_words_of_train(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(monkeypatch, "optim.betas=3")
    ours = capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", ["train", "optim.betas=3"])
    train.main()
    assert ours.removeprefix("verify_resume: ") == capsys.readouterr().err.removeprefix("train: ") != ""


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The arguments of all training processes, none of which is really started."""
    seen: list[list[str]] = []

    def attempt(arguments: list[str], kill_after: int | None = None, delay: float = 0.0) -> Attempt:
        seen.append(arguments)
        return Attempt([1, 2, 3], kill_after is not None, 1.0, 0.1)

    monkeypatch.setattr(verify_resume, "_attempt", attempt)
    return seen


def test_equal_runs(
    commands: list[list[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(verify_resume, "compare_runs", lambda first, second: [EQUAL])
    assert run(monkeypatch, "--kills", "2", "model=lstm", "trainer.max_time=20m") == 0
    assert "bit for bit" in capsys.readouterr().out
    alone, killed, *resumed = commands
    assert alone[:-1] == killed[:-1]
    assert alone[:2] == ["model=lstm", "trainer.max_time=20m"]
    assert "trainer.max_time=null" in alone  # given later, so it wins: a time-based schedule is never the same twice
    assert [len(arguments) for arguments in resumed] == [1, 1]
    assert all(arguments[0].startswith("resume=") for arguments in resumed)


@pytest.mark.parametrize("is_repeatable", [True, False])
def test_different_runs(
    is_repeatable: bool,
    commands: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    results = iter([[EQUAL, DIFFERENT], [EQUAL if is_repeatable else DIFFERENT]])
    monkeypatch.setattr(verify_resume, "compare_runs", lambda first, second: next(results))
    assert run(monkeypatch, "model=lstm") == 1
    out = capsys.readouterr().out
    assert "a.weight: 1 of 12 numbers" in out
    assert ("comes from resuming" in out) == is_repeatable
    assert ("left alone differ as well" in out) != is_repeatable
    assert len(commands) == 1 + 4 + 1  # alone, killed three times and ended, alone again


def test_the_errors_of_a_failed_run_are_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An unexpected failure is shown with its output, and a user error as one line."""
    monkeypatch.setattr(verify_resume, "_TRAIN_BRIEFLY", "raise SystemExit('the disk is full')")
    assert run(monkeypatch, "model=lstm") == 2
    assert "training failed with exit code 1:\nthe disk is full" in capsys.readouterr().err
    words = "import sys; print('verify_resume: data.train=x: no such file', file=sys.stderr); sys.exit(2)"
    monkeypatch.setattr(verify_resume, "_TRAIN_BRIEFLY", words)
    assert run(monkeypatch, "model=lstm") == 2
    assert capsys.readouterr().err == "verify_resume: data.train=x: no such file\n"
