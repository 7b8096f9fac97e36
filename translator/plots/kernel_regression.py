"""The kernel regression plot: the predictions of attention pooling and the weights behind them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure


@dataclass(frozen=True)
class Regression:
    """One kind of attention pooling, evaluated at T queries over S examples."""

    title: str
    predictions: np.ndarray  # (T,)
    weights: np.ndarray  # (T, S)


def draw_kernel_regression(
    example_x: np.ndarray,  # (S,), ascending
    example_y: np.ndarray,  # (S,)
    query_x: np.ndarray,  # (T,), ascending
    truth: np.ndarray,  # (T,), the noise-free function at the queries
    regressions: Sequence[Regression],
) -> Figure:
    """One column per regression: the curve above, its attention weights below, on the same query axis."""
    figure = Figure(figsize=(4.4 * len(regressions), 7.2), layout="constrained")
    axes = figure.subplots(2, len(regressions), squeeze=False, sharex=True, sharey="row")
    strongest = max(float(regression.weights.max()) for regression in regressions)
    for column, regression in enumerate(regressions):
        curve, heat = axes[:, column]
        curve.scatter(example_x, example_y, s=18, color="0.65", label="examples (keys, values)")
        curve.plot(query_x, truth, color="black", linestyle="--", linewidth=1.2, label="true function")
        curve.plot(query_x, regression.predictions, color="tab:red", linewidth=2.2, label="attention pooling")
        curve.set_title(regression.title)
        curve.margins(x=0)
        # Cell borders are halfway between neighbours, so that each cell is around its query and its example.
        image = heat.pcolormesh(
            _borders(query_x),
            np.arange(len(example_x) + 1) - 0.5,
            regression.weights.T,
            cmap="Blues",
            # A square root, so that weak weights are visible next to strong ones.
            norm=PowerNorm(0.5, vmin=0, vmax=strongest),
            rasterized=True,
        )
        heat.set_xlabel("query x")
    axes[0, 0].set_ylabel("y")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
    axes[1, 0].set_ylabel("example, in the order of its key")
    figure.colorbar(image, ax=axes[1, :].tolist(), label="attention weight", pad=0.01)
    return figure


def _borders(centres: np.ndarray) -> np.ndarray:
    """The T + 1 borders of cells around T ascending centres."""
    middles = (centres[1:] + centres[:-1]) / 2
    first, last = 2 * centres[0] - middles[0], 2 * centres[-1] - middles[-1]
    return np.concatenate(([first], middles, [last]))
