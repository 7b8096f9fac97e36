import math

import pytest
import torch
from torch.nn import functional as F

from translator.attention.dropout import Dropout

RATES = (0.01, 0.1, 0.3, 0.5, 0.9)


@pytest.mark.parametrize("rate", RATES)
def test_rate_is_the_nearest_multiple_of_a_256th(rate: float) -> None:
    torch.manual_seed(0)
    size = 1_000_003  # no multiple of eight: the last bytes of the last draw stay unused
    dropped = (Dropout(rate)(torch.ones(size)) == 0).double().mean().item()
    expected = round(rate * 256) / 256
    assert abs(dropped - expected) < 5 * math.sqrt(expected * (1 - expected) / size)


@pytest.mark.parametrize("position", range(8))
def test_every_byte_of_a_draw_is_uniform(position: int) -> None:
    # A signed 64-bit draw that is never negative would drop every eighth element twice as often.
    torch.manual_seed(1)
    dropped = Dropout(0.25)(torch.ones(400_000)).view(-1, 8)[:, position] == 0
    assert abs(dropped.double().mean().item() - 0.25) < 5 * math.sqrt(0.25 * 0.75 / 50_000)


@pytest.mark.parametrize("rate", RATES)
def test_kept_elements_are_scaled_by_the_rate_applied(rate: float) -> None:
    torch.manual_seed(2)
    x = torch.randn(1000, dtype=torch.float64)
    y = Dropout(rate)(x)
    kept = y != 0
    torch.testing.assert_close(y[kept], x[kept] * 256 / (256 - round(rate * 256)))


def test_gradient_passes_where_the_value_did() -> None:
    torch.manual_seed(3)
    x = torch.randn(50, 20, dtype=torch.float64, requires_grad=True)
    residual = torch.randn(50, 20, dtype=torch.float64, requires_grad=True)
    dropout = Dropout(0.4)
    y = dropout(x)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(gradient * x, y)

    total = dropout.add(residual, x)
    grad_residual, grad_x = torch.autograd.grad((total * torch.arange(20.0)).sum(), (residual, x))
    torch.testing.assert_close(grad_residual, torch.arange(20.0, dtype=torch.float64).expand(50, 20))
    kept = (total - residual) != 0
    assert torch.equal(grad_x[:, 1:] != 0, kept[:, 1:])
    torch.testing.assert_close(grad_x * x, (total - residual) * torch.arange(20.0))


def test_seed_decides_the_mask() -> None:
    x = torch.ones(1000)
    dropout = Dropout(0.5)
    torch.manual_seed(7)
    first, second = dropout(x), dropout(x)
    torch.manual_seed(7)
    assert torch.equal(dropout(x), first)
    assert not torch.equal(first, second)


def test_evaluation_and_rate_zero_change_nothing() -> None:
    x = torch.randn(10)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0)(x) is x
    torch.testing.assert_close(Dropout(0.5).eval().add(x, x), 2 * x)


def test_other_types_and_compilation_use_torch_itself() -> None:
    x = torch.ones(1000, dtype=torch.bfloat16)
    torch.manual_seed(5)
    ours = Dropout(0.3)(x)
    torch.manual_seed(5)
    assert torch.equal(ours, F.dropout(x, 0.3))
    compiled = torch.compile(Dropout(0.3), fullgraph=True, backend="aot_eager")
    assert compiled(torch.ones(64)).unique().numel() == 2


@pytest.mark.parametrize("rate", [-0.1, 1.0, 1.5])
def test_rates_outside_the_range_are_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="dropout must be"):
        Dropout(rate)
