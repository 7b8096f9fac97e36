"""Ctrl-C and SIGTERM: finish, save, say how to continue, and exit with the conventional code."""

import signal
import time
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

from support.training_toys import ToyLoader, make_trainer, same, weights
from support.warm_python import Program
from translator.errors import Interrupted
from translator.training.distributed import Ranks
from translator.training.final_weights import FinalWeights
from translator.training.interfaces import LossOutput
from translator.training.random_state import seed_everything
from translator.training.schedule import LearningRate
from translator.training.signals import STOP_SIGNALS, Interruption, StopSignals
from translator.training.trainer import Trainer

NEEDS_SIGHUP = pytest.mark.skipif(
    signal.getsignal(signal.SIGHUP) is signal.SIG_IGN, reason="SIGHUP is ignored here, as under nohup"
)

# A run that would take forever; it reports when it is in the middle of an update or a validation.
PROGRAM = """
import sys, time
from pathlib import Path
from support.training_toys import make_trainer
from translator.errors import Interrupted
from translator.training.random_state import seed_everything
from translator.training.schedule import LearningRate
from translator.training.signals import Interruption, StopSignals

where, folder = sys.argv[1], Path(sys.argv[2])
seed_everything(11)
schedule = LearningRate("constant", 1e-2, 1)
with StopSignals() as signals:
    interruption = Interruption(signals)
    options = {"max_updates": 9, "average": "best"} if where == "averaging" else {"max_updates": 10**6}
    trainer = make_trainer(folder, validate_every=3, learning_rate=schedule, interruption=interruption, **options)
    trainer.validator.interrupted = interruption.requested
    collect, translate = trainer.updater.collect, trainer.validator.translate_lines

    def wait(place, seconds):
        if place == where and trainer.progress.update >= 3:
            print("now", flush=True)
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline:
                if place != "update" and interruption.requested():
                    raise Interrupted
                time.sleep(0.01)

    def translate_slowly(lines):
        wait("averaging" if trainer.progress.validated_at == 9 else "validation", 60)
        return translate(lines)

    trainer.validator.translate_lines = translate_slowly
    trainer.updater.collect = lambda *arguments, **options: (wait("update", 1.5), collect(*arguments, **options))[1]
    code = trainer.fit().exit_code
sys.exit(code)
"""


def start(where: str, folder: Path) -> Program:
    program = Program(PROGRAM, where, str(folder))
    assert program.stdout.readline() == b"now\n"
    return program


@pytest.mark.parametrize(
    ("where", "number", "resumed_at"),
    [
        ("update", signal.SIGINT, 3),
        ("update", signal.SIGUSR1, 3),
        ("validation", signal.SIGTERM, 3),
        pytest.param("averaging", signal.SIGHUP, 9, marks=NEEDS_SIGHUP),
    ],
)
def test_a_signal_ends_the_run_cleanly(where: str, number: signal.Signals, resumed_at: int, tmp_path: Path) -> None:
    program = start(where, tmp_path)
    program.send_signal(number)
    ended = program.finish(timeout=50)  # a validation that takes a minute is abandoned, not waited for
    assert ended.returncode == 128 + number
    assert f"stopped by {number.name}" in ended.stderr
    assert f"resume={tmp_path}" in ended.stderr

    options = {"max_updates": 9, "validate_every": 3, "learning_rate": LearningRate("constant", 1e-2, 1)}
    options["average"] = "best" if where == "averaging" else "none"
    resumed = make_trainer(tmp_path, **options)
    assert resumed.resume() == resumed_at
    result = resumed.fit()
    seed_everything(11)
    whole = make_trainer(tmp_path / "whole", **options)
    assert whole.fit().final_weights == result.final_weights
    assert same(weights(resumed.model), weights(whole.model))
    updates = [entry["update"] for entry in resumed.progress.history]
    assert updates == [3, 6, 9], "the validation that was given up has been made up for"


