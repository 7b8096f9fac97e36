"""One update: the same gradient however the sentences are split up, and no non-finite value reaches a weight."""

import io
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from support.training_toys import ToyLoader, ToyModel, gradients, make_batch, make_model, same, weights
from translator.build.data import micro_batch_tokens
from translator.data.batching import Batch, BatchSampler
from translator.errors import UserError
from translator.schema.training import TrainerConfig
from translator.training.distributed import Ranks
from translator.training.interfaces import NO_MOMENT, LossOutput, Moment
from translator.training.memory import MemoryLimit, batch_size, is_out_of_memory
from translator.training.objectives.cross_entropy import CrossEntropy
from translator.training.optimizer import build_optimizer
from translator.training.precision import Execution
from translator.training.updater import Updater

CPU = Execution(torch.device("cpu"))


def make_updater(model: ToyModel, loss: Any = None, execution: Execution = CPU, clip_norm: float = 0.0) -> Updater:
    optimizer = build_optimizer(model, name="adam", learning_rate=0.1, betas=(0.9, 0.98), eps=1e-9, weight_decay=0)
    lines = io.StringIO()
    updater = Updater(
        model=model,
        loss=loss or CrossEntropy(0.1),
        optimizer=optimizer,
        execution=execution,
        ranks=Ranks(),
        clip_norm=clip_norm,
        notify=lambda text: print(text, file=lines),
    )
    updater.lines = lines  # type: ignore[attr-defined]
    return updater


class GradientKeeper:
    """Stands in for an optimizer's step: records the gradient it receives."""

    def __init__(self, updater: Updater, monkeypatch: pytest.MonkeyPatch) -> None:
        self.gradients: dict[str, Tensor] = {}
        monkeypatch.setattr(updater.optimizer, "step", lambda: self.gradients.update(gradients(updater.model)))


def whole_gradient(rows: range) -> dict[str, Tensor]:
    """Using torch alone: mean cross-entropy of one batch over its real tokens."""
    model, batch = make_model().double(), make_batch(rows)
    states = model(batch.source, batch.source_mask, batch.target_in).states
    loss = torch.nn.functional.cross_entropy(
        model.project(states).flatten(0, 1), batch.target_out.flatten(), ignore_index=0, label_smoothing=0.1
    )
    loss.backward()
    return gradients(model)


