"""The training objective. Its chunked form is tested separately in tests/kernels."""

from types import SimpleNamespace

import pytest
import torch
from torch.nn import functional as F

from translator.models.transformer import Transformer
from translator.training.objectives.cross_entropy import CrossEntropy, real_positions, smoothed_cross_entropy


def operands(num_positions: int, dtype: torch.dtype, with_bias: bool) -> tuple[torch.Tensor, ...]:
    torch.manual_seed(0)
    states = torch.randn(num_positions, 8, dtype=dtype, requires_grad=True)
    weight = torch.randn(23, 8, dtype=dtype, requires_grad=True)
    bias = torch.randn(23, dtype=dtype, requires_grad=True) if with_bias else None
    return states, weight, bias, torch.randint(0, 23, (num_positions,))


def test_real_positions_are_those_of_the_mask() -> None:
    torch.manual_seed(0)
    for shape in ((1, 1), (7, 5), (300, 41)):
        mask = torch.rand(shape) < 0.8
        expected = mask.flatten().nonzero().squeeze(1)
        assert real_positions(mask, len(expected)).equal(expected)


@pytest.mark.usefixtures("bfloat16_products")
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
