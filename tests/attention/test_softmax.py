"""The masked softmax against numpy, and where masking bugs hide: empty rows, gradients, half precision."""

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from translator.attention import softmax
from translator.attention.softmax import masked_softmax


@pytest.fixture(params=["kernel", "reference"], autouse=True)
def _form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "reference":
        monkeypatch.setattr(softmax, "use_kernels", lambda *_: False)


def by_hand(scores: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Row by row, the softmax over only the allowed scores."""
    mask = np.broadcast_to(mask, scores.shape)
    weights = np.zeros_like(scores)
    for index in np.ndindex(*scores.shape[:-1]):
        allowed = scores[index][mask[index]]
        if allowed.size:
            exponentials = np.exp(allowed - allowed.max())
            weights[index][mask[index]] = exponentials / exponentials.sum()
    return weights


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**31),
    shape=st.sampled_from([(2, 3, 4, 5), (3, 1, 7), (4, 6), (5,)]),
    share=st.floats(0, 1),
    scale=st.sampled_from([0.1, 10.0, 1e4]),
)
def test_weights_equal_the_softmax_of_the_allowed_scores(
    seed: int, shape: tuple[int, ...], share: float, scale: float
) -> None:
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(shape, generator=generator, dtype=torch.float64) * scale
    mask = torch.rand(shape, generator=generator) < share
    weights = masked_softmax(scores, mask)
    np.testing.assert_allclose(weights.numpy(), by_hand(scores.numpy(), mask.numpy()), rtol=1e-10, atol=1e-300)
    assert (weights[~mask] == 0).all()


@pytest.mark.parametrize("mask_shape", [(2, 1, 1, 5), (4, 5), (2, 1, 4, 5), (2, 3, 4, 1), (5,), (1,)])
def test_masks_broadcast(mask_shape: tuple[int, ...]) -> None:
    torch.manual_seed(1)
    scores = torch.randn(2, 3, 4, 5, dtype=torch.float64)
    mask = torch.rand(mask_shape) < 0.6
    weights = masked_softmax(scores, mask)
    np.testing.assert_allclose(weights.numpy(), by_hand(scores.numpy(), mask.numpy()), rtol=1e-12)


def test_without_mask_it_is_the_softmax() -> None:
    scores = torch.randn(3, 4)
    assert torch.equal(masked_softmax(scores, None), torch.softmax(scores, -1))
    torch.testing.assert_close(masked_softmax(scores, torch.ones(4, dtype=torch.bool)), torch.softmax(scores, -1))


def mask_with_an_empty_row() -> Tensor:
    return (torch.arange(4) < torch.tensor([[0], [3], [1]])).unsqueeze(1)  # (3, 1, 4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_empty_rows_are_zero_and_have_zero_gradients(dtype: torch.dtype) -> None:
    scores = torch.randn(3, 2, 4).to(dtype).requires_grad_()
    mask = mask_with_an_empty_row()
    weights = masked_softmax(scores, mask)
    assert weights.dtype == dtype
    assert torch.equal(weights[0], torch.zeros(2, 4, dtype=dtype))
    (weights * torch.randn(3, 2, 4).to(dtype)).sum().backward()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()
    assert (scores.grad[~mask.expand_as(scores)] == 0).all()
    assert scores.grad[1].abs().max() > 0


def test_gradients_of_first_and_second_order() -> None:
    scores = torch.randn(3, 2, 4, dtype=torch.float64, requires_grad=True)
    mask = mask_with_an_empty_row()
    assert torch.autograd.gradcheck(lambda x: masked_softmax(x, mask), (scores,))
    assert torch.autograd.gradgradcheck(lambda x: masked_softmax(x, mask), (scores,))


def test_masked_scores_have_no_effect() -> None:
    """Scores of padding may be anything, even non-finite."""
    mask = torch.tensor([True, True, False, False])
    scores = torch.tensor([[1.0, 2.0, float("nan"), float("inf")]], requires_grad=True)
    weights = masked_softmax(scores, mask)
    torch.testing.assert_close(weights[:, :2], torch.softmax(torch.tensor([[1.0, 2.0]]), -1))
    assert torch.equal(weights[:, 2:], torch.zeros(1, 2))
    weights[:, 0].sum().backward()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()


def test_an_unmasked_nan_is_not_hidden() -> None:
    weights = masked_softmax(torch.tensor([[1.0, float("nan"), 3.0]]), torch.tensor([True, True, False]))
    assert weights[0, :2].isnan().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_padding_is_exactly_zero_beside_the_lowest_scores_of_the_type(dtype: torch.dtype) -> None:
    lowest = torch.finfo(dtype).min
    scores = torch.tensor([[lowest, lowest, 0.0]], dtype=dtype)
    weights = masked_softmax(scores, torch.tensor([True, True, False]))
    assert weights.tolist() == [[0.5, 0.5, 0.0]]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_close_to_full(dtype: torch.dtype) -> None:
    scores = (torch.randn(4, 6, 40) * 5).to(dtype)
    mask = torch.rand(4, 1, 40) < 0.7
    full = by_hand(scores.double().numpy(), mask.numpy())
    half = masked_softmax(scores, mask)
    eps = torch.finfo(dtype).eps
    np.testing.assert_allclose(half.double().numpy(), full, rtol=2 * eps, atol=1e-4 if dtype == torch.float16 else 1e-6)


def test_gradient_has_the_dtype_of_the_scores_under_autocast() -> None:
    scores = torch.randn(3, 2, 4, dtype=torch.bfloat16, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        weights = masked_softmax(scores, mask_with_an_empty_row())
    weights.float().square().sum().backward()
    assert scores.grad is not None
    assert scores.grad.dtype == torch.bfloat16
    assert scores.grad.isfinite().all()


def test_compiles_as_one_graph_with_its_gradient() -> None:
    compiled = torch.compile(masked_softmax, fullgraph=True, backend="aot_eager")
    scores = torch.randn(3, 2, 4, requires_grad=True)
    copy = scores.detach().clone().requires_grad_()
    mask = mask_with_an_empty_row()
    weights, expected = compiled(scores, mask), masked_softmax(copy, mask)
    torch.testing.assert_close(weights, expected)
    weights.square().sum().backward()
    expected.square().sum().backward()
    torch.testing.assert_close(scores.grad, copy.grad)


def test_meta_device() -> None:
    scores = torch.randn(3, 2, 4, device="meta", requires_grad=True)
    weights = masked_softmax(scores, torch.ones(3, 1, 4, dtype=torch.bool, device="meta"))
    weights.sum().backward()
    assert scores.grad is not None
    assert scores.grad.shape == weights.shape == (3, 2, 4)
    assert weights.device.type == "meta"


def test_no_positions_at_all() -> None:
    """A source of length zero: nothing to attend to, and no error."""
    weights = masked_softmax(torch.randn(2, 3, 0), torch.ones(2, 1, 0, dtype=torch.bool))
    assert weights.shape == (2, 3, 0)
