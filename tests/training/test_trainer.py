"""When the loop stops, what it considers best, and which weights it ends with."""

import errno
import io
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch.utils.tensorboard import SummaryWriter

from support.training_toys import ToyLoader, ToyModel, make_model, make_trainer, make_validator, same, weights
from translator.data.batching import Batch
from translator.errors import UserError
from translator.runs.weights import average_weights, collect_weights, write_tensors
from translator.training import final_weights
from translator.training.checkpoint import CheckpointStore
from translator.training.interfaces import NO_MOMENT, LossOutput, Moment
from translator.training.monitor import Monitor
from translator.training.objectives.cross_entropy import CrossEntropy
from translator.training.schedule import LearningRate
from translator.training.validation_result import TextScores


def test_it_learns(tmp_path: Path) -> None:
    result = make_trainer(tmp_path, max_updates=60, validate_every=20, ema=None).fit()
    losses = [entry["loss"] for entry in result.progress.history]
    assert result.stopped_by == "max_updates"
    assert result.progress.update == 60
    assert losses[-1] < losses[0] - 0.3
    assert result.final["loss"] == min(losses)


def test_epochs_end_where_the_corpus_does(tmp_path: Path) -> None:
    """Six batches per epoch; an update of about two must neither run into a third epoch nor skip a batch."""
    seen: list[int] = []
    loss = CrossEntropy()

    def counting(model: ToyModel, batch: Batch, moment: Moment = NO_MOMENT) -> LossOutput:
        if model.training:
            seen.extend(batch.indices.tolist())
        return loss(model, batch)

    result = make_trainer(tmp_path, max_updates=1000, max_epochs=2, validate_every=0, loss=counting).fit()
    assert result.stopped_by == "max_epochs"
    assert result.progress.epoch == 2
    assert sorted(seen) == sorted(list(range(48)) * 2)
    assert len(result.progress.history) == 2, "one validation for each epoch"


def with_scores(folder: Path, scores: list[float], **changes: Any) -> Any:
    model = make_model()
    options: dict[str, Any] = {"best_metric": "bleu", "validate_every": 2, "max_updates": 20, "ema": None}
    return make_trainer(folder, model=model, validator=make_validator(model, scores=scores), **(options | changes))


def test_patience_counts_validations_without_improvement(tmp_path: Path) -> None:
    result = with_scores(tmp_path, [10, 30, 20, 30, 25, 99], patience=3).fit()
    assert result.stopped_by == "patience"
    assert result.progress.update == 10, "the third of 20, 30 (not better) and 25"
    assert result.final["bleu"] == 30
    assert result.final_weights == "update 4, the best by bleu"


def test_improvement_begins_the_count_anew(tmp_path: Path) -> None:
    result = with_scores(tmp_path, [10, 5, 11, 5, 12, 5, 13, 5, 14, 5], patience=2).fit()
    assert result.stopped_by == "max_updates"


def test_the_model_ends_with_the_best_weights(tmp_path: Path) -> None:
    trainer = with_scores(tmp_path, [10, 40, 30], max_updates=6)
    trainer.fit()
    best = load_file(tmp_path / "checkpoints" / "step-00000004" / "model.safetensors")
    last = load_file(tmp_path / "checkpoints" / "step-00000006" / "model.safetensors")
    assert same(collect_weights(trainer.model), best)
    assert same(load_file(tmp_path / "model.safetensors"), best)
    assert not same(best, last)


def test_the_best_so_far_can_be_used_while_training_goes_on(tmp_path: Path) -> None:
    trainer = with_scores(tmp_path, [10, 40, 30], max_updates=20)
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


def test_chrf_and_loss_can_decide(tmp_path: Path) -> None:
    result = with_scores(tmp_path / "loss", [1, 2, 3], best_metric="loss", max_updates=6).fit()
    best = min(result.progress.history, key=lambda entry: entry["loss"])
    assert result.final == best
    result = with_scores(tmp_path / "chrf", [1, 2, 3], best_metric="chrf", max_updates=6).fit()
    assert result.final_weights == "update 2, the best by chrf", "all have the same: the first one stays the best"


