"""The fused masked softmax against the formula that autograd differentiates."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from translator.attention.softmax import masked_softmax
from translator.kernels.softmax import fused_masked_softmax


@pytest.mark.parametrize("mask_shape", [(2, 3, 4, 5), (2, 1, 1, 5), (4, 5), (2, 3, 4, 1), (1,)])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-14), (torch.float32, 1e-6)])
def test_values_and_gradients_are_those_of_the_formula(
    use_reference: Callable[[], None], mask_shape: tuple[int, ...], dtype: torch.dtype, tolerance: float
) -> None:
    torch.manual_seed(0)
    scores = (3 * torch.randn(2, 3, 4, 5, dtype=dtype)).requires_grad_()
    mask = torch.rand(mask_shape) < 0.6  # some rows are fully masked
    direction = torch.randn_like(scores)

    def value_and_gradient(softmax: Callable[[Tensor, Tensor], Tensor]) -> tuple[Tensor, Tensor]:
        weights = softmax(scores, mask)
        return weights, torch.autograd.grad((weights * direction).sum(), scores)[0]

    fused = value_and_gradient(fused_masked_softmax)
    assert torch.equal(masked_softmax(scores, mask), fused[0])  # masked_softmax uses the kernel
    use_reference()
    reference = value_and_gradient(masked_softmax)
    torch.testing.assert_close(fused, reference, rtol=tolerance, atol=tolerance)
    for values in (*fused, *reference):
        assert (values[~mask.expand_as(values)] == 0).all()
