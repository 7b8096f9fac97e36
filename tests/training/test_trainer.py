"""How the loop goes through the corpus, when it stops, and which validation it considers the best."""

import io
from pathlib import Path
from typing import Any

import pytest
import torch

from support.training_toys import ToyLoader, ToyModel, make_scored_trainer, make_trainer, same
from translator.data.batching import Batch
from translator.errors import UserError
from translator.training.interfaces import NO_MOMENT, LossOutput, Moment
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


def test_patience_counts_validations_without_improvement(tmp_path: Path) -> None:
    result = make_scored_trainer(tmp_path, [10, 30, 20, 30, 25, 99], patience=3).fit()
    assert result.stopped_by == "patience"
    assert result.progress.update == 10, "the third of 20, 30 (not better) and 25"
    assert result.final["bleu"] == 30
    assert result.final_weights == "update 4, the best by bleu"


def test_improvement_resets_the_count(tmp_path: Path) -> None:
    result = make_scored_trainer(tmp_path, [10, 5, 11, 5, 12, 5, 13, 5, 14, 5], patience=2).fit()
    assert result.stopped_by == "max_updates"


def test_chrf_and_loss_can_decide(tmp_path: Path) -> None:
    result = make_scored_trainer(tmp_path / "loss", [1, 2, 3], best_metric="loss", max_updates=6).fit()
    best = min(result.progress.history, key=lambda entry: entry["loss"])
    assert result.final == best
    result = make_scored_trainer(tmp_path / "chrf", [1, 2, 3], best_metric="chrf", max_updates=6).fit()
    assert result.final_weights == "update 2, the best by chrf", "all have the same: the first one stays the best"


def test_the_lowest_is_the_best_where_lower_is_better(tmp_path: Path) -> None:
    trainer = make_scored_trainer(tmp_path, [], best_metric="ter", max_updates=6)
    rates = iter([60.0, 40.0, 50.0])
    trainer.validator.score = lambda *texts: TextScores({"ter": next(rates)})
    result = trainer.fit()
    assert result.final_weights == "update 4, the best by ter"
    assert result.final["ter"] == 40.0


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
