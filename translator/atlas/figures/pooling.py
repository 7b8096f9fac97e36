"""Attention pooling as regression: averages, neighbours, kernels, and the learned width of a kernel.

S examples are the keys x and values y, T queries are new places. All errors are mean squared errors.
"""

import math
from typing import Any

import torch
from torch import Tensor

from translator.atlas.material import Material
from translator.atlas.regression import (
    LARGEST_X,
    NOISE,
    NUM_EXAMPLES,
    gaussian,
    leave_one_out_loss,
    make_examples,
    train_width,
    true_function,
)
from translator.attention.pooling import attention_pooling
from translator.attention.scores import GaussianScore, ScoreFunction

SEED = 1
NUM_QUERIES = 51
WIDTHS = [round(0.05 * 1.25**n, 3) for n in range(21)]  # 0.05 … 4.3
FIRST_WIDTH, RATE, NUM_STEPS = 1.0, 1.0, 100  # of the gradient descent
KERNELS = ("Gaussian", "boxcar", "Epanechnikov")


class Kernel(ScoreFunction):
    """A bounded kernel as a score: ln K(u) with u = (q − k) / width. Outside |u| < 1 the mask must exclude the key.

    The softmax of ln K is K / ΣK, so every kernel regression is attention pooling with the right score and mask.
    """

    def __init__(self, name: str, width: float) -> None:
        super().__init__()
        self.name, self.width = name, width

    def mask(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Which keys (S, 1) are within the width of the queries (T, 1): (T, S)."""
        return (queries - keys.T).abs() < self.width

    def forward(self, queries: Tensor, prepared: Tensor) -> Tensor:
        distance = (queries - prepared.T) / self.width  # u (T, S)
        if self.name == "boxcar":  # K = 1
            return torch.zeros_like(distance)
        return (1 - distance.square()).clamp(min=torch.finfo(distance.dtype).tiny).log()  # Epanechnikov: K ∝ 1 − u²


def examples() -> tuple[Tensor, Tensor]:
    return make_examples(NUM_EXAMPLES, NOISE, torch.Generator().manual_seed(SEED))


def queries() -> Tensor:
    return torch.linspace(0, LARGEST_X, NUM_QUERIES).unsqueeze(1)  # (T, 1)


def score_and_mask(name: str, width: float, at: Tensor, keys: Tensor) -> tuple[ScoreFunction, Tensor | None]:
    if name == "Gaussian":
        return gaussian(width), None
    kernel = Kernel(name, width)
    return kernel, kernel.mask(at, keys)


def nearest_mask(at: Tensor, keys: Tensor) -> Tensor:
    """Only the nearest key of each query: (T, S)."""
    distances = (at - keys.T).abs()
    return distances == distances.min(dim=1, keepdim=True).values


def regressions(material: Material) -> dict[str, Any]:
    """Four ways to weight the examples, from the average to the learned kernel."""
    x, y = examples()
    at, truth = queries(), true_function(queries())
    trained = train_width(x, y)
    wide = gaussian(math.inf)
    methods: list[tuple[str, ScoreFunction, Tensor | None, Tensor | None]] = [
        ("average", wide, None, None),
        ("nearest neighbour", wide, nearest_mask(at, x), _others_nearest(x)),
        ("Gaussian, width 1", gaussian(1.0), None, None),
        ("Gaussian, learned width", trained, None, None),
    ]
    found = []
    for name, score, mask, mask_of_examples in methods:
        with torch.no_grad():
            predictions, weights = attention_pooling(score, at, x, y, mask)
            loss = leave_one_out_loss(score, x, y, mask_of_examples)
        error = (predictions - truth).square().mean()
        found.append(
            {
                "name": name,
                "predictions": _numbers(predictions),
                "weights": _grid(weights),
                "leave_one_out": loss.item(),
                "test_error": error.item(),
            }
        )
    data = {"x": _numbers(x), "y": _numbers(y), "queries": _numbers(at), "truth": _numbers(truth)}
    return {**data, "noise": NOISE, "width": 1 / trained.inverse_width.abs().item(), "methods": found}


def _others_nearest(x: Tensor) -> Tensor:
    """For each example its nearest neighbour, which is not itself."""
    distances = (x - x.T).abs() + torch.diag(torch.full((len(x),), torch.inf))
    return distances == distances.min(dim=1, keepdim=True).values


def widths(material: Material) -> dict[str, Any]:
    """A Gaussian kernel of many widths: predictions, weights and both errors."""
    x, y = examples()
    at, truth = queries(), true_function(queries())
    found = []
    for width in WIDTHS:
        with torch.no_grad():
            predictions, weights = attention_pooling(gaussian(width), at, x, y)
            loss = leave_one_out_loss(gaussian(width), x, y)
        effective = weights.square().sum(1).reciprocal().mean()  # 1 / Σ α²: S if all are equal, 1 if one has it all
        found.append(
            {
                "width": width,
                "predictions": _numbers(predictions),
                "weights": _grid(weights),
                "leave_one_out": loss.item(),
                "test_error": (predictions - truth).square().mean().item(),
                "effective_examples": effective.item(),
            }
        )
    return {"widths": found}


def descent(material: Material) -> dict[str, Any]:
    """Plain gradient descent on the leave-one-out loss, step by step, from a kernel that is too wide."""
    x, y = examples()
    score = GaussianScore(1)
    with torch.no_grad():
        score.inverse_width.fill_(1 / FIRST_WIDTH)
    optimizer = torch.optim.SGD(score.parameters(), lr=RATE)
    steps = []
    for step in range(NUM_STEPS + 1):
        optimizer.zero_grad()
        loss = leave_one_out_loss(score, x, y)
        loss.backward()
        steps.append({"step": step, "width": 1 / score.inverse_width.abs().item(), "leave_one_out": loss.item()})
        optimizer.step()
    return {"rate": RATE, "steps": steps}


def kernels(material: Material) -> dict[str, Any]:
    """Three kernels, each with the width that predicts the examples best from the others."""
    x, y = examples()
    at, truth = queries(), true_function(queries())
    found = []
    for name in KERNELS:
        losses = {}
        for width in WIDTHS:
            score, mask = score_and_mask(name, width, x, x)
            with torch.no_grad():
                losses[width] = leave_one_out_loss(score, x, y, mask).item()
        best = min(losses, key=lambda width: losses[width])
        score, mask = score_and_mask(name, best, at, x)
        with torch.no_grad():
            predictions, weights = attention_pooling(score, at, x, y, mask)
        found.append(
            {
                "name": name,
                "width": best,
                "losses": [[width, loss] for width, loss in losses.items()],
                "predictions": _numbers(predictions),
                "weights": _grid(weights),
                "leave_one_out": losses[best],
                "test_error": (predictions - truth).square().mean().item(),
                "mean_neighbours": (weights > 0).sum(1).float().mean().item(),
            }
        )
    return {"kernels": found}


def _numbers(column: Tensor) -> list[float]:
    """(N, 1) as a list, to six decimal places."""
    return [round(value, 6) for value in column.double().squeeze(1).tolist()]


def _grid(weights: Tensor) -> list[list[float]]:
    return [[round(value, 5) for value in row] for row in weights.double().tolist()]
