"""Attention pooling with every score, and its special case, kernel regression."""

import numpy as np
import pytest
import torch
from torch import Tensor

from translator.attention.pooling import attention_pooling
from translator.attention.scores import SCORES, GaussianScore, make_score


@pytest.mark.parametrize("name", SCORES)
def test_pooling_is_the_weighted_mean_of_the_values(name: str) -> None:
    torch.manual_seed(0)
    score = make_score(name, 4, 4, 6).double()
    queries, keys = torch.randn(2, 3, 4, dtype=torch.float64), torch.randn(2, 5, 4, dtype=torch.float64)
    values = torch.randn(2, 5, 7, dtype=torch.float64)
    mask = (torch.arange(5) < torch.tensor([[5], [2]])).unsqueeze(1)  # (2, 1, 5)
    with torch.no_grad():
        pooled, weights = attention_pooling(score, queries, keys, values, mask)
        scores = score(queries, score.prepare(keys)).numpy()
    for b, t in np.ndindex(2, 3):
        length = (5, 2)[b]
        exponentials = np.exp(scores[b, t, :length])
        expected = exponentials / exponentials.sum()
        np.testing.assert_allclose(weights[b, t, :length].numpy(), expected, rtol=1e-10)
        assert (weights[b, t, length:] == 0).all()
        mean = sum(weight * value for weight, value in zip(expected, values[b].numpy(), strict=False))
        np.testing.assert_allclose(pooled[b, t].numpy(), mean, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", SCORES)
def test_a_fully_masked_query_gets_zero(name: str) -> None:
    score = make_score(name, 4, 4, 6)
    queries = torch.randn(2, 3, 4, requires_grad=True)
    keys, values = torch.randn(2, 5, 4), torch.randn(2, 5, 7)
    mask = (torch.arange(5) < torch.tensor([[0], [5]])).unsqueeze(1)
    pooled, _ = attention_pooling(score, queries, keys, values, mask)
    assert torch.equal(pooled[0], torch.zeros(3, 7))
    pooled.sum().backward()
    assert queries.grad is not None
    assert torch.equal(queries.grad[0], torch.zeros(3, 4))
    assert queries.grad[1].abs().max() > 0


@pytest.fixture
def examples() -> tuple[Tensor, Tensor]:
    """Points (S, 1) and noisy values (S, 1) of a wave at them."""
    generator = torch.Generator().manual_seed(5)
    x = torch.rand(40, 1, generator=generator, dtype=torch.float64) * 5
    return x, 2 * x.sin() + x**0.8 + 0.4 * torch.randn(40, 1, generator=generator, dtype=torch.float64)


def nadaraya_watson(query: float, x: np.ndarray, y: np.ndarray, width: float) -> float:
    """Σ K((q - x_i) / h) y_i / Σ K((q - x_i) / h) with the normal density as K."""
    numerator = denominator = 0.0
    for x_i, y_i in zip(x, y, strict=True):
        kernel = np.exp(-(((query - x_i) / width) ** 2) / 2) / np.sqrt(2 * np.pi)
        numerator += kernel * y_i
        denominator += kernel
    return numerator / denominator


@pytest.mark.parametrize("width", [1.0, 0.4])
def test_gaussian_pooling_is_kernel_regression(examples: tuple[Tensor, Tensor], width: float) -> None:
    x, y = examples
    score = GaussianScore(1, learnable=width != 1).double()
    if width != 1:
        score.inverse_width.data.fill_(1 / width)
    queries = torch.linspace(-1, 6, 30, dtype=torch.float64).unsqueeze(1)
    with torch.no_grad():
        predictions, _ = attention_pooling(score, queries, x, y)
    columns = x.squeeze(1).numpy(), y.squeeze(1).numpy()
    expected = [nadaraya_watson(float(q), *columns, width) for q in queries.squeeze(1)]
    np.testing.assert_allclose(predictions.squeeze(1).numpy(), expected, rtol=1e-9)


def test_training_the_width_beats_the_width_of_one(examples: tuple[Tensor, Tensor]) -> None:
    """Each example is predicted from the others, with itself masked; the width is the only parameter."""
    x, y = examples
    others = ~torch.eye(len(x), dtype=torch.bool)

    def loss_of(score: GaussianScore) -> Tensor:
        return (attention_pooling(score, x, x, y, others)[0] - y).square().mean()

    score = GaussianScore(1).double()
    non_parametric = loss_of(GaussianScore(1, learnable=False).double()).item()
    assert loss_of(score).item() == pytest.approx(non_parametric)  # before training
    optimizer = torch.optim.LBFGS(score.parameters(), max_iter=100, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = loss_of(score)
        loss.backward()
        return loss

    optimizer.step(closure)
    trained = loss_of(score).item()

    by_search = []
    for inverse_width in torch.linspace(0.5, 12, 100, dtype=torch.float64):
        candidate = GaussianScore(1, learnable=False).double()
        candidate.inverse_width.fill_(inverse_width)
        by_search.append(loss_of(candidate).item())
    assert trained < 0.8 * non_parametric
    assert trained <= min(by_search) * 1.001
