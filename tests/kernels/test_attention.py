"""torch's fused attention, as used on other devices, against the formula."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from translator.attention.softmax import masked_softmax
from translator.kernels.attention import fused_attention

BATCH, HEADS, TARGET, SOURCE, SIZE = 3, 2, 5, 7, 4


def operands(dtype: torch.dtype = torch.float64) -> list[Tensor]:
    torch.manual_seed(0)
    shapes = [(BATCH, HEADS, length, SIZE) for length in (TARGET, SOURCE, SOURCE)]
    return [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]


def formula(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, bias: Tensor | None) -> Tensor:
    scores = queries @ keys.transpose(-2, -1) / SIZE**0.5
    return masked_softmax(scores if bias is None else scores + bias, mask) @ values


MASKS = {
    "none": None,
    "causal": torch.ones(TARGET, SOURCE, dtype=torch.bool).tril(),
    "padding": (torch.arange(SOURCE) < torch.tensor([[7], [4], [0]]))[:, None, None],  # the last row is fully masked
}


@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_values_and_gradients_are_those_of_the_formula(
    kind: str, with_bias: bool, dtype: torch.dtype, tolerance: float
) -> None:
    parts, mask = operands(dtype), MASKS[kind]
    bias = torch.randn(1, HEADS, TARGET, SOURCE, dtype=dtype, requires_grad=True) if with_bias else None
    wanted = parts if bias is None else [*parts, bias]
    results = [fused_attention(*parts, mask, bias, dropout=0.0), formula(*parts, mask, bias)]
    torch.testing.assert_close(*results, rtol=tolerance, atol=tolerance)
    direction = torch.randn_like(results[0])
    gradients = [torch.autograd.grad((result * direction).sum(), wanted) for result in results]
    torch.testing.assert_close(*gradients, rtol=tolerance, atol=tolerance)
    if kind == "padding":
        assert (results[0][2] == 0).all()


def test_a_row_that_comes_back_as_nan_is_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some kernels return NaN for fully masked rows, and multiplying by zero would keep it NaN."""
    plain = F.scaled_dot_product_attention

    def with_nan(*arguments: Tensor, **options: object) -> Tensor:
        attended = plain(*arguments, **options).clone()
        attended[2] = float("nan")
        return attended

    monkeypatch.setattr(F, "scaled_dot_product_attention", with_nan)
    attended = fused_attention(*operands(), MASKS["padding"], None, dropout=0.0)
    assert (attended[2] == 0).all()
    assert attended.isfinite().all()
