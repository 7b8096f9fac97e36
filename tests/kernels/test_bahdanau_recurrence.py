"""The fused Bahdanau recurrence against the loop that autograd differentiates."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from translator.kernels.bahdanau_recurrence import bahdanau_recurrence
from translator.models import bahdanau
from translator.models.bahdanau import AttendingOutput, Attention, BahdanauLayer

STEPS, EMBEDDING, HIDDEN, ATTENTION = 5, 6, 4, 3
LENGTHS = (6, 4, 0, 1)  # one sentence is empty


class Case:
    """A layer, its attention and their inputs, all requiring gradients."""

    def __init__(self, score: str = "additive", dtype: torch.dtype = torch.float64, scale: float = 1.0) -> None:
        torch.manual_seed(0)
        num_rows = len(LENGTHS)
        self.layer = BahdanauLayer(EMBEDDING, HIDDEN, 2 * HIDDEN).to(dtype)
        self.attention = Attention(score, HIDDEN, 2 * HIDDEN, ATTENTION).to(dtype)
        self.inputs = [
            torch.randn(STEPS, num_rows, EMBEDDING, dtype=dtype),
            torch.randn(num_rows, HIDDEN, dtype=dtype).tanh(),
            torch.randn(num_rows, HIDDEN, dtype=dtype),
            torch.randn(num_rows, max(LENGTHS), 2 * HIDDEN, dtype=dtype) * scale,
        ]
        self.mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS).unsqueeze(1)  # (B, S)
        self.wanted = [tensor.requires_grad_() for tensor in self.inputs]
        self.wanted += [*self.layer.parameters(), *self.attention.parameters()]

    def run(self, dropout_mask: Tensor | None = None, *, need_weights: bool = False) -> AttendingOutput:
        source = self.attention.prepare(self.inputs[3], self.mask)
        return self.layer(*self.inputs[:3], self.attention, source, need_weights, dropout_mask)

    def results(self, dropout_mask: Tensor | None = None) -> tuple[list[Tensor], tuple[Tensor, ...]]:
        states, contexts, _, cell = self.run(dropout_mask)
        values = [states, contexts, cell]
        torch.manual_seed(1)
        directions = [torch.randn_like(value) for value in values]
        return values, torch.autograd.grad(values, self.wanted, directions)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """One entry for each call of the fused function."""
    taken: list[bool] = []

    def watched(*operands: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        taken.append(True)
        return bahdanau_recurrence(*operands)

    monkeypatch.setattr(bahdanau, "bahdanau_recurrence", watched)
    return taken


@pytest.mark.parametrize("variational", [False, True])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_values_and_gradients_are_those_of_the_loop(
    calls: list[bool], use_reference: Callable[[], None], variational: bool, dtype: torch.dtype, tolerance: float
) -> None:
    case = Case(dtype=dtype)
    dropout_mask = torch.rand(len(LENGTHS), HIDDEN, dtype=dtype).round() * 2 if variational else None
    fused = case.results(dropout_mask)
    assert calls == [True]
    use_reference()
    torch.testing.assert_close(fused, case.results(dropout_mask), rtol=tolerance, atol=tolerance)


def test_gradients_by_finite_differences(calls: list[bool]) -> None:
    case = Case()

    def states_contexts_cell(*_: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        states, contexts, _, cell = case.run()
        return states, contexts, cell

    assert torch.autograd.gradcheck(states_contexts_cell, case.wanted)
    assert calls


def test_half_precision_takes_the_loop(calls: list[bool]) -> None:
    case = Case(dtype=torch.bfloat16)
    assert all(part.isfinite().all() for part in case.results()[0])
    assert calls == []


@pytest.mark.parametrize("num_steps", [1, 2])
def test_single_steps_take_the_loop(calls: list[bool], num_steps: int) -> None:
    case = Case()
    case.inputs[0] = case.inputs[0][:num_steps]
    case.run()
    assert len(calls) == num_steps - 1


def test_projections_too_large_for_an_exponential_take_the_loop(calls: list[bool]) -> None:
    case = Case(dtype=torch.float32, scale=300.0)
    values, gradients = case.results()
    assert calls == []
    assert all(tensor.isfinite().all() for tensor in (*values, *gradients))


def test_projections_just_small_enough_equal_the_loop(calls: list[bool], use_reference: Callable[[], None]) -> None:
    case = Case(dtype=torch.float32)
    with torch.no_grad():  # keys of ±39.9, and queries of at most just under 40
        prepared = case.attention.prepare(case.inputs[3], case.mask).prepared
        case.attention.score.key_projection.weight.mul_(39.9 / prepared.abs().max())
        query_weight = case.attention.score.query_projection.weight
        query_weight.mul_(39.9 / query_weight.abs().sum(1, keepdim=True))
    fused = case.results()
    assert calls == [True]
    use_reference()
    torch.testing.assert_close(fused, case.results(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("score", ["dot", "scaled_dot", "cosine", "gaussian"])
def test_other_scores_take_the_loop(calls: list[bool], score: str) -> None:
    Case(score).run()
    assert calls == []


def test_weights_on_request_are_those_that_made_the_contexts() -> None:
    case = Case()
    weights, contexts = case.run(need_weights=True)[2], case.run()[1]
    torch.testing.assert_close(torch.einsum("tbs,bsd->tbd", weights, case.inputs[3]), contexts, rtol=1e-12, atol=1e-12)


def test_gradients_can_be_taken_twice_from_one_pass() -> None:
    case = Case()
    loss = case.run()[0].square().sum()
    first = torch.autograd.grad(loss, case.wanted, retain_graph=True)
    torch.testing.assert_close(torch.autograd.grad(loss, case.wanted), first, rtol=0, atol=0)
