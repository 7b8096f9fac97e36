"""The chunked loss against torch's own cross-entropy."""

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional as F

from translator.kernels import cross_entropy
from translator.kernels.cross_entropy import chunked_cross_entropy
from translator.training.objectives.cross_entropy import smoothed_cross_entropy

SMOOTHING = (0.0, 0.1, 0.7)


def operands(num_positions: int, dtype: torch.dtype, with_bias: bool) -> tuple[torch.Tensor, ...]:
    torch.manual_seed(0)
    states = torch.randn(num_positions, 8, dtype=dtype, requires_grad=True)
    weight = torch.randn(23, 8, dtype=dtype, requires_grad=True)
    bias = torch.randn(23, dtype=dtype, requires_grad=True) if with_bias else None
    return states, weight, bias, torch.randint(0, 23, (num_positions,))


@pytest.mark.parametrize("label_smoothing", SMOOTHING)
@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("num_positions", [0, 1, 16, 37])  # none, less than a chunk, whole chunks, and a partial one
def test_value_and_gradients_equal_torchs(
    monkeypatch: pytest.MonkeyPatch, num_positions: int, with_bias: bool, label_smoothing: float
) -> None:
    monkeypatch.setattr(cross_entropy, "_CHUNK", 16)
    states, weight, bias, targets = operands(num_positions, torch.float64, with_bias)
    inputs = [states, weight] + ([bias] if with_bias else [])
    loss, nll = chunked_cross_entropy(states, weight, bias, targets, label_smoothing)
    logits = F.linear(states, weight, bias)
    expected = F.cross_entropy(logits, targets, label_smoothing=label_smoothing, reduction="sum")
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(nll, F.cross_entropy(logits, targets, reduction="sum"))
    assert not nll.requires_grad
    ours = torch.autograd.grad(loss * 0.37, inputs)
    torch.testing.assert_close(ours, torch.autograd.grad(expected * 0.37, inputs))


def test_extreme_logits_stay_finite() -> None:
    states = torch.tensor([[200.0, 0.0], [-200.0, 0.0]], requires_grad=True)
    weight = torch.tensor([[10.0, 0.0], [-10.0, 0.0]])
    loss, _ = chunked_cross_entropy(states, weight, None, torch.tensor([1, 1]), 0.1)
    expected = F.cross_entropy(states @ weight.T, torch.tensor([1, 1]), label_smoothing=0.1, reduction="sum")
    torch.testing.assert_close(loss, expected)
    (gradient,) = torch.autograd.grad(loss, states)
    assert gradient.isfinite().all()


@pytest.mark.parametrize("label_smoothing", SMOOTHING)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_the_reference_is_equal(
    use_reference: Callable[[], None], dtype: torch.dtype, tolerance: float, label_smoothing: float
) -> None:
    states, weight, bias, targets = operands(37, dtype, True)
    chunked = smoothed_cross_entropy(states, weight, bias, targets, label_smoothing)
    chunked_gradients = torch.autograd.grad(chunked[0], (states, weight, bias))
    use_reference()
    plain = smoothed_cross_entropy(states, weight, bias, targets, label_smoothing)
    torch.testing.assert_close(chunked, plain, rtol=tolerance, atol=tolerance)
    gradients = torch.autograd.grad(plain[0], (states, weight, bias))
    torch.testing.assert_close(chunked_gradients, gradients, rtol=tolerance, atol=tolerance)
    assert not chunked[1].requires_grad
    assert not plain[1].requires_grad


def test_no_gradients_are_computed_unless_needed() -> None:
    states, weight, bias, targets = operands(5, torch.float32, True)
    with torch.no_grad():
        loss, _ = chunked_cross_entropy(states, weight, bias, targets, 0.1)
    assert not loss.requires_grad
