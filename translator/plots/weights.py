"""Pictures of what a model has learned outside its attention: positions and embeddings."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

_SIZE = (6.4, 4.0)  # inches
_NUM_GROUPS = 200  # of pieces with neighbouring ids, at most


def heat_map_figure(values: np.ndarray, *, title: str, x: str, y: str, first_x: int = 0) -> Figure:
    """Values of both signs (rows, columns), blue below zero and red above; columns are counted from `first_x`."""
    figure, axes = _figure()
    largest = float(np.abs(values).max(initial=0.0)) or 1.0
    rows, columns = values.shape
    image = axes.imshow(
        values,
        cmap="RdBu_r",
        vmin=-largest,
        vmax=largest,
        aspect="auto",
        interpolation="nearest",
        extent=(first_x - 0.5, first_x + columns - 0.5, rows - 0.5, -0.5),
    )
    figure.colorbar(image)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True))
    axes.set(title=title, xlabel=x, ylabel=y)
    return figure


def norms_figure(norms: np.ndarray, title: str) -> Figure:
    """The norms (V,) of embeddings by piece id: mean, smallest and largest of pieces with neighbouring ids."""
    figure, axes = _figure()
    starts = np.unique(np.linspace(0, len(norms), _NUM_GROUPS, endpoint=False).astype(int))
    sizes = np.diff(starts, append=len(norms))
    axes.fill_between(
        starts,
        np.minimum.reduceat(norms, starts),
        np.maximum.reduceat(norms, starts),
        step="post",
        alpha=0.25,
        label="smallest to largest",
    )
    axes.step(starts, np.add.reduceat(norms, starts) / sizes, where="post", label="mean")
    axes.set(title=title, xlabel="piece id", ylabel="norm of the embedding")
    axes.set_ylim(bottom=0)
    axes.legend()
    return figure


def _figure() -> tuple[Figure, Axes]:
    figure = Figure(figsize=_SIZE, dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.add_subplot()
