"""Two runs are compared bit for bit, and a difference in any part of them is found."""

import copy
from pathlib import Path
from typing import Any

import pytest
import torch

from support.training_toys import Stop, make_model, make_trainer, stop_after
from translator.errors import UserError
from translator.runs.directory import RunDirectory
from translator.training import snapshots
from translator.training.checkpoint import CheckpointStore
from translator.training.monitor import Monitor
from translator.training.random_state import seed_everything
from translator.training.trainer import Trainer
from translator.verify_resume import comparison
from translator.verify_resume.comparison import compare_runs, compare_tensors, read_curves

SETTINGS = {"max_updates": 9, "save_every": 2, "validate_every": 4}
PARTS = {
    "logged curves",
    "weights",
    "optimizer",
    "moving average",
    "random numbers",
    "place in the corpus",
    "progress",
    "final weights",
}


def start(folder: Path, seed: int = 3) -> Trainer:
    seed_everything(seed)
    parts = {"model": make_model(seed, dropout=0.2), "monitor": Monitor(folder / "tensorboard", log_every=1)}
    return make_trainer(folder, **SETTINGS, **parts)


def finish(trainer: Trainer) -> RunDirectory:
    trainer.fit()
    trainer.monitor.close()
    return RunDirectory(trainer.final_weights.file.parent)


def break_off(trainer: Trainer, count: int) -> None:
    """Ends the run silently at its count-th update, as a kill would; whatever was not flushed is lost."""
    collect, tick = trainer.updater.collect, stop_after(count)

    def call(*arguments: Any, **options: Any) -> Any:
        tick()
        return collect(*arguments, **options)

    trainer.updater.collect = call  # type: ignore[method-assign]
    with pytest.raises(Stop):
        trainer.fit()
    for number, events in enumerate(trainer.final_weights.file.parent.glob("tensorboard/events.*")):
        # The files are read in order of their names, which begin with the time in seconds: this run began long ago.
        events.rename(events.with_name(f"events.out.tfevents.{number:010d}"))


def resume(folder: Path) -> RunDirectory:
    trainer = start(folder, seed=44)
    trainer.resume()
    return finish(trainer)


def different(first: RunDirectory, second: RunDirectory) -> dict[str, str]:
    findings = compare_runs(first, second)
    assert {finding.part for finding in findings} == PARTS
    return {finding.part: finding.difference for finding in findings if finding.difference}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return finish(start(tmp_path_factory.mktemp("runs") / "whole"))


@pytest.mark.parametrize("count", [0, 5, 8])
def test_an_interrupted_and_resumed_run_is_equal_curves_included(
    count: int, whole: RunDirectory, tmp_path: Path
) -> None:
    break_off(start(tmp_path), count)
    if count == 0:  # nothing was saved: it starts again from scratch
        assert different(whole, finish(start(tmp_path))) == {}
    else:
        assert different(whole, resume(tmp_path)) == {}


def test_curves_are_whole_after_a_start_without_checkpoint(tmp_path: Path, whole: RunDirectory) -> None:
    trainer = start(tmp_path)
    break_off(trainer, 1)
    trainer.monitor.close()  # its one point reaches the disk, but no checkpoint does
    finish(start(tmp_path))
    assert read_curves(tmp_path / "tensorboard") == read_curves(whole.tensorboard)
    assert [step for step, _ in read_curves(whole.tensorboard)["train/loss"]] == list(range(1, 10))
    assert [step for step, _ in read_curves(whole.tensorboard)["validation/loss"]] == [4, 8, 9]


def test_another_seed_differs_everywhere_that_depends_on_it(tmp_path: Path, whole: RunDirectory) -> None:
    found = different(whole, finish(start(tmp_path, seed=4)))
    assert found.keys() >= {"logged curves", "weights", "optimizer", "moving average", "random numbers", "progress"}
    assert "at update 1" in found["logged curves"]


