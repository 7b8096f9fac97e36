"""Dropout from random bytes: rate, scale, gradient, and moments compared with torch's dropout."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from translator.attention.dropout import Dropout
from translator.kernels.dropout import byte_dropout, byte_dropout_add

RATES = (0.01, 0.1, 0.3, 0.5, 0.9)


@pytest.mark.parametrize("rate", RATES)
def test_rate_is_the_nearest_multiple_of_a_256th(rate: float) -> None:
    torch.manual_seed(0)
    size = 1_000_003  # not a multiple of eight: the last draw is only partly used
    dropped = (byte_dropout(torch.ones(size), rate) == 0).double().mean().item()
    expected = round(rate * 256) / 256
    assert abs(dropped - expected) < 5 * math.sqrt(expected * (1 - expected) / size)


@pytest.mark.parametrize("position", range(8))
def test_every_byte_of_a_draw_is_uniform(position: int) -> None:
    # If the signed 64-bit draws were never negative, every eighth element would be dropped twice as often.
    torch.manual_seed(1)
    dropped = byte_dropout(torch.ones(400_000), 0.25).view(-1, 8)[:, position] == 0
    assert abs(dropped.double().mean().item() - 0.25) < 5 * math.sqrt(0.25 * 0.75 / 50_000)


@pytest.mark.parametrize("rate", RATES)
def test_kept_elements_are_scaled_by_the_rate_applied(rate: float) -> None:
    torch.manual_seed(2)
    x = torch.randn(1000, dtype=torch.float64)
    y = byte_dropout(x, rate)
    kept = y != 0
    torch.testing.assert_close(y[kept], x[kept] * 256 / (256 - round(rate * 256)))


def test_gradient_passes_where_the_value_did() -> None:
    torch.manual_seed(3)
    x = torch.randn(50, 20, dtype=torch.float64, requires_grad=True)
    residual = torch.randn(50, 20, dtype=torch.float64, requires_grad=True)
    y = byte_dropout(x, 0.4)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(gradient * x, y)

    total = byte_dropout_add(residual, x, 0.4)
    grad_residual, grad_x = torch.autograd.grad((total * torch.arange(20.0)).sum(), (residual, x))
    torch.testing.assert_close(grad_residual, torch.arange(20.0, dtype=torch.float64).expand(50, 20))
    kept = (total - residual) != 0
    assert torch.equal(grad_x[:, 1:] != 0, kept[:, 1:])
    torch.testing.assert_close(grad_x * x, (total - residual) * torch.arange(20.0))


def test_adding_to_the_residual_draws_the_same_mask() -> None:
    x, residual = torch.randn(30, 7), torch.randn(30, 7)
    torch.manual_seed(4)
    expected = residual + byte_dropout(x, 0.3)
    torch.manual_seed(4)
    torch.testing.assert_close(byte_dropout_add(residual, x, 0.3), expected)


def test_mean_and_variance_are_those_of_torchs(use_reference: Callable[[], None]) -> None:
    """The two draw different masks, so only their distributions can be compared."""
    torch.manual_seed(5)
    x, dropout = torch.full((400_000,), 2.0), Dropout(0.25)  # a rate that bytes represent exactly

    def moments(y: Tensor) -> Tensor:
        return torch.stack((y.mean(), y.var()))

    bytes_ = moments(dropout(x))
    use_reference()
    torch.testing.assert_close(bytes_, moments(dropout(x)), rtol=0.02, atol=0)


def test_seed_decides_the_mask() -> None:
    x = torch.ones(1000)
    torch.manual_seed(7)
    first, second = byte_dropout(x, 0.5), byte_dropout(x, 0.5)
    torch.manual_seed(7)
    assert torch.equal(byte_dropout(x, 0.5), first)
    assert not torch.equal(first, second)
