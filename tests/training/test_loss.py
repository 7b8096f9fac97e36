"""The chunked loss against torch's own cross-entropy."""

from types import SimpleNamespace

import pytest
import torch
from torch.nn import functional as F

from translator.models.transformer import Transformer
from translator.training.objectives import cross_entropy as loss_module
from translator.training.objectives.cross_entropy import CrossEntropy, real_positions, smoothed_cross_entropy

SMOOTHING = (0.0, 0.1, 0.7)


def operands(num_positions: int, dtype: torch.dtype, with_bias: bool) -> tuple[torch.Tensor, ...]:
    torch.manual_seed(0)
    states = torch.randn(num_positions, 8, dtype=dtype, requires_grad=True)
    weight = torch.randn(23, 8, dtype=dtype, requires_grad=True)
    bias = torch.randn(23, dtype=dtype, requires_grad=True) if with_bias else None
    return states, weight, bias, torch.randint(0, 23, (num_positions,))


@pytest.mark.parametrize("label_smoothing", SMOOTHING)
@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("num_positions", [0, 1, 16, 37])  # none, fewer than a chunk, whole chunks, and a part of one
def test_value_and_gradients_equal_torchs(
    monkeypatch: pytest.MonkeyPatch, num_positions: int, with_bias: bool, label_smoothing: float
) -> None:
    monkeypatch.setattr(loss_module, "_CHUNK", 16)
    states, weight, bias, targets = operands(num_positions, torch.float64, with_bias)
    inputs = [states, weight] + ([bias] if with_bias else [])
    loss, nll = smoothed_cross_entropy(states, weight, bias, targets, label_smoothing)
    logits = F.linear(states, weight, bias)
    expected = F.cross_entropy(logits, targets, label_smoothing=label_smoothing, reduction="sum")
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(nll, F.cross_entropy(logits, targets, reduction="sum"))
    assert not nll.requires_grad
    ours = torch.autograd.grad(loss * 0.37, inputs)
    torch.testing.assert_close(ours, torch.autograd.grad(expected * 0.37, inputs))


def test_real_positions_are_those_of_the_mask() -> None:
    torch.manual_seed(0)
    for shape in ((1, 1), (7, 5), (300, 41)):
        mask = torch.rand(shape) < 0.8
        expected = mask.flatten().nonzero().squeeze(1)
        assert real_positions(mask, len(expected)).equal(expected)


def test_extreme_logits_stay_finite() -> None:
    states = torch.tensor([[200.0, 0.0], [-200.0, 0.0]], requires_grad=True)
    weight = torch.tensor([[10.0, 0.0], [-10.0, 0.0]])
    loss, _ = smoothed_cross_entropy(states, weight, None, torch.tensor([1, 1]), 0.1)
    expected = F.cross_entropy(states @ weight.T, torch.tensor([1, 1]), label_smoothing=0.1, reduction="sum")
    torch.testing.assert_close(loss, expected)
    (gradient,) = torch.autograd.grad(loss, states)
    assert gradient.isfinite().all()


def test_the_path_of_other_devices_is_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    states, weight, bias, targets = operands(37, torch.float32, True)
    chunked = smoothed_cross_entropy(states, weight, bias, targets, 0.1)
    chunked_gradients = torch.autograd.grad(chunked[0], (states, weight, bias))
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)  # as on a GPU: no chunks
    plain = smoothed_cross_entropy(states, weight, bias, targets, 0.1)
    torch.testing.assert_close(chunked, plain)
    torch.testing.assert_close(chunked_gradients, torch.autograd.grad(plain[0], (states, weight, bias)))


def test_reduced_precision_follows_autocast() -> None:
    states, weight, bias, targets = operands(37, torch.float32, True)
    expected, _ = smoothed_cross_entropy(states, weight, bias, targets, 0.1)
    with torch.autocast("cpu", torch.bfloat16):
        loss, _ = smoothed_cross_entropy(states.bfloat16(), weight, bias, targets, 0.1)
    loss.backward()
    torch.testing.assert_close(loss, expected, rtol=0.02, atol=0)
    assert weight.grad is not None
    assert weight.grad.dtype == torch.float32


def test_sums_over_real_positions_only() -> None:
    torch.manual_seed(0)
    model = Transformer(11, 11, 8, 16, 2, 1, 1, dropout=0.0)
    target_out = torch.tensor([[5, 6, 3], [7, 3, 0]])
    batch = SimpleNamespace(
        source=torch.tensor([[4, 5, 3], [6, 3, 0]]),
        source_mask=torch.tensor([[True, True, True], [True, True, False]]),
        target_in=torch.tensor([[2, 5, 6], [2, 7, 0]]),
        target_out=target_out,
        target_mask=target_out != 0,
        num_target_tokens=int((target_out != 0).sum()),
    )
    output = CrossEntropy(0.1)(model, batch)
    logits = model.project(model(batch.source, batch.source_mask, batch.target_in).states)
    expected = F.cross_entropy(
        logits.flatten(0, 1), target_out.flatten(), ignore_index=0, label_smoothing=0.1, reduction="sum"
    )
    assert output.num_tokens == 5
    torch.testing.assert_close(output.loss_sum, expected)


def test_smoothing_outside_the_range_is_refused() -> None:
    with pytest.raises(ValueError, match="label_smoothing"):
        CrossEntropy(1.0)