@pytest.mark.parametrize(
    ("forgotten", "update"),
    [("restore_random_state", 7), ("restore_optimizer", 8)],  # the optimizer affects the loss one update later
)
def test_a_resume_that_forgets_something_is_detected(
    forgotten: str, update: int, whole: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_off(start(tmp_path), 6)
    monkeypatch.setattr(snapshots, forgotten, lambda *arguments: None)
    found = different(whole, resume(tmp_path))
    assert found.keys() >= {"logged curves", "weights", "optimizer"}
    assert f" at update {update}: " in found["logged curves"]  # the checkpoint is from update 6


def _weights(tensors: dict[str, dict[str, torch.Tensor]], state: dict[str, Any]) -> None:
    tensors["model"]["hidden.bias"][3] += 1e-6


def _optimizer(tensors: dict[str, dict[str, torch.Tensor]], state: dict[str, Any]) -> None:
    tensors["optimizer"]["0.step"] += 1


def _average(tensors: dict[str, dict[str, torch.Tensor]], state: dict[str, Any]) -> None:
    del tensors["ema"]


def _random(tensors: dict[str, dict[str, torch.Tensor]], state: dict[str, Any]) -> None:
    state["ranks"][0]["random"]["numpy"][1] += 1


def _place(tensors: dict[str, dict[str, torch.Tensor]], state: dict[str, Any]) -> None:
    state["ranks"][0]["loader"]["position"] += 1


def _progress(tensors: dict[str, dict[str, torch.Tensor]], state: dict[str, Any]) -> None:
    state["progress"]["history"][1]["loss"] += 1e-12


@pytest.mark.parametrize(
    ("alter", "part", "named"),
    [
        (_weights, "weights", "hidden.bias: 1 of 12 numbers"),
        (_optimizer, "optimizer", "0.step: 1 of 1 numbers, by up to 1"),
        (_average, "moving average", "is in one of them only"),
        (_random, "random numbers", "[0].numpy[1]"),
        (_place, "place in the corpus", "[0].position: 0 against 1"),
        (_progress, "progress", "progress.history[1].loss"),
    ],
)
def test_each_part_alone(alter: Any, part: str, named: str, whole: RunDirectory, tmp_path: Path) -> None:
    run = finish(start(tmp_path))
    store = CheckpointStore(run.checkpoints, keep_best=2)
    store.open()
    newest = store.newest(print)
    assert newest is not None
    tensors = {name: newest.tensors(name) for name in ("model", "optimizer", "ema")}
    state = copy.deepcopy(newest.state)
    alter(tensors, state)
    store.save(newest.step, tensors, state, None)
    found = different(whole, run)
    assert found.keys() == {part}
    assert named in found[part]


def test_tensors_are_compared_by_their_bits() -> None:
    zero, minus, nan = torch.zeros(2), -torch.zeros(2), torch.full((2,), torch.nan)
    assert "2 of 2 numbers, by up to 0" in compare_tensors("t", {"a": zero}, {"a": minus}).difference
    assert not compare_tensors(
        "t", {"a": nan, "b": torch.tensor(1)}, {"a": nan.clone(), "b": torch.tensor(1)}
    ).difference
    assert "(2,)" in compare_tensors("t", {"a": zero}, {"a": torch.zeros(3)}).difference
    assert "float64" in compare_tensors("t", {"a": zero}, {"a": zero.double()}).difference
    assert "b is in one" in compare_tensors("t", {"a": zero}, {"a": zero, "b": zero}).difference


def test_a_run_without_checkpoint_cannot_be_compared(tmp_path: Path, whole: RunDirectory) -> None:
    with pytest.raises(UserError, match="no whole checkpoint"):
        compare_runs(whole, RunDirectory(tmp_path))


def test_points_drawn_twice_and_nans_are_equal() -> None:
    nan = float("nan")
    once, twice = {"loss": [(1, nan), (2, 0.5)]}, {"loss": [(1, nan), (2, 0.5), (2, 0.5)]}
    assert not comparison._compare_curves(once, twice).difference
    differs = {"loss": [(1, nan), (2, 0.5), (2, 0.25)]}
    assert comparison._compare_curves(once, differs).difference == "loss at update 2: 0.5, 0.25 and 0.5"
