"""Which weights a run ends with: the best, an average, or what is left of damaged checkpoints."""

import io
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from support.training_toys import ToyModel, make_scored_trainer, make_trainer, same, weights
from translator.runs.weights import average_weights, collect_weights


def test_the_model_ends_with_the_best_weights(tmp_path: Path) -> None:
    trainer = make_scored_trainer(tmp_path, [10, 40, 30], max_updates=6)
    trainer.fit()
    best = load_file(tmp_path / "checkpoints" / "step-00000004" / "model.safetensors")
    last = load_file(tmp_path / "checkpoints" / "step-00000006" / "model.safetensors")
    assert same(collect_weights(trainer.model), best)
    assert same(load_file(tmp_path / "model.safetensors"), best)
    assert not same(best, last)


def test_the_best_so_far_can_be_used_while_training_goes_on(tmp_path: Path) -> None:
    trainer = make_scored_trainer(tmp_path, [10, 40, 30], max_updates=20)
    published = []
    validator = trainer.validator

    def watching(model: ToyModel) -> Any:
        path = tmp_path / "model.safetensors"
        published.append(load_file(path) if path.exists() else None)
        return validator(model)

    trainer.validator = watching
    trainer.fit()
    first, second = (load_file(tmp_path / "checkpoints" / "step-00000004" / "model.safetensors"), published[2])
    assert published[0] is None
    assert second is not None
    assert same(first, second)


@pytest.mark.parametrize(("average", "steps"), [("best", (4, 6)), ("last", (6, 8))])
def test_averaging(tmp_path: Path, average: str, steps: tuple[int, ...]) -> None:
    scores = [10.0, 40.0, 30.0, 20.0]
    trainer = make_scored_trainer(tmp_path, [*scores, 41.0], max_updates=8, average=average)
    result = trainer.fit()
    folders = [tmp_path / "checkpoints" / f"step-{step:08d}" for step in steps]
    expected = average_weights(load_file(folder / "model.safetensors") for folder in folders)
    by_hand = {n: sum(load_file(f / "model.safetensors")[n].double() for f in folders) / 2 for n in expected}
    assert result.final_weights == f"average of 2 checkpoints ({average})"
    assert result.final["bleu"] == 41.0
    for name, tensor in collect_weights(trainer.model).items():
        torch.testing.assert_close(tensor.double(), by_hand[name], rtol=1e-6, atol=1e-7)
    assert same(load_file(tmp_path / "model.safetensors"), collect_weights(trainer.model))


def test_a_worse_average_is_not_taken(tmp_path: Path) -> None:
    lines = io.StringIO()
    trainer = make_scored_trainer(tmp_path, [10.0, 40.0, 30.0, 39.0], max_updates=6, average="best", stream=lines)
    result = trainer.fit()
    assert result.final_weights == "update 4, the best by bleu"
    assert "39.00, worse than 40.00" in lines.getvalue()
    assert same(collect_weights(trainer.model), load_file(tmp_path / "checkpoints/step-00000004/model.safetensors"))


@pytest.mark.parametrize("is_published", [True, False])
def test_a_damaged_best_checkpoint_gives_way_to_the_published_weights_or_the_next(
    tmp_path: Path, is_published: bool
) -> None:
    trainer = make_scored_trainer(tmp_path, [10.0, 40.0, 30.0], max_updates=6)
    trainer.fit()
    best = load_file(tmp_path / "model.safetensors")
    (tmp_path / "checkpoints/step-00000004/model.safetensors").write_bytes(b"nonsense")
    if not is_published:
        (tmp_path / "model.safetensors").write_bytes(b"nonsense")
    again = make_scored_trainer(tmp_path, [], max_updates=6)
    again.resume()
    result = again.fit()
    if is_published:
        assert result.final_weights == "update 4, the best by bleu"
        expected = best
    else:
        assert result.final_weights == "update 6, the best by bleu of those kept (update 4 was better but is lost)"
        expected = load_file(tmp_path / "checkpoints/step-00000006/model.safetensors")
    assert result.final["bleu"] == (40.0 if is_published else 30.0)
    assert same(collect_weights(again.model), expected)
    assert same(load_file(tmp_path / "model.safetensors"), expected)


def test_the_moving_average_is_what_is_validated_and_kept(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, max_updates=5)
    seen = []
    validator = trainer.validator
    trainer.validator = lambda model: (seen.append(weights(model)), validator(model))[1]  # type: ignore[arg-type,return-value]
    trainer.fit()
    assert trainer.ema is not None
    assert same({name: seen[0][name] for name in trainer.ema.weights}, trainer.ema.weights)
    assert same(
        load_file(tmp_path / "model.safetensors"), load_file(tmp_path / "checkpoints/step-00000005/ema.safetensors")
    )
    own = load_file(tmp_path / "checkpoints/step-00000005/model.safetensors")
    assert not same(own, load_file(tmp_path / "model.safetensors"))