def assert_same_gradient(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("cuts", [[], [1], [5, 6, 19]])
def test_accumulated_gradient_is_that_of_one_big_batch(cuts: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    edges = [0, *cuts, 24]
    batches = [make_batch(range(first, last)) for first, last in pairwise(edges)]
    updater = make_updater(make_model().double())
    keeper = GradientKeeper(updater, monkeypatch)
    outcome = updater(batches, learning_rate=0.1, moment=NO_MOMENT)
    assert_same_gradient(keeper.gradients, whole_gradient(range(24)))
    assert outcome.num_tokens == make_batch(range(24)).num_target_tokens
    assert updater.model.embedding.weight.grad is None, "nothing may leak into the next update"


def test_parts_of_the_loss_are_summed_by_name() -> None:
    plain = CrossEntropy(0.1)

    def loss(model: ToyModel, batch: Batch, moment: Moment = NO_MOMENT) -> LossOutput:
        output = plain(model, batch)
        return output._replace(parts=output.parts | {"rows": torch.tensor(float(len(batch)))})

    batches = [make_batch(range(5)), make_batch(range(5, 24))]
    model = make_model().double()
    expected = sum(float(plain(model, batch).parts["nll"]) for batch in batches)
    outcome = make_updater(model, loss)(batches, learning_rate=0.1, moment=NO_MOMENT)
    assert outcome.parts == {"nll": pytest.approx(expected, rel=1e-12), "rows": 24.0}


class TightMemory:
    """A loss that runs out of memory above a number of rows."""

    def __init__(self, max_rows: int, error: Exception) -> None:
        self.max_rows, self.error = max_rows, error
        self.loss = CrossEntropy(0.1)
        self.num_failures = 0

    def __call__(self, model: ToyModel, batch: Batch, moment: Moment = NO_MOMENT) -> LossOutput:
        if len(batch) > self.max_rows:
            self.num_failures += 1
            raise self.error
        return self.loss(model, batch)


CPU_ERROR = RuntimeError("[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: …")


@pytest.mark.parametrize(
    ("error", "max_rows"), [(torch.OutOfMemoryError("CUDA out of memory."), 3), (CPU_ERROR, 1), (MemoryError(), 12)]
)
def test_out_of_memory_gives_the_gradient_of_the_whole(
    error: Exception, max_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    loss = TightMemory(max_rows, error)
    updater = make_updater(make_model().double(), loss)
    keeper = GradientKeeper(updater, monkeypatch)
    # The small batch comes first, so its gradient already exists when the large one fails.
    batches = [make_batch(range(1)), make_batch(range(1, 24))]
    outcome = updater(batches, learning_rate=0.1, moment=NO_MOMENT)
    assert loss.num_failures > 0
    assert outcome.is_finite
    assert outcome.num_tokens == make_batch(range(24)).num_target_tokens
    assert_same_gradient(keeper.gradients, whole_gradient(range(24)))
    assert "out of memory" in updater.lines.getvalue()  # type: ignore[attr-defined]

    failures = loss.num_failures
    updater(batches, learning_rate=0.1, moment=NO_MOMENT)
    assert loss.num_failures == failures, "the limit is remembered"


def test_out_of_memory_in_the_middle_of_a_backward_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some parameters have received their gradient when the pass fails; it must not count twice."""
    updater = make_updater(make_model().double())
    keeper = GradientKeeper(updater, monkeypatch)
    failures = []

    class FailOnce(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, tensor: Tensor) -> Tensor:
            return tensor.clone()

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Tensor:
            if not failures:
                given = gradients(updater.model)
                failures.append(given.keys())
                raise torch.OutOfMemoryError("out of memory")
            return gradient

    encode = ToyModel.encode
    monkeypatch.setattr(
        ToyModel, "encode", lambda *args: (memory := encode(*args))._replace(states=FailOnce.apply(memory.states))
    )
    updater([make_batch(range(9)), make_batch(range(9, 24))], learning_rate=0.1, moment=NO_MOMENT)
    assert failures, "the pass must have broken off"
    assert "output.bias" in failures[0], "and part of the gradient must have been there"
    assert_same_gradient(keeper.gradients, whole_gradient(range(24)))


def test_a_single_pair_that_does_not_fit_is_named() -> None:
    updater = make_updater(make_model(), TightMemory(0, MemoryError()))
    with pytest.raises(UserError, match=r"row 7 of the training corpus.*max_pieces"):
        updater([make_batch(range(7, 8))], learning_rate=0.1, moment=NO_MOMENT)


def test_other_errors_are_not_taken_for_a_lack_of_memory() -> None:
    updater = make_updater(make_model(), TightMemory(0, RuntimeError("shapes do not match")))
    with pytest.raises(RuntimeError, match="shapes do not match"):
        updater([make_batch(range(4))], learning_rate=0.1, moment=NO_MOMENT)
    assert not is_out_of_memory(ValueError("out of memory"))


def test_parts_lie_below_the_limit_and_lose_nothing() -> None:
    batch = make_batch(range(40))
    parts = MemoryLimit(50).parts(batch)
    assert all(batch_size(part) <= 50 for part in parts)
    assert torch.cat([part.indices for part in parts]).tolist() == list(range(40))


def test_clipping_scales_the_gradient_to_the_norm(monkeypatch: pytest.MonkeyPatch) -> None:
    updater = make_updater(make_model().double(), clip_norm=0.01)
    keeper = GradientKeeper(updater, monkeypatch)
    outcome = updater([make_batch(range(24))], learning_rate=0.1, moment=NO_MOMENT)
    whole = torch.cat([gradient.flatten() for gradient in whole_gradient(range(24)).values()]).norm()
    clipped = torch.cat([gradient.flatten() for gradient in keeper.gradients.values()]).norm()
    assert outcome.gradient_norm == pytest.approx(whole.item(), rel=1e-9), "the norm before clipping is reported"
    assert clipped.item() == pytest.approx(0.01, rel=1e-3)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_leaves_the_weights_alone(bad: float) -> None:
    good = CrossEntropy()

    def loss(model: ToyModel, batch: Batch, moment: Moment = NO_MOMENT) -> LossOutput:
        output = good(model, batch)
        factor = bad if 11 in batch.indices.tolist() else 1.0
        return output._replace(loss_sum=output.loss_sum * factor)

    model = make_model()
    before = weights(model)
    updater = make_updater(model, loss)
    batches = [make_batch(range(4 * i, 4 * i + 4)) for i in range(4)]
    outcome = updater(batches, learning_rate=0.1, moment=NO_MOMENT)
    assert not outcome.is_finite
    assert outcome.suspects == [8, 9, 10, 11], "only the micro-batch with that loss"
    assert same(weights(model), before)
    assert not updater.optimizer.state_dict()["state"], "the optimizer's state is unchanged too"
    assert updater(batches[:2], learning_rate=0.1, moment=NO_MOMENT).is_finite
    assert not same(weights(model), before)


def test_a_gradient_that_is_not_finite_leaves_the_weights_alone() -> None:
    model = make_model()
    model.hidden.weight.register_hook(lambda gradient: gradient * float("nan"))
    before = weights(model)
    outcome = make_updater(model, clip_norm=1.0)([make_batch(range(4))], learning_rate=0.1, moment=NO_MOMENT)
    assert not outcome.is_finite
    assert outcome.suspects == [0, 1, 2, 3]
    assert same(weights(model), before)


def plain_loss(model: ToyModel, batch: Batch, moment: Moment = NO_MOMENT) -> LossOutput:
    """Using torch alone, in whatever format autocast chooses."""
    states = model(batch.source, batch.source_mask, batch.target_in).states
    logits, targets = model.project(states[batch.target_mask]).float(), batch.target_out[batch.target_mask]
    loss = torch.nn.functional.cross_entropy(logits, targets, label_smoothing=0.1, reduction="sum")
    return LossOutput(loss, {"nll": loss.detach()}, len(targets))


class TestFloat16:
    """The scaler also works on the CPU, so its effect can be tested here."""

    execution = Execution(torch.device("cpu"), torch.float16)

    def test_the_norm_is_that_of_the_unscaled_gradient(self) -> None:
        updater = make_updater(make_model(), plain_loss, execution=self.execution, clip_norm=1.0)
        updater.scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
        outcome = updater([make_batch(range(24))], learning_rate=0.1, moment=NO_MOMENT)
        expected = torch.cat([gradient.flatten() for gradient in whole_gradient(range(24)).values()]).norm()
        assert outcome.gradient_norm == pytest.approx(expected.item(), rel=0.02)

    def test_an_overflow_lowers_the_scale_and_is_no_failure(self) -> None:
        model = make_model()
        before = weights(model)
        updater = make_updater(model, plain_loss, execution=self.execution)
        handle = model.hidden.weight.register_hook(lambda gradient: gradient * float("inf"))
        scale = updater.scaler.get_scale()
        outcome = updater([make_batch(range(4))], learning_rate=0.1, moment=NO_MOMENT)
        assert outcome.is_finite
        assert same(weights(model), before)
        assert updater.scaler.get_scale() == scale / 2
        handle.remove()
        updater([make_batch(range(4))], learning_rate=0.1, moment=NO_MOMENT)
        assert not same(weights(model), before)

    def test_an_overflow_without_any_scale_is_a_failure(self) -> None:
        model = make_model()
        updater = make_updater(model, plain_loss, execution=self.execution)
        model.hidden.weight.register_hook(lambda gradient: gradient * float("nan"))
        outcomes = [updater([make_batch(range(4))], learning_rate=0.1, moment=NO_MOMENT) for _ in range(18)]
        assert outcomes[0].is_finite
        assert not outcomes[-1].is_finite


@pytest.mark.parametrize(("update_tokens", "expected"), [(0, 1), (1, 1), (90, 3), (10_000, 6)])
def test_micro_batches_are_gathered_up_to_the_budget(update_tokens: int, expected: int) -> None:
    """Eight rows of about 3.5 target tokens make about 30 tokens; the last epoch ends regardless of the budget."""
    loader = ToyLoader()
    updater = make_updater(make_model())
    collected = updater.collect(iter(loader), loader, update_tokens=update_tokens, max_epochs=1)
    assert len(collected) == expected


class AllAlike(Ranks):
    """Ranks that all have batches of the same size."""

    def sum(self, *values: float) -> list[float]:
        return [self.count * value for value in values]


@pytest.mark.parametrize(("batch_tokens", "update_tokens"), [(512, 4096), (4096, 4096), (4096, 2000), (512, 0)])
def test_an_update_has_as_many_tokens_on_one_rank_as_on_eight(batch_tokens: int, update_tokens: int) -> None:
    config = TrainerConfig(batch_tokens=batch_tokens, update_tokens=update_tokens)
    num_tokens = {}
    for count in (1, 2, 8):
        lengths = np.random.default_rng(1).integers(5, 40, 20_000)
        sampler = BatchSampler(
            lengths, lengths, batch_tokens=micro_batch_tokens(config, count), seed=1, num_ranks=count
        )
        batches = (SimpleNamespace(num_target_tokens=int(lengths[rows].sum())) for rows in sampler.epoch(0))
        updater = make_updater(make_model())
        updater.ranks = AllAlike(0, count)
        updates = [
            updater.collect(batches, ToyLoader(), update_tokens=update_tokens, max_epochs=0)  # type: ignore[arg-type]
            for _ in range(12)
        ]
        num_tokens[count] = sum(count * batch.num_target_tokens for update in updates for batch in update) / 12
    for count, average in num_tokens.items():
        expected = update_tokens or count * batch_tokens  # 0: one micro-batch per rank
        assert average == pytest.approx(expected, rel=0.1), count
