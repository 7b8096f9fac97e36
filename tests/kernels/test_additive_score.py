"""The additive score computed with σ against the formula with tanh."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from translator.attention.scores import AdditiveScore
from translator.kernels.additive_score import additive_score


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-13), (torch.float32, 1e-5)])
def test_values_and_gradients_are_those_of_the_formula(
    use_reference: Callable[[], None], dtype: torch.dtype, tolerance: float
) -> None:
    torch.manual_seed(0)
    score = AdditiveScore(5, 6, 7).to(dtype)
    queries = torch.randn(2, 3, 5, dtype=dtype, requires_grad=True)
    keys = torch.randn(2, 4, 6, dtype=dtype, requires_grad=True)

    def value_and_gradients() -> tuple[Tensor, tuple[Tensor, ...]]:
        scores = score(queries, score.prepare(keys))
        return scores, torch.autograd.grad(scores.square().sum(), [queries, keys, *score.parameters()])

    by_sigmoid = value_and_gradients()
    projected = score.query_projection(queries), score.prepare(keys)
    assert torch.equal(additive_score(*projected, score.energy.weight), by_sigmoid[0])  # the kernel was used
    use_reference()
    torch.testing.assert_close(by_sigmoid, value_and_gradients(), rtol=tolerance, atol=tolerance)
