"""Two real processes with `max_time`: they end together, having left out the same, and wait for nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

from support import two_ranks
from translator.training.deadline import TEST, VALIDATION

PROGRAM = """
import dataclasses, json, sys, time
from pathlib import Path
from support.training_toys import make_double_trainer
from translator.errors import Interrupted
from translator.training.distributed import connect
from translator.training.signals import Interruption, StopSignals

LIMIT, LONG = 10.0, 90.0
mode, folder = sys.argv[1], Path(sys.argv[2])
with connect("cpu") as ranks, StopSignals() as signals:
    interruption = Interruption(signals, ranks)
    trainer, losses = make_double_trainer(folder, ranks, interruption)
    every = {"never": 10_000, "slow end": 10, "steady": 10}[mode]
    settings = dataclasses.replace(trainer.settings, max_updates=10_000, max_seconds=LIMIT, validate_every=every)
    trainer.settings = settings
    trainer.started = time.monotonic()
    trainer.__post_init__()  # with these settings
    collect, translate = trainer.updater.collect, trainer.validator.translate_lines
    is_ending = False
    reason_to_stop = trainer.plan.reason_to_stop

    def watched_reason(progress):
        global is_ending
        reason = reason_to_stop(progress)
        is_ending = reason is not None
        return reason

    object.__setattr__(trainer.plan, "reason_to_stop", watched_reason)

    def slow_update(*arguments, **options):
        time.sleep(0.05 + 0.02 * ranks.rank)  # one machine is slower than the other
        return collect(*arguments, **options)

    def work(seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if interruption.requested():
                raise Interrupted
            time.sleep(0.01)

    def slow_translation(lines):
        is_long = mode == "never" or (mode == "slow end" and is_ending)
        work(LONG if is_long and ranks.rank == 1 else 0.1)
        return translate(lines)

    trainer.updater.collect = slow_update
    trainer.validator.translate_lines = slow_translation
    result = trainer.fit()
    tested = trainer.deadline.test(lambda: trainer.validator(trainer.model))
    found = {
        "reason": result.stopped_by,
        "weights": result.final_weights,
        "update": result.progress.update,
        "validated": [figures["update"] for figures in result.progress.history],
        "left out": trainer.deadline.left_out,
        "is tested": tested is not None,
    }
    seconds = trainer.time.seconds
    (folder / f"rank{ranks.rank}.json").write_text(json.dumps([found, seconds]))
"""
LONG = 90.0


def run(mode: str, folder: Path) -> dict[str, Any]:
    """What both ranks have found, which must be the same."""
    ended = two_ranks.run_two(PROGRAM, mode, str(folder))
    assert [one.returncode for one in ended] == [0, 0], ended[0].stderr + ended[1].stderr
    (first, seconds), (second, _) = (json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(2))
    assert first == second, "the ranks have decided differently"
    assert seconds < LONG, "work without end was waited for"
    assert first["reason"] == "max_time"
    assert (folder / "model.safetensors").exists()
    found: dict[str, Any] = first
    return found


@pytest.mark.slow
def test_two_ranks_validate_and_test_within_the_time(tmp_path: Path) -> None:
    """A machine with other work may be too slow for all of it; what was left out is then named."""
    found = run("steady", tmp_path)
    assert found["validated"]
    assert found["is tested"] is (TEST not in found["left out"])
    assert (found["validated"][-1] == found["update"]) is (VALIDATION not in found["left out"])


@pytest.mark.slow
def test_two_ranks_give_up_a_last_validation_that_is_slow_on_one_of_them(tmp_path: Path) -> None:
    found = run("slow end", tmp_path)
    assert VALIDATION in found["left out"]
    assert found["validated"]
    assert found["update"] not in found["validated"]
    assert found["weights"].endswith("the best by loss")


@pytest.mark.slow
def test_two_ranks_publish_weights_that_there_was_no_time_to_validate(tmp_path: Path) -> None:
    found = run("never", tmp_path)
    assert found["left out"] == [VALIDATION, TEST]
    assert found["validated"] == []
    assert found["weights"] == f"update {found['update']}, not validated"