def test_a_signal_while_final_weights_are_chosen_is_not_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even when there is nothing to abandon: the caller must not continue to the test set."""
    with StopSignals() as signals:
        trainer = make_trainer(tmp_path, max_updates=3, validate_every=3, interruption=Interruption(signals))
        take_over = FinalWeights._take_over

        def take_over_and_signal(final_weights: FinalWeights, weights: dict[str, Tensor]) -> None:
            take_over(final_weights, weights)
            signal.raise_signal(signal.SIGTERM)

        monkeypatch.setattr(FinalWeights, "_take_over", take_over_and_signal)
        result = trainer.fit()
    assert result.exit_code == 128 + signal.SIGTERM
    assert result.stopped_by == "signal"


@pytest.mark.parametrize(("update_tokens", "memory_limit"), [(160, None), (0, 12)], ids=["accumulated", "split"])
def test_an_update_is_abandoned_between_its_micro_batches(
    tmp_path: Path, update_tokens: int, memory_limit: int | None
) -> None:
    """What is saved is what the previous update left, and the resumed run is an undisturbed one, bit for bit."""
    options = {"validate_every": 3, "update_tokens": update_tokens, "learning_rate": LearningRate("constant", 1e-2, 1)}

    def train(name: str, max_updates: int, resume: bool = False) -> Trainer:
        seed_everything(11)
        trainer = make_trainer(tmp_path / name, max_updates=max_updates, **options)
        trainer.updater.memory.limit = memory_limit
        assert trainer.resume() == 4 if resume else True
        trainer.fit()
        return trainer

    seed_everything(11)
    with StopSignals() as signals:
        interrupted = make_trainer(tmp_path / "run", max_updates=7, interruption=Interruption(signals), **options)
        interrupted.updater.memory.limit = memory_limit
        loss, num_micro_batches = interrupted.updater.loss, 0

        def loss_with_signal(*arguments: Any, **keywords: Any) -> LossOutput:
            nonlocal num_micro_batches
            num_micro_batches += interrupted.progress.update == 4
            if num_micro_batches == 2:
                signal.raise_signal(signal.SIGTERM)
            return loss(*arguments, **keywords)

        interrupted.updater.loss = loss_with_signal
        assert interrupted.fit().exit_code == 128 + signal.SIGTERM
    assert num_micro_batches == 2, "there would have been more"
    batches = interrupted.updater.collect(iter(ToyLoader()), ToyLoader(), update_tokens=update_tokens, max_epochs=0)
    assert sum(len(interrupted.updater.memory.parts(batch)) for batch in batches) > 2
    assert all(parameter.grad is None for parameter in interrupted.model.parameters())

    saved, expected = interrupted.checkpoints.newest(print), train("four", 4).checkpoints.newest(print)
    assert saved is not None
    assert expected is not None
    for part in ("model", "optimizer", "ema"):
        assert same(saved.tensors(part), expected.tensors(part))
    assert saved.state["ranks"] == expected.state["ranks"]
    assert same(weights(train("run", 7, resume=True).model), weights(train("whole", 7).model))


def test_a_second_ctrl_c_aborts_at_once(tmp_path: Path) -> None:
    program = start("update", tmp_path)
    program.send_signal(signal.SIGINT)
    time.sleep(1.1)
    program.send_signal(signal.SIGINT)
    ended = program.finish(timeout=50)
    assert ended.returncode != 0
    assert "KeyboardInterrupt" in ended.stderr
    assert "stopped by" not in ended.stderr


def test_a_ctrl_c_that_arrives_twice_counts_once() -> None:
    """torchrun forwards the SIGINT that the terminal has already sent to its processes."""
    seconds = 100.0
    with StopSignals(clock=lambda: seconds) as signals:
        signal.raise_signal(signal.SIGINT)
        seconds += 0.9
        signal.raise_signal(signal.SIGINT)
        assert signals.received == signal.SIGINT
        seconds += 0.2
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) == signal.SIG_DFL, "a third one ends the process whatever happens"


@pytest.mark.parametrize(
    "number",
    [pytest.param(number, marks=NEEDS_SIGHUP if number == signal.SIGHUP else ()) for number in STOP_SIGNALS],
)
def test_handlers_note_the_signal_and_raise_nothing(number: int) -> None:
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    with StopSignals() as signals:
        assert signal.getsignal(number) != before[number]
        signal.raise_signal(number)
        assert signals.received == number
        assert Interruption(signals).requested()
    assert {number: signal.getsignal(number) for number in STOP_SIGNALS} == before


def test_nohup_is_respected() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with StopSignals() as signals:
            signal.raise_signal(signal.SIGHUP)
        assert not signals.received
    finally:
        signal.signal(signal.SIGHUP, before)


class SharedStore:
    """The store as the ranks see it."""

    def __init__(self) -> None:
        self.keys: set[str] = set()
        self.num_looks = 0

    def set(self, key: str, value: str) -> None:
        self.keys.add(key)

    def check(self, keys: list[str]) -> bool:
        self.num_looks += 1
        return self.keys.issuperset(keys)


def test_a_rank_learns_of_a_signal_to_another_within_a_second() -> None:
    store, seconds = SharedStore(), 0.0
    ranks = [Ranks(rank, 2, store=store) for rank in range(2)]
    with StopSignals() as signals:
        first = Interruption(signals, ranks[0])
        second = Interruption(None, ranks[1], clock=lambda: seconds)
        assert not any(second.requested() for _ in range(1000))
        assert store.num_looks == 1, "it must not ask the store at every step"
        signal.raise_signal(signal.SIGTERM)
        assert first.requested()
    seconds += 1.0
    assert second.requested()
    assert not second.received


def test_work_given_up_on_one_rank_is_given_up_on_all() -> None:
    class OneOfTwo(Ranks):
        """The other rank has abandoned the work."""

        def wait_for_all(self, while_waiting: object = None) -> None:
            pass

        def gather(self, value: object) -> list[object]:
            return [value, []]

    with pytest.raises(Interrupted):
        OneOfTwo(0, 2).gather_work(lambda: "done", lambda: False)
    assert Ranks().gather_work(lambda: "done", lambda: False) == ["done"]


def test_a_time_limit_is_polled_like_a_signal_and_ends_with_its_block() -> None:
    seconds = 10.0
    interruption = Interruption(clock=lambda: seconds)
    with interruption.time_limit(12.0):
        assert not interruption.requested()
        seconds = 12.0
        assert interruption.requested()
        assert interruption.polled_at == 12.0
        assert interruption.agreed() == 0, "nobody has asked the process to stop"
    assert not interruption.requested()
