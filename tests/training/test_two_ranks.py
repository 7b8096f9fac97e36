"""Two processes over Gloo: the same curve as one, a common end, and a message about which one died."""

import json
import signal
import time
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
import torch

from support import two_ranks
from support.training_toys import make_double_trainer, weights
from translator.errors import UserError
from translator.training.distributed import Ranks, _buckets

PROGRAM = """
import json, os, signal, sys, threading, time
from pathlib import Path
from support.training_toys import make_double_trainer, weights
from translator.errors import Interrupted
from translator.training.distributed import connect
from translator.training.signals import Interruption, StopSignals

mode, folder = sys.argv[1], Path(sys.argv[2])
with connect("cpu", timeout_minutes=0.2 if mode == "slow" else 30) as ranks:
    if mode == "slow" and ranks.is_main:
        time.sleep(14)  # longer than the ranks would wait for each other elsewhere
    ranks.wait_for_all()
    signals = StopSignals().__enter__()
    interruption = Interruption(signals, ranks)
    trainer, losses = make_double_trainer(folder, ranks, interruption, consistency=mode == "consistency")
    collect, translate = trainer.updater.collect, trainer.validator.translate_lines

    def translate_for_long(lines):
        # The first rank would take a minute for its share; the second has done its own and waits for it.
        if mode == "term in validation" and trainer.progress.update == 4:
            if ranks.rank == 1:
                threading.Timer(1.0, signal.raise_signal, [signal.SIGTERM]).start()
            deadline = time.monotonic() + 60
            while ranks.is_main and time.monotonic() < deadline:
                if interruption.requested():
                    raise Interrupted
                time.sleep(0.01)
        return translate(lines)

    trainer.validator.translate_lines = translate_for_long

    def meddle(*arguments, **options):
        if trainer.progress.update == 3 and ranks.rank == 1:
            if mode == "fail":
                raise ValueError("the cat ate it")
            if mode == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if mode == "term":
                signal.raise_signal(signal.SIGTERM)
        return collect(*arguments, **options)

    trainer.updater.collect = meddle
    if mode.startswith("resume"):
        assert trainer.resume() == int(mode.split()[-1])
    result = trainer.fit()
    if ranks.is_main:
        stored = {name: tensor.tolist() for name, tensor in weights(trainer.model).items()}
        (folder / "result.json").write_text(json.dumps([losses, result.progress.history, stored]))
sys.exit(result.exit_code)
"""


def run_two(mode: str, folder: Path) -> list[CompletedProcess[str]]:
    return two_ranks.run_two(PROGRAM, mode, str(folder), timeout=180)


def without_time(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in entry.items() if key != "seconds"} for entry in history]


def assert_like_one_process(folder: Path, skipped: int = 0, *, consistency: bool = False) -> None:
    trainer, expected = make_double_trainer(folder / "one", Ranks(), consistency=consistency)
    expected_history = without_time(trainer.fit().progress.history)
    losses, history, stored = json.loads((folder / "result.json").read_text())
    assert losses == pytest.approx(expected[skipped:], rel=1e-12)
    for found, wanted in zip(without_time(history), expected_history, strict=True):
        assert found["loss"] == pytest.approx(wanted.pop("loss"), rel=1e-12)
        assert found["nll"] == pytest.approx(wanted.pop("nll"), rel=1e-12)
        assert found["bleu"] == wanted["bleu"]
    for name, tensor in weights(trainer.model).items():
        torch.testing.assert_close(torch.tensor(stored[name], dtype=torch.float64), tensor, rtol=1e-9, atol=1e-12)


def test_two_ranks_with_half_the_batch_each_learn_what_one_learns(tmp_path: Path) -> None:
    results = run_two("train", tmp_path)
    assert [result.returncode for result in results] == [0, 0], results[0].stderr + results[1].stderr
    assert_like_one_process(tmp_path)


@pytest.mark.slow
def test_consistency_is_the_same_on_two_ranks(tmp_path: Path) -> None:
    results = run_two("consistency", tmp_path)
    assert [result.returncode for result in results] == [0, 0], results[0].stderr + results[1].stderr
    assert_like_one_process(tmp_path, consistency=True)
    with pytest.raises(AssertionError):
        assert_like_one_process(tmp_path)


@pytest.mark.slow
def test_a_signal_to_one_rank_stops_both_and_they_can_be_resumed(tmp_path: Path) -> None:
    """It comes before the micro-batches of update 4, which both ranks then abandon."""
    results = run_two("term", tmp_path)
    assert [result.returncode for result in results] == [128 + signal.SIGTERM] * 2, results[0].stderr
    assert "stopped by SIGTERM after update 3" in results[0].stderr
    with pytest.raises(UserError, match="written by 2 processes, now there are 1"):
        make_double_trainer(tmp_path, Ranks())[0].resume()
    results = run_two("resume after 3", tmp_path)
    assert [result.returncode for result in results] == [0, 0], results[0].stderr + results[1].stderr
    assert_like_one_process(tmp_path, skipped=3)


def test_a_signal_to_a_rank_that_waits_interrupts_the_validation_of_another(tmp_path: Path) -> None:
    started = time.monotonic()
    results = run_two("term in validation", tmp_path)
    assert [result.returncode for result in results] == [128 + signal.SIGTERM] * 2, results[0].stderr
    assert "stopped by SIGTERM after update 4" in results[0].stderr
    assert time.monotonic() - started < 55, "the validation would have taken a minute"
    results = run_two("resume after 4", tmp_path)
    assert [result.returncode for result in results] == [0, 0], results[0].stderr + results[1].stderr
    assert_like_one_process(tmp_path, skipped=4)


@pytest.mark.slow
def test_a_rank_that_prepares_data_for_long_is_waited_for(tmp_path: Path) -> None:
    results = run_two("slow", tmp_path)
    assert [result.returncode for result in results] == [0, 0], results[0].stderr + results[1].stderr


def test_a_rank_that_fails_ends_the_job_and_is_named(tmp_path: Path) -> None:
    first, second = run_two("fail", tmp_path)
    assert first.returncode != 0
    assert second.returncode != 0
    assert "rank 1 of 2" in second.stderr
    assert "failed and ends the job: ValueError: the cat ate it" in second.stderr
    assert "rank 0 of 2" in first.stderr
    assert "rank 1 failed: ValueError: the cat ate it" in first.stderr


@pytest.mark.slow
def test_a_rank_that_is_killed_ends_the_job_and_is_named(tmp_path: Path) -> None:
    first, second = run_two("kill", tmp_path)
    assert second.returncode == -signal.SIGKILL
    assert first.returncode not in (0, -signal.SIGKILL)
    assert "UserError: rank 0 of 2" in first.stderr, "which a command shows without a traceback"
    assert "rank 1 does not respond" in first.stderr


def test_buckets_keep_every_tensor_in_order() -> None:
    tensors = [torch.zeros(size, dtype=dtype) for size in (5, 9_000_000, 3) for dtype in (torch.float32, torch.float64)]
    buckets = list(_buckets(tensors))
    assert [id(tensor) for bucket in buckets for tensor in bucket] == [id(tensor) for tensor in tensors]
    assert all(len({tensor.dtype for tensor in bucket}) == 1 for bucket in buckets)
    assert len(list(_buckets([torch.zeros(5)] * 100))) == 1
