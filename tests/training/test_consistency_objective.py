"""The consistency objective: two passes in one batch, additive over pairs, plain before its start and in evaluation."""

import io
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch import Tensor
from torch.nn import functional as F

from support import contract_cases
from support.configurations import configuration
from support.training_toys import (
    CutByContent,
    Stop,
    ToyModel,
    gradients,
    make_batch,
    make_model,
    make_trainer,
    same,
    stop_after,
)
from support.training_toys import weights as weights_of
from translator.build.checks import check_config
from translator.data.batching import Batch
from translator.errors import UserError
from translator.models.base import Decoded, Kept, Seq2Seq
from translator.models.embeddings import Embeddings
from translator.schema.training import Consistency, OptimConfig
from translator.training.distributed import Ranks
from translator.training.interfaces import LossOutput, Moment
from translator.training.memory import MemoryLimit
from translator.training.monitor import Monitor, UpdateReport
from translator.training.objectives import build_loss
from translator.training.objectives.consistency import ConsistencyLoss
from translator.training.objectives.cross_entropy import CrossEntropy
from translator.training.optimizer import build_optimizer
from translator.training.precision import Execution
from translator.training.random_state import seed_everything
from translator.training.updater import UpdateOutcome, Updater

LATE = Moment(share_done=0.9)


def two_passes(model: Seq2Seq, batch: Batch, weight: float, smoothing: float) -> dict[str, Tensor]:
    """The loss and its parts, by torch alone, one pass after the other."""
    real = batch.target_mask
    cut = Kept(batch.source % 3 > 0, batch.target_in % 3 > 0)
    passes = [model(batch.source, batch.source_mask, batch.target_in, kept=kept) for kept in (None, cut)]
    logits = [model.project(decoded.states)[real] for decoded in passes]  # (N, V) each
    targets = batch.target_out[real]
    smoothed, nll = (
        sum(F.cross_entropy(z, targets, label_smoothing=share, reduction="sum") for z in logits) / 2
        for share in (smoothing, 0.0)
    )
    p, q = (z.log_softmax(-1) for z in logits)
    divergence = sum(F.kl_div(a, b, log_target=True, reduction="sum") for a, b in ((p, q), (q, p))) / 2
    return {"loss": smoothed + weight * divergence, "nll": nll, "divergence": divergence}


@pytest.mark.parametrize("name", contract_cases.KINDS)
def test_the_loss_of_real_models_is_that_of_two_passes(name: str) -> None:
    """Their layers are as in evaluation, without dropout, so that the passes differ by the cutoff alone."""
    model, batch = contract_cases.make(name), make_batch(range(9))
    model.training = True  # of the model itself only: it is what the loss asks
    found = []
    for loss_sum in (
        CutByContent(0.1, 1.7, cutoff=0.5)(model, batch, LATE).loss_sum,
        two_passes(model, batch, 1.7, 0.1)["loss"],
    ):
        model.zero_grad()
        loss_sum.backward()
        found.append({"loss": loss_sum.detach(), **gradients(model)})
    torch.testing.assert_close(found[0], found[1])
    plain = CrossEntropy(0.1)(model, batch, LATE).loss_sum.detach()
    assert float(found[0]["loss"] - plain) > 0.1, "the divergence counts"


def test_the_loss_is_that_of_two_passes() -> None:
    model, batch = make_model().double().train(), make_batch(range(9))
    output = CutByContent(0.1, 1.7, cutoff=0.5)(model, batch, LATE)
    expected = two_passes(model, batch, 1.7, 0.1)
    found = {"loss": output.loss_sum, **output.parts}
    torch.testing.assert_close(found, expected)
    assert float(found["divergence"]) > 0.01
    assert output.num_tokens == batch.num_target_tokens, "those of one pass, which keeps the scale of the plain loss"


def updater_of(model: ToyModel, loss: Any) -> Updater:
    optimizer = build_optimizer(model, name="adam", learning_rate=0.1, betas=(0.9, 0.98), eps=1e-9, weight_decay=0)
    parts: dict[str, Any] = {"execution": Execution(torch.device("cpu")), "ranks": Ranks(), "clip_norm": 0.0}
    return Updater(model=model, loss=loss, optimizer=optimizer, notify=lambda text: None, **parts)