def test_the_lowest_is_the_best_where_lower_is_better(tmp_path: Path) -> None:
    trainer = with_scores(tmp_path, [], best_metric="ter", max_updates=6)
    rates = iter([60.0, 40.0, 50.0])
    trainer.validator.score = lambda *texts: TextScores({"ter": next(rates)})
    result = trainer.fit()
    assert result.final_weights == "update 4, the best by ter"
    assert result.final["ter"] == 40.0


@pytest.mark.parametrize(("average", "steps"), [("best", (4, 6)), ("last", (6, 8))])
def test_averaging(tmp_path: Path, average: str, steps: tuple[int, ...]) -> None:
    scores = [10.0, 40.0, 30.0, 20.0]
    trainer = with_scores(tmp_path, [*scores, 41.0], max_updates=8, average=average)
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
    trainer = with_scores(tmp_path, [10.0, 40.0, 30.0, 39.0], max_updates=6, average="best", stream=lines)
    result = trainer.fit()
    assert result.final_weights == "update 4, the best by bleu"
    assert "39.00, worse than 40.00" in lines.getvalue()
    assert same(collect_weights(trainer.model), load_file(tmp_path / "checkpoints/step-00000004/model.safetensors"))


@pytest.mark.parametrize("is_published", [True, False])
def test_a_damaged_best_checkpoint_leaves_the_place_to_the_published_weights_or_the_next(
    tmp_path: Path, is_published: bool
) -> None:
    trainer = with_scores(tmp_path, [10.0, 40.0, 30.0], max_updates=6)
    trainer.fit()
    best = load_file(tmp_path / "model.safetensors")
    (tmp_path / "checkpoints/step-00000004/model.safetensors").write_bytes(b"nonsense")
    if not is_published:
        (tmp_path / "model.safetensors").write_bytes(b"nonsense")
    again = with_scores(tmp_path, [], max_updates=6)
    again.resume()
    result = again.fit()
    if is_published:
        assert result.final_weights == "update 4, the best by bleu"
        expected = best
    else:
        assert result.final_weights == "update 6, the best by bleu of those kept (update 4 was better and is lost)"
        expected = load_file(tmp_path / "checkpoints/step-00000006/model.safetensors")
    assert result.final["bleu"] == (40.0 if is_published else 30.0)
    assert same(collect_weights(again.model), expected)
    assert same(load_file(tmp_path / "model.safetensors"), expected)


def full(*arguments: Any, **options: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("average", ["none", "best"])
@pytest.mark.parametrize("can_publish", [True, False])
def test_the_best_weights_survive_a_disk_that_is_full_when_they_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, average: str, can_publish: bool
) -> None:
    """The best of three validations cannot be written to a checkpoint, nor perhaps to the weights file."""
    trainer = with_scores(tmp_path, [10.0, 40.0, 30.0, 35.0], max_updates=6, average=average, stream=io.StringIO())
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
    trainer = with_scores(tmp_path, [40.0, 30.0], max_updates=4)
    save = CheckpointStore.save
    monkeypatch.setattr(
        CheckpointStore, "save", lambda store, step, *rest: full() if step == 2 else save(store, step, *rest)
    )
    trainer.fit()
    best = load_file(tmp_path / "model.safetensors")
    again = with_scores(tmp_path, [35.0], max_updates=6)
    again.resume()
    result = again.fit()
    assert result.final_weights == "update 2, the best by bleu"
    assert same(load_file(tmp_path / "model.safetensors"), best)


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


def test_validating_more_often_does_not_change_what_is_learnt(tmp_path: Path) -> None:
    trainers = [make_trainer(tmp_path / str(every), validate_every=every, max_updates=9) for every in (2, 100)]
    for trainer in trainers:
        torch.manual_seed(3)
        trainer.fit()
    ema = [trainer.ema.weights for trainer in trainers if trainer.ema]
    assert same(ema[0], ema[1])


