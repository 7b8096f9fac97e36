"""Chapter 1 against kernel regression written down in numpy float64."""

from typing import Any

import numpy as np
import pytest
import torch

from translator.atlas.figures.pooling import Kernel
from translator.atlas.regression import gaussian, leave_one_out_loss, make_examples, train_width, true_function

KERNELS = {
    "Gaussian": lambda u: np.exp(-(u**2) / 2),
    "boxcar": lambda u: (np.abs(u) < 1).astype(float),
    "Epanechnikov": lambda u: np.maximum(0, 1 - u**2),
}


def regression(
    kernel: Any, at: np.ndarray, x: np.ndarray, y: np.ndarray, width: float, *, leave_out: bool = False
) -> Any:
    weights = kernel((at[:, None] - x[None]) / width)
    if leave_out:
        np.fill_diagonal(weights, 0)
    total = weights.sum(1, keepdims=True)
    weights = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
    return weights @ y, weights


@pytest.fixture
def data(figures: dict[str, Any]) -> dict[str, Any]:
    found = figures["pooling"]["regressions"]
    return {**found, **{name: np.array(found[name]) for name in ("x", "y", "queries", "truth")}}


def test_every_width_and_kernel_is_the_regression_of_nadaraya_and_watson(
    figures: dict[str, Any], data: dict[str, Any]
) -> None:
    x, y, at = data["x"], data["y"], data["queries"]
    for one in figures["pooling"]["widths"]["widths"]:
        predictions, weights = regression(KERNELS["Gaussian"], at, x, y, one["width"])
        np.testing.assert_allclose(one["predictions"], predictions, atol=2e-3)
        np.testing.assert_allclose(one["weights"], weights, atol=2e-3)
        left_out, _ = regression(KERNELS["Gaussian"], x, x, y, one["width"], leave_out=True)
        assert one["leave_one_out"] == pytest.approx(((left_out - y) ** 2).mean(), rel=2e-3)
        assert one["effective_examples"] == pytest.approx((1 / (weights**2).sum(1)).mean(), rel=2e-3)
    for one in figures["pooling"]["kernels"]["kernels"]:
        predictions, weights = regression(KERNELS[one["name"]], at, x, y, one["width"])
        np.testing.assert_allclose(one["predictions"], predictions, atol=2e-3)
        assert one["test_error"] == pytest.approx(((predictions - data["truth"]) ** 2).mean(), rel=5e-3)
        losses = {}
        for width, loss in one["losses"]:
            left_out, _ = regression(KERNELS[one["name"]], x, x, y, width, leave_out=True)
            losses[width] = ((left_out - y) ** 2).mean()
            assert loss == pytest.approx(losses[width], rel=5e-3)
        assert one["width"] == min(losses, key=lambda width: losses[width])


def test_average_and_nearest_neighbour(data: dict[str, Any]) -> None:
    average, nearest = data["methods"][:2]
    assert average["predictions"] == pytest.approx([data["y"].mean()] * len(data["queries"]), abs=1e-5)
    closest = np.abs(data["queries"][:, None] - data["x"][None]).argmin(1)
    assert nearest["predictions"] == pytest.approx(list(data["y"][closest]), abs=1e-5)
    distances = np.abs(data["x"][:, None] - data["x"][None])
    np.fill_diagonal(distances, np.inf)
    loss = ((data["y"][distances.argmin(1)] - data["y"]) ** 2).mean()
    assert nearest["leave_one_out"] == pytest.approx(loss, rel=1e-4)


def test_gradient_descent_ends_where_no_width_on_a_fine_grid_is_better(
    figures: dict[str, Any], data: dict[str, Any]
) -> None:
    x, y = data["x"], data["y"]
    grid = np.linspace(0.2, 0.5, 301)
    losses = [((regression(KERNELS["Gaussian"], x, x, y, width, leave_out=True)[0] - y) ** 2).mean() for width in grid]
    best = grid[int(np.argmin(losses))]
    assert data["width"] == pytest.approx(best, abs=0.005)
    steps = figures["pooling"]["descent"]["steps"]
    assert steps[0]["width"] == pytest.approx(1)
    assert steps[-1]["width"] == pytest.approx(best, abs=0.02)
    descending = [one["leave_one_out"] for one in steps]
    assert descending == sorted(descending, reverse=True)


def test_a_kernel_that_reaches_no_example_predicts_zero() -> None:
    kernel = Kernel("boxcar", 0.1)
    x, y = torch.tensor([[1.0]]), torch.tensor([[5.0]])
    assert not kernel.mask(torch.tensor([[3.0]]), x).any()
    assert kernel.mask(torch.tensor([[1.05]]), x).all()
    others = leave_one_out_loss(kernel, x, y, kernel.mask(x, x))
    assert others.item() == 25  # alone, it is predicted from nothing


def test_training_and_an_infinite_width() -> None:
    x, y = make_examples(30, 0.1, torch.Generator().manual_seed(2))
    assert (y - true_function(x)).abs().max() < 0.5
    trained = leave_one_out_loss(train_width(x, y), x, y)
    assert trained < leave_one_out_loss(gaussian(1.0), x, y) < leave_one_out_loss(gaussian(float("inf")), x, y)
