"""The chunked loss of two passes against torch's own cross-entropy and divergence."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from translator.kernels import consistency as kernel
from translator.kernels.consistency import ConsistencySums, chunked_consistency
from translator.training.objectives import consistency as objective
from translator.training.objectives.consistency import consistency


def operands(num_positions: int, with_bias: bool, dtype: torch.dtype = torch.float64) -> tuple[Tensor, ...]:
    torch.manual_seed(0)
    states = torch.randn(2, num_positions, 8, dtype=dtype, requires_grad=True)
    weight = torch.randn(23, 8, dtype=dtype, requires_grad=True)
    bias = torch.randn(23, dtype=dtype, requires_grad=True) if with_bias else None
    return states, weight, bias, torch.randint(0, 23, (num_positions,))


def by_torch(
    states: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, smoothing: float, divergence_weight: float
) -> ConsistencySums:
    first, second = F.linear(states, weight, bias)
    both = [F.cross_entropy(z, targets, label_smoothing=smoothing, reduction="sum") for z in (first, second)]
    nll = [F.cross_entropy(z, targets, reduction="sum") for z in (first, second)]
    log_p, log_q = first.log_softmax(-1), second.log_softmax(-1)
    forwards = F.kl_div(log_q, log_p, log_target=True, reduction="sum")  # KL(p‖q)
    backwards = F.kl_div(log_p, log_q, log_target=True, reduction="sum")
    divergence = (forwards + backwards) / 2
    return ConsistencySums(sum(both) / 2 + divergence_weight * divergence, sum(nll) / 2, divergence)


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
@pytest.mark.parametrize("divergence_weight", [0.3, 5.0])
@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("num_positions", [0, 1, 16, 37])  # none, less than a chunk, a whole one, and a partial one
def test_value_and_gradients_equal_torchs(
    monkeypatch: pytest.MonkeyPatch,
    num_positions: int,
    with_bias: bool,
    divergence_weight: float,
    label_smoothing: float,
) -> None:
    monkeypatch.setattr(kernel, "_CHUNK", 16)
    states, weight, bias, targets = operands(num_positions, with_bias)
    inputs = [states, weight] + ([bias] if with_bias else [])
    found = chunked_consistency(states, weight, bias, targets, label_smoothing, divergence_weight)
    expected = by_torch(states, weight, bias, targets, label_smoothing, divergence_weight)
    torch.testing.assert_close(tuple(found), tuple(expected))
    assert [part.requires_grad for part in found] == [True, False, False]
    ours = torch.autograd.grad(found.loss * 0.37, inputs)
    torch.testing.assert_close(ours, torch.autograd.grad(expected.loss * 0.37, inputs))


def test_gradients_equal_finite_differences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "_CHUNK", 2)
    states, weight, bias, targets = operands(3, with_bias=True)
    assert torch.autograd.gradcheck(
        lambda *inputs: chunked_consistency(*inputs, targets, 0.1, 1.7).loss, (states, weight, bias)
    )


@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("chunk", [100, 16])  # all positions at once, or in parts
def test_the_reference_is_equal(
    use_reference: Callable[[], None], monkeypatch: pytest.MonkeyPatch, with_bias: bool, chunk: int
) -> None:
    use_reference()
    monkeypatch.setattr(objective, "_CHUNK", chunk)
    arguments = operands(37, with_bias)
    inputs = [tensor for tensor in arguments[:3] if tensor is not None]
    found, expected = consistency(*arguments, 0.1, 1.7), by_torch(*arguments, 0.1, 1.7)
    torch.testing.assert_close(tuple(found), tuple(expected))
    assert [part.requires_grad for part in found] == [True, False, False]
    torch.testing.assert_close(torch.autograd.grad(found.loss, inputs), torch.autograd.grad(expected.loss, inputs))


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_the_reference_never_keeps_the_logits_of_more_than_a_chunk(
    monkeypatch: pytest.MonkeyPatch, precision: torch.dtype
) -> None:
    monkeypatch.setattr(objective, "_CHUNK", 16)
    monkeypatch.setattr(objective, "use_kernels", lambda *operands: False)
    states, weight, bias, targets = operands(50, with_bias=True, dtype=torch.float32)
    sizes: list[int] = []

    def keep(tensor: Tensor) -> Tensor:
        sizes.append(tensor.numel())
        return tensor

    with (
        torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor),
        torch.autocast("cpu", precision, enabled=precision is not torch.float32),
    ):
        sums = consistency(states, weight, bias, targets, 0.1, 1.7)
    assert max(sizes, default=0) <= states.numel(), "logits are left to the backward pass"
    sums.loss.backward()
    assert max(sizes) <= 2 * 16 * 23
    expected = torch.autograd.grad(by_torch(states, weight, bias, targets, 0.1, 1.7).loss, states)[0]
    tolerance = 1e-4 if precision is torch.float32 else 0.2
    torch.testing.assert_close(states.grad, expected, rtol=tolerance, atol=tolerance)


def test_equal_passes_do_not_diverge() -> None:
    states, weight, bias, targets = operands(37, with_bias=True, dtype=torch.float32)
    twice = states[:1].expand(2, -1, -1)
    sums = chunked_consistency(twice, weight, bias, targets, 0.0, 1_000.0)
    assert abs(float(sums.divergence)) < 1e-5
    torch.testing.assert_close(sums.loss, sums.nll, rtol=1e-4, atol=0)


def test_extreme_logits_stay_finite() -> None:
    states = torch.tensor([[[200.0], [-200.0]], [[-200.0], [200.0]]], requires_grad=True)
    weight = torch.tensor([[10.0], [-10.0]])
    sums = chunked_consistency(states, weight, None, torch.tensor([1, 1]), 0.1, 1.0)
    torch.testing.assert_close(sums.divergence, torch.tensor(8_000.0))  # 4,000 at each position
    (gradient,) = torch.autograd.grad(sums.loss, states)
    assert gradient.isfinite().all()


def test_no_gradients_are_computed_unless_needed() -> None:
    with torch.no_grad():
        sums = chunked_consistency(*operands(5, with_bias=True), 0.1, 1.0)
    assert not sums.loss.requires_grad