@pytest.mark.parametrize("batches_per_epoch", [6, 0])
def test_the_schedule_is_fitted_to_the_epochs(tmp_path: Path, batches_per_epoch: int) -> None:
    rates: list[float] = []
    schedule = LearningRate("cosine", 1.0, 1)

    def learning_rate(update: int, total: float) -> float:
        rates.append(schedule(update, total))
        return 1e-3

    make_trainer(
        tmp_path,
        max_updates=10_000,
        max_epochs=4,
        batches_per_epoch=batches_per_epoch,
        update_tokens=0,
        validate_every=0,
        learning_rate=learning_rate,
    ).fit()
    assert len(rates) == 24
    assert rates[-1] < 0.01
    middle = schedule(13, 24)
    assert rates[12] == pytest.approx(middle, abs=0.01), "half of the time, half of the way"


class TestNotFinite:
    @staticmethod
    def loss_with_bad_row(row: int, value: float) -> Any:
        loss = CrossEntropy()

        def call(model: ToyModel, batch: Batch, moment: Moment = NO_MOMENT) -> LossOutput:
            output = loss(model, batch)
            factor = value if row in batch.indices.tolist() and model.training else 1.0
            return output._replace(loss_sum=output.loss_sum * factor)

        return call

    def test_the_run_stops_and_names_what_matters(self, tmp_path: Path) -> None:
        order = [batch.indices.tolist() for batch, _ in zip(ToyLoader(), range(6), strict=False)]
        bad = order[4][3]
        trainer = make_trainer(tmp_path, update_tokens=0, save_every=1, loss=self.loss_with_bad_row(bad, float("nan")))
        with pytest.raises(UserError) as caught:
            trainer.fit()
        message = str(caught.value)
        assert "update 5: loss nan" in message
        assert f"learning rate {LearningRate('cosine', 1e-2, 3)(5, 12):.3g}" in message
        assert ", ".join(map(str, order[4])) in message
        assert str(tmp_path / "checkpoints" / "step-00000004") in message
        assert "trainer.max_skipped" in message

    def test_a_few_may_be_skipped(self, tmp_path: Path) -> None:
        lines = io.StringIO()
        loss = self.loss_with_bad_row(17, float("inf"))
        trainer = make_trainer(
            tmp_path, update_tokens=0, max_updates=12, loss=loss, max_skipped=2, stream=lines, ema=None
        )
        result = trainer.fit()
        assert result.progress.num_skipped == 2, "once in each of two epochs"
        assert result.progress.update == 12
        assert lines.getvalue().count("skipped") == 2
        assert all(tensor.isfinite().all() for tensor in trainer.model.state_dict().values())

    def test_but_not_more(self, tmp_path: Path) -> None:
        trainer = make_trainer(
            tmp_path, update_tokens=0, max_updates=12, loss=self.loss_with_bad_row(17, float("inf")), max_skipped=1
        )
        with pytest.raises(UserError, match=r"max_skipped=1"):
            trainer.fit()


def test_a_full_disk_does_not_end_the_run_but_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_teacher_forcing_follows_its_schedule(tmp_path: Path) -> None:
    seen = []
    loss = CrossEntropy()

    def watching(model: ToyModel, batch: Batch, moment: Moment = NO_MOMENT) -> LossOutput:
        seen.append((model.training, moment))
        return loss(model, batch)

    make_trainer(
        tmp_path, max_updates=3, update_tokens=0, loss=watching, teacher_forcing=lambda update: 1 / (1 + update)
    ).fit()
    assert [moment for training, moment in seen if training] == [(0, 1.0), (1 / 3, 0.5), (2 / 3, 1 / 3)]
    assert all(moment == NO_MOMENT for training, moment in seen if not training)