@pytest.mark.parametrize(("cuts", "limit"), [([], None), ([1, 17], None), ([], 60)])
def test_any_division_of_an_update_gives_the_same_gradient(
    cuts: list[int], limit: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Micro-batches are what accumulation, several ranks and splitting after running out of memory have in common."""
    model = make_model().double().train()
    updater = updater_of(model, CutByContent(0.1, 1.7, cutoff=0.5))
    updater.memory = MemoryLimit(limit)
    found: dict[str, Tensor] = {}
    monkeypatch.setattr(updater.optimizer, "step", lambda: found.update(gradients(model)))
    batches = [make_batch(range(first, last)) for first, last in pairwise([0, *cuts, 24])]
    outcome = updater(batches, learning_rate=0.1, moment=LATE)
    whole = make_batch(range(24))
    expected = two_passes(model, whole, 1.7, 0.1)
    (expected["loss"] / whole.num_target_tokens).backward()
    for name, gradient in gradients(model).items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-10, atol=1e-12)
    sums = {"loss": outcome.loss_sum, **outcome.parts}
    assert sums == {name: pytest.approx(value.item(), rel=1e-10) for name, value in expected.items()}


def test_out_of_memory_is_repeated_in_parts() -> None:
    model = make_model().double().train()

    class Tight(CutByContent):
        def __call__(self, model: Any, batch: Any, moment: Moment = LATE) -> LossOutput:
            if len(batch) > 5:
                raise torch.OutOfMemoryError("out of memory")
            return super().__call__(model, batch, moment)

    outcome = updater_of(model, Tight(0.1, 1.7, cutoff=0.5))([make_batch(range(24))], learning_rate=0.0, moment=LATE)
    expected = two_passes(model, make_batch(range(24)), 1.7, 0.1)
    assert outcome.loss_sum == pytest.approx(expected["loss"].item(), rel=1e-10)


def test_the_weight_grows_after_the_start() -> None:
    loss = build_loss(OptimConfig(loss="consistency", consistency=Consistency(weight=4.0, start=0.5, ramp=0.25)))
    assert isinstance(loss, ConsistencyLoss)
    assert [loss.weight_at(share) for share in (0, 0.49, 0.5, 0.625, 0.75, 0.99)] == [0, 0, 0, 2, 4, 4]
    assert [ConsistencyLoss(0.1, 4.0, start=0.5).weight_at(share) for share in (0.49, 0.5)] == [0, 4]
    assert ConsistencyLoss(0.1, 4.0).weight_at(0) == 4


class CountingRows(ToyModel):
    rows = 0

    def forward(self, source: Tensor, *others: Any, **options: Any) -> Decoded:
        self.rows += len(source)
        return super().forward(source, *others, **options)


@pytest.mark.parametrize(("training", "share_done", "passes"), [(True, 0.1, 1), (True, 0.9, 2), (False, 0.9, 1)])
def test_before_its_start_and_in_evaluation_it_is_the_plain_loss(
    training: bool, share_done: float, passes: int
) -> None:
    batch = make_batch(range(8))
    outputs = []
    for loss in (ConsistencyLoss(0.1, 2.0, cutoff=0.2, start=0.5), CrossEntropy(0.1)):
        torch.manual_seed(1)
        model = CountingRows(dropout=0.3).train(training)
        outputs.append(loss(model, batch, Moment(share_done)))
        assert model.rows == 8 * (passes if isinstance(loss, ConsistencyLoss) else 1)
    if passes == 1:
        assert outputs[0] == outputs[1], "bit for bit, from the same random numbers"
    else:
        assert set(outputs[0].parts) == {"nll", "divergence"}


def test_the_share_of_pieces_that_are_cut() -> None:
    torch.manual_seed(0)
    batch = make_batch(range(600))
    all_kept = ConsistencyLoss(0.1, 1.0, cutoff=0.2)._kept(batch)
    for kept, ids in ((all_kept.source, batch.source), (all_kept.target, batch.target_in)):
        first, second = kept.chunk(2)
        assert first.shape == second.shape == ids.shape
        assert first.all()
        assert float(second.double().mean()) == pytest.approx(0.8, abs=0.03)


def test_a_resumed_run_is_the_same_bit_for_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings: dict[str, Any] = {"max_updates": 10, "save_every": 2, "validate_every": 5}
    settings["loss"] = ConsistencyLoss(0.1, 2.0, cutoff=0.2, start=0.3, ramp=0.5)
    seed_everything(11)
    whole = make_trainer(tmp_path / "whole", **settings)
    whole.fit()
    seed_everything(11)
    broken = make_trainer(tmp_path / "broken", **settings)
    collect, tick = broken.updater.collect, stop_after(7)
    monkeypatch.setattr(broken.updater, "collect", lambda *args, **options: (tick(), collect(*args, **options))[1])
    with pytest.raises(Stop):
        broken.fit()
    seed_everything(999)
    resumed = make_trainer(tmp_path / "broken", **settings, model=make_model(seed=77, dropout=0.2))
    assert resumed.resume() == 6
    resumed.fit()
    assert same(weights_of(resumed.model), weights_of(whole.model))


def test_its_parts_are_in_the_event_file(tmp_path: Path) -> None:
    loss, calls = ConsistencyLoss(0.1, 2.0, cutoff=0.2, start=0.5), []

    def recorded(model: Any, batch: Any, moment: Moment = LATE) -> LossOutput:
        output = loss(model, batch, moment)
        if model.training:
            calls.append((moment.share_done, output))
        return output

    monitor = Monitor(tmp_path / "events", log_every=1, stream=io.StringIO())
    make_trainer(tmp_path, loss=recorded, monitor=monitor, max_updates=6, validate_every=6).fit()
    monitor.close()
    events = EventAccumulator(str(tmp_path / "events"))
    events.Reload()
    shares = sorted({share for share, _ in calls})
    for name, updates in (("nll", range(1, 7)), ("divergence", range(4, 7))):
        found = {event.step: event.value for event in events.Scalars(f"train/{name}")}
        assert list(found) == list(updates)
        for update, value in found.items():
            outputs = [output for share, output in calls if share == shares[update - 1]]
            mean = sum(float(one.parts[name]) for one in outputs) / sum(one.num_tokens for one in outputs)
            assert value == pytest.approx(mean, rel=1e-5)
            assert value > 0


def test_a_part_that_appears_later_is_averaged_over_its_own_updates() -> None:
    monitor = Monitor(None, log_every=100)
    for update, parts in ((1, {"nll": 10.0}), (2, {"nll": 20.0, "divergence": 6.0})):
        outcome = UpdateOutcome(5.0, parts, 10 * update, gradient_norm=1.0, padding_share=0.0, is_finite=True)
        monitor.update(UpdateReport(update, outcome, learning_rate=1e-3, progress=0.5, seconds_left=1.0))
    averages = monitor._averages()
    assert averages["nll"] == 1.0
    assert averages["divergence"] == 0.3


@pytest.mark.parametrize(
    ("name", "teacher_forcing"),
    [
        *((name, 1.0) for name in contract_cases.KINDS),
        ("lstm-additive-classic", 1 - 1e-12),
    ],  # the last one step by step
)
def test_a_piece_that_is_cut_has_an_embedding_of_zeros(name: str, teacher_forcing: float) -> None:
    """Cutting a piece has the same effect as replacing it by a piece whose embedding is zero."""
    model = contract_cases.make(name)
    source, mask, target_in = contract_cases.make_batch((5, 3))
    source[source == 0] = 4
    source[mask & (source == 9)], target_in[target_in == 9] = 5, 5
    with torch.no_grad():
        for table in (model.embeddings.source, model.embeddings.target):
            table.weight[9] = 0
    kept = Kept(torch.ones_like(mask), torch.ones_like(target_in, dtype=torch.bool))
    kept.source[0, 1] = kept.source[1, 2] = kept.target[0, 0] = kept.target[1, 3] = False
    cut = model(source, mask, target_in, kept=kept, teacher_forcing=teacher_forcing).states
    plain = model(source, mask, target_in, teacher_forcing=teacher_forcing).states
    replaced = source.masked_fill(~kept.source, 9), mask, target_in.masked_fill(~kept.target, 9)
    expected = model(*replaced, teacher_forcing=teacher_forcing).states
    contract_cases.assert_equal(cut, expected)
    assert not torch.allclose(cut, plain)


def test_word_dropout_zeroes_source_pieces_while_training() -> None:
    torch.manual_seed(0)
    embeddings = Embeddings(9, 9, 4, "target", word_dropout=0.25).train()
    ids = torch.randint(0, 9, (40, 50))
    vectors = embeddings.of_source(ids)
    dropped = (vectors == 0).all(-1)
    assert float(dropped.double().mean()) == pytest.approx(0.25, abs=0.03)
    assert torch.equal(vectors[~dropped], embeddings.source(ids)[~dropped])
    assert torch.equal(embeddings.eval().of_source(ids), embeddings.source(ids))


def test_passes_that_cannot_differ_are_refused() -> None:
    arguments = ["optim.loss=consistency", "model.dropout=0"]
    with pytest.raises(UserError, match=r"optim\.loss=consistency: without dropout both passes are the same"):
        check_config(configuration(*arguments))
    for change in ("optim.consistency.cutoff=0.1", "model.word_dropout=0.1", "model.dropout=0.2"):
        check_config(configuration(*arguments, change))


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["optim.consistency.weight=2"], "weight=2.0: is only used with optim.loss=consistency; set that, or"),
        (["optim.consistency.cutoff=0.2"], r"cutoff=0.2: .*or optim\.consistency\.cutoff=0\.0"),
        (["optim.consistency.start=0.5"], "start=0.5: is only used with optim.loss=consistency"),
        (
            ["optim.loss=consistency", "optim.consistency.start=0.9", "optim.consistency.ramp=0.5"],
            "ramp=0.5: from start=0.9 on, the full weight would never be reached; give at most 0.1",
        ),
    ],
)
def test_options_without_effect_are_refused(overrides: list[str], message: str) -> None:
    with pytest.raises(UserError, match=rf"optim\.consistency\.{message}"):
        check_config(configuration(*overrides))
    check_config(configuration(*overrides, "resume=runs/earlier"))  # which began when they were accepted


def test_options_with_an_effect_are_accepted() -> None:
    check_config(configuration("optim.consistency.weight=1"))
    for start, ramp in ((0.9, 0.1), (0.7, 0.3), (0, 1), (0.3333333, 0.666667)):  # the last as the refusal rounds it
        shares = [f"optim.consistency.start={start}", f"optim.consistency.ramp={ramp}"]
        check_config(configuration("optim.loss=consistency", "optim.consistency.weight=2", *shares))
