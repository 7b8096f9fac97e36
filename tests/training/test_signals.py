"""Ctrl-C and SIGTERM: finish, save, say how to go on, and the conventional exit code."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.processes import environment
from support.training_toys import make_trainer, same, weights
from translator.training.random_state import seed_everything
from translator.training.schedule import LearningRate
from translator.training.signals import Interrupted, StopSignals

# A run that would take for ever; it tells when it is in the middle of an update or of a validation.
PROGRAM = """
import sys, time
from pathlib import Path
from support.training_toys import make_trainer
from translator.training.random_state import seed_everything
from translator.training.schedule import LearningRate

where, folder = sys.argv[1], Path(sys.argv[2])
seed_everything(11)
schedule = LearningRate("constant", 1e-2, 1)
trainer = make_trainer(folder, max_updates=10**6, validate_every=3, learning_rate=schedule)
validator, collect = trainer.validator, trainer.updater.collect

def wait(place):
    if place == where and trainer.progress.update >= 3:
        print("now", flush=True)
        time.sleep(0.5 if place == "update" else 60)

trainer.validator = lambda model: (wait("validation"), validator(model))[1]
trainer.updater.collect = lambda *arguments, **options: (wait("update"), collect(*arguments, **options))[1]
sys.exit(trainer.fit().exit_code)
"""


def start(where: str, folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM, where, str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    assert process.stdout is not None
    assert process.stdout.readline() == "now\n"
    return process


@pytest.mark.parametrize(
    ("where", "number", "code"), [("update", signal.SIGINT, 130), ("validation", signal.SIGTERM, 143)]
)
def test_a_signal_ends_the_run_in_good_order(where: str, number: signal.Signals, code: int, tmp_path: Path) -> None:
    process = start(where, tmp_path)
    process.send_signal(number)
    _, messages = process.communicate(timeout=50)  # a validation of a minute is given up, not waited for
    assert process.returncode == code
    assert f"stopped by {number.name}" in messages
    assert f"resume={tmp_path}" in messages

    options = {"max_updates": 9, "validate_every": 3, "learning_rate": LearningRate("constant", 1e-2, 1)}
    resumed = make_trainer(tmp_path, **options)
    assert resumed.resume() == (4 if where == "update" else 3)
    resumed.fit()
    seed_everything(11)
    whole = make_trainer(tmp_path / "whole", **options)
    whole.fit()
    assert same(weights(resumed.model), weights(whole.model))
    updates = [entry["update"] for entry in resumed.progress.history]
    assert updates == [3, 6, 9], "the validation that was given up has been made up for"


def test_a_second_ctrl_c_aborts_at_once(tmp_path: Path) -> None:
    process = start("update", tmp_path)
    process.send_signal(signal.SIGINT)
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, messages = process.communicate(timeout=50)
    assert process.returncode != 0
    assert "KeyboardInterrupt" in messages
    assert "stopped by" not in messages


def test_handlers_are_put_back() -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with StopSignals() as signals:
        assert signal.getsignal(signal.SIGTERM) != before[0]
        signal.raise_signal(signal.SIGTERM)
        assert signals.received == signal.SIGTERM
        with pytest.raises(Interrupted), signals.interruptible():
            pytest.fail("a signal that is already there must prevent the work")
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


def test_a_signal_interrupts_only_where_that_is_allowed() -> None:
    with StopSignals() as signals:
        with signals.interruptible(False):
            signal.raise_signal(signal.SIGTERM)
        assert signals.received == signal.SIGTERM
    with StopSignals() as signals, pytest.raises(Interrupted), signals.interruptible():
        signal.raise_signal(signal.SIGINT)
