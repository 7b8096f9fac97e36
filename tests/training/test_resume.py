"""A run interrupted anywhere and resumed ends with the same weights, bit for bit."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from support.training_toys import Stop, ToyLoader, make_model, make_trainer, same, stop_after, weights
from translator.errors import UserError
from translator.training.random_state import seed_everything
from translator.training.trainer import Trainer

SETTINGS = {"max_updates": 14, "save_every": 2, "validate_every": 5, "patience": 50}


def start(folder: Path, **changes: Any) -> Trainer:
    seed_everything(11)
    return make_trainer(folder, **(SETTINGS | changes))


def everything(trainer: Trainer) -> dict[str, torch.Tensor]:
    assert trainer.ema is not None
    return weights(trainer.model) | {f"ema.{name}": tensor.clone() for name, tensor in trainer.ema.weights.items()}


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, torch.Tensor], list[dict[str, Any]]]:
    trainer = start(tmp_path_factory.mktemp("whole"))
    result = trainer.fit()
    return everything(trainer), result.progress.history


def break_off(trainer: Trainer, where: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Raises at the count-th call of a part of the loop, where a kill would end it."""
    target = {"updater": trainer.updater, "ema": trainer.ema, "checkpoints": trainer.checkpoints}.get(where, trainer)
    name = {"updater": "collect", "ema": "update", "checkpoints": "save", "validation": "validator"}[where]
    original, tick = getattr(target, name), stop_after(count)

    def call(*arguments: Any, **options: Any) -> Any:
        tick()
        return original(*arguments, **options)

    monkeypatch.setattr(target, name, call)
    with pytest.raises(Stop):
        trainer.fit()
    monkeypatch.undo()


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ("updater", 0),
        ("updater", 3),
        ("updater", 13),
        ("ema", 7),
        ("checkpoints", 4),
        ("validation", 0),
        ("validation", 2),
    ],
)
def test_bit_for_bit(
    where: str,
    count: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    uninterrupted: tuple[dict[str, torch.Tensor], list[dict[str, Any]]],
) -> None:
    break_off(start(tmp_path), where, count, monkeypatch)
    seed_everything(999)  # another process, with different random numbers and different initial weights
    resumed = make_trainer(tmp_path, **SETTINGS, model=make_model(seed=77, dropout=0.2))
    if resumed.resume() == 0:
        resumed = start(tmp_path)  # nothing had been saved: a fresh start, as the command does it
    history = resumed.fit().progress.history
    expected, expected_history = uninterrupted
    assert same(everything(resumed), expected)
    without_time = [{key: value for key, value in entry.items() if key != "seconds"} for entry in history]
    assert without_time == [{k: v for k, v in entry.items() if k != "seconds"} for entry in expected_history]


def test_interrupted_again_and_again(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    uninterrupted: tuple[dict[str, torch.Tensor], list[dict[str, Any]]],
) -> None:
    break_off(start(tmp_path), "updater", 5, monkeypatch)
    for _ in range(2):
        trainer = make_trainer(tmp_path, **SETTINGS, model=make_model(seed=78, dropout=0.2))
        assert trainer.resume() > 0
        break_off(trainer, "updater", 4, monkeypatch)
    trainer = make_trainer(tmp_path, **SETTINGS)
    assert trainer.resume() == 12
    trainer.fit()
    assert same(everything(trainer), uninterrupted[0])


def test_what_a_checkpoint_remembers(tmp_path: Path) -> None:
    trainer = start(tmp_path, max_updates=5, update_tokens=0)
    trainer.updater.memory.limit = 123
    trainer.progress.num_skipped = 1
    trainer.fit()
    resumed = make_trainer(tmp_path, max_updates=5)
    assert resumed.resume() == 5
    times = {name: 0.0 for name in vars(trainer.progress) if name.endswith("seconds")}
    assert replace(resumed.progress, **times) == replace(trainer.progress, **times)
    assert resumed.progress.seconds >= resumed.progress.validation_seconds > 0
    assert resumed.updater.memory.limit == 123
    assert resumed.loader.state_dict() == trainer.loader.state_dict() == {"epoch": 0, "position": 5}


def test_a_finished_run_ends_at_once_and_a_longer_one_continues(tmp_path: Path) -> None:
    start(tmp_path, max_updates=5).fit()
    again = make_trainer(tmp_path, max_updates=5)
    again.resume()
    assert again.fit().progress.update == 5
    longer = make_trainer(tmp_path, max_updates=8)
    longer.resume()
    assert longer.fit().progress.update == 8


def test_a_damaged_checkpoint_is_reported_and_skipped(
    tmp_path: Path, uninterrupted: tuple[dict[str, torch.Tensor], list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    break_off(start(tmp_path), "updater", 9, monkeypatch)
    newest = max((tmp_path / "checkpoints").glob("step-*"))
    (newest / "optimizer.safetensors").write_bytes(b"nonsense")
    lines = io.StringIO()
    resumed = make_trainer(tmp_path, **SETTINGS, stream=lines)
    assert resumed.resume() < int(newest.name.removeprefix("step-"))
    assert f"{newest.name} is damaged" in lines.getvalue()
    resumed.fit()
    assert same(everything(resumed), uninterrupted[0])


def test_only_damaged_checkpoints_are_an_error(tmp_path: Path) -> None:
    start(tmp_path, max_updates=3).fit()
    for path in (tmp_path / "checkpoints").glob("step-*/model.safetensors"):
        path.write_bytes(b"nonsense")
    with pytest.raises(UserError, match="every checkpoint is damaged"):
        make_trainer(tmp_path).resume()


def test_another_number_of_processes_is_refused(tmp_path: Path) -> None:
    trainer = start(tmp_path, max_updates=3)
    trainer.fit()
    checkpoint = trainer.checkpoints.newest(print)
    assert checkpoint is not None
    tensors = {name: checkpoint.tensors(name) for name in ("model", "optimizer", "ema")}
    trainer.checkpoints.save(4, tensors, checkpoint.state | {"ranks": checkpoint.state["ranks"] * 2}, None)
    with pytest.raises(UserError, match="written by 2 processes, now there are 1"):
        make_trainer(tmp_path).resume()


def test_same_seed_same_weights_and_another_seed_others(tmp_path: Path) -> None:
    first, second = (start(tmp_path / name) for name in "ab")
    for trainer in (first, second):
        seed_everything(5)
        trainer.fit()
    assert same(everything(first), everything(second))
    third = start(tmp_path / "c", loader=ToyLoader(seed=1))
    third.fit()
    assert not same(everything(first), everything(third))
