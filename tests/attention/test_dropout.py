"""The dropout module. Its kernel is tested in tests/kernels."""

import pytest
import torch
from torch.nn import functional as F

from translator.attention.dropout import Dropout


def test_evaluation_and_rate_zero_change_nothing() -> None:
    x = torch.randn(10)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0)(x) is x
    torch.testing.assert_close(Dropout(0.5).eval().add(x, x), 2 * x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_expectation_is_the_input(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x = torch.full((100_000,), 3.0, dtype=dtype)
    assert Dropout(0.2)(x).double().mean().item() == pytest.approx(3, rel=0.02)
    assert Dropout(0.2).add(x, x).double().mean().item() == pytest.approx(6, rel=0.02)


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
