"""A disk that is full: training goes on where it can, and the best weights are not lost."""

import errno
import io
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch.utils.tensorboard import SummaryWriter

from support.training_toys import ToyModel, make_scored_trainer, make_trainer, same
from translator.errors import UserError
from translator.runs.weights import collect_weights, write_tensors
from translator.training import final_weights
from translator.training.checkpoint import CheckpointStore
from translator.training.monitor import Monitor


def full(*arguments: Any, **options: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("average", ["none", "best"])
@pytest.mark.parametrize("can_publish", [True, False])
def test_the_best_weights_survive_a_disk_that_is_full_when_they_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, average: str, can_publish: bool
) -> None:
    """The best of three validations cannot be written to a checkpoint, nor perhaps to the weights file."""
    trainer = make_scored_trainer(
        tmp_path, [10.0, 40.0, 30.0, 35.0], max_updates=6, average=average, stream=io.StringIO()
    )
    save, validator, seen = CheckpointStore.save, trainer.validator, []

    def save_unless_full(store: CheckpointStore, step: int, *arguments: Any) -> Path:
        if step == 4:
            full()
        return save(store, step, *arguments)

    def watching(model: ToyModel) -> Any:
        seen.append(collect_copies(model))
        return validator(model)

    def write_unless_full(path: Path, tensors: Any, **details: str) -> None:
        if details.get("update") == "4" and not can_publish:
            full()
        write_tensors(path, tensors, **details)

    trainer.validator = watching
    monkeypatch.setattr(CheckpointStore, "save", save_unless_full)
    monkeypatch.setattr(final_weights, "write_tensors", write_unless_full)
    result = trainer.fit()
    assert result.final_weights == "update 4, the best by bleu"
    assert result.final["bleu"] == 40.0
    assert same(collect_weights(trainer.model), seen[1])
    assert same(load_file(tmp_path / "model.safetensors"), seen[1])


def collect_copies(model: ToyModel) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in collect_weights(model).items()}


def test_the_published_best_is_not_replaced_by_what_was_kept_of_an_earlier_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The best checkpoint was never written, and the process that had its weights in memory is gone."""
    trainer = make_scored_trainer(tmp_path, [40.0, 30.0], max_updates=4)
    save = CheckpointStore.save
    monkeypatch.setattr(
        CheckpointStore, "save", lambda store, step, *rest: full() if step == 2 else save(store, step, *rest)
    )
    trainer.fit()
    best = load_file(tmp_path / "model.safetensors")
    again = make_scored_trainer(tmp_path, [35.0], max_updates=6)
    again.resume()
    result = again.fit()
    assert result.final_weights == "update 2, the best by bleu"
    assert same(load_file(tmp_path / "model.safetensors"), best)


def test_a_full_disk_is_reported_but_does_not_end_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = io.StringIO()
    trainer = make_trainer(tmp_path, max_updates=10, stream=lines)
    save = CheckpointStore.save

    def full_at_first(store: CheckpointStore, step: int, *arguments: Any) -> Path:
        if step == 5:
            raise OSError(28, "No space left on device")
        return save(store, step, *arguments)

    monkeypatch.setattr(CheckpointStore, "save", full_at_first)
    result = trainer.fit()
    assert result.progress.update == 10
    assert "No space left on device" in lines.getvalue()
    assert "training goes on" in lines.getvalue()
    assert [path.name for path in (tmp_path / "checkpoints").glob("step-*")] == ["step-00000010"]


def test_a_disk_that_stays_full_is_an_error_in_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(final_weights, "write_tensors", full)
    with pytest.raises(UserError, match=r"could not write .*model.safetensors.*make room"):
        make_trainer(tmp_path, max_updates=3).fit()


def test_tensorboard_on_a_full_disk_does_not_end_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = io.StringIO()
    monkeypatch.setattr(SummaryWriter, "flush", full)
    monitor = Monitor(tmp_path / "tensorboard", log_every=100, stream=lines)
    result = make_trainer(tmp_path, max_updates=10, monitor=monitor).fit()
    monitor.close()
    assert result.progress.update == 10
    assert lines.getvalue().count("Training goes on without TensorBoard") == 1
