"""Pictures and histograms of a run for TensorBoard: lengths of the corpus, positions, norms of the embeddings."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from translator.attention.positions import (
    LearnedPositions,
    RelativePositionBias,
    RotaryPositions,
    SinusoidalPositions,
)
from translator.build.data import PreparedData
from translator.data.arrow_columns import ArrowLengths
from translator.models.base import Seq2Seq
from translator.models.embeddings import Embeddings
from translator.plots.attention import figure_pixels
from translator.plots.weights import heat_map_figure, norms_figure
from translator.training.board import Histogram, View

NUM_POSITIONS = 128  # that are shown
_FARTHEST = 64  # of the relative positions that are shown
_ROWS_TOGETHER = 2**20  # of a corpus whose lengths are counted


class RunViews:
    """What TensorBoard shows of a model and its corpus, apart from curves. Drawing changes neither."""

    def __init__(self, model: Seq2Seq, data: PreparedData) -> None:
        self.model = model
        self.data = data

    def at_start(self) -> dict[str, View]:
        views: dict[str, View] = {}
        if self.data.train_tables:  # a streamed corpus has not been read yet
            for side in ("source", "target"):
                columns = [getattr(table, f"{side}_lengths") for table in self.data.train_tables]
                views[f"length_in_pieces/{side}"] = length_histogram(columns)
        return views | dict(_fixed_positions(self.model)) | self.at_validation()

    @torch.no_grad()
    def at_validation(self) -> dict[str, View]:
        return dict(_learned_positions(self.model)) | dict(_embedding_norms(self.model))


def length_histogram(columns: list[ArrowLengths]) -> Histogram:
    """How many sentences have each length, counted with the end of the sentence."""
    counts = np.zeros(1, np.int64)
    for column in columns:
        for start in range(0, len(column), _ROWS_TOGETHER):
            some = np.bincount(column[np.arange(start, min(start + _ROWS_TOGETHER, len(column)))])
            counts = np.pad(counts, (0, max(0, len(some) - len(counts))))
            counts[: len(some)] += some
    shortest = int(np.flatnonzero(counts)[0]) if counts.any() else 0
    return Histogram(np.arange(shortest, len(counts) + 1) - 0.5, counts[shortest:])


def _fixed_positions(model: Seq2Seq) -> Iterator[tuple[str, View]]:
    for module in model.modules():
        if isinstance(module, SinusoidalPositions | RotaryPositions):
            values = module.encoding(NUM_POSITIONS)  # (T, D)
            title, x = "sinusoidal positions", "dimension"
            if isinstance(module, RotaryPositions):
                values = values.chunk(2, dim=-1)[1]  # (T, D/2)
                title, x = "rotary positions: cosine of the angle", "pair of dimensions"
            yield "positions", _heat_map(values, title, x, "position")
            return  # encoder and decoder have the same


def _learned_positions(model: Seq2Seq) -> Iterator[tuple[str, View]]:
    for name, module in model.named_modules():
        side = name.split("_")[0]  # source_positions, encoder_bias …
        if isinstance(module, LearnedPositions):
            values = module.encoding(min(NUM_POSITIONS, module.max_positions))  # (T, D)
            yield f"positions/{side}", _heat_map(values, f"learned positions of the {side}", "dimension", "position")
        elif isinstance(module, RelativePositionBias):
            here, around = torch.zeros(1, dtype=torch.long), torch.arange(-_FARTHEST, _FARTHEST + 1)
            device = module.weight.device
            values = module(here.to(device), around.to(device))[0, :, 0]  # (H, offsets)
            if side == "decoder":  # which is causal
                values = values[:, : _FARTHEST + 1]
            title = f"relative positions: what the {side} adds to the scores"
            yield (
                f"positions/{side}",
                _heat_map(values, title, "query to key", "head", first_x=-_FARTHEST),
            )


class _Matrix(NamedTuple):
    names: list[str]
    weight: Tensor  # (V, E)


def _embedding_norms(model: Seq2Seq) -> Iterator[tuple[str, View]]:
    embeddings = getattr(model, "embeddings", None)
    if not isinstance(embeddings, Embeddings):
        return
    weights = {
        "source": embeddings.source.weight,
        "target": embeddings.target.weight,
        "output": embeddings.output_weight,
    }
    matrices: dict[int, _Matrix] = {}
    for name, weight in weights.items():
        matrices.setdefault(id(weight), _Matrix([], weight)).names.append(name)
    for names, weight in matrices.values():
        norms = weight.float().norm(dim=1).cpu().numpy()  # (V,)
        name, which = "_".join(names), ", ".join(names)
        counts, edges = np.histogram(norms[np.isfinite(norms)], bins=30)  # of a model that may have diverged
        yield f"embedding_norm/{name}", Histogram(edges, counts)
        yield f"embedding_norm_by_piece/{name}", figure_pixels(norms_figure(norms, f"embeddings ({which})"))


def _heat_map(values: Tensor, title: str, x: str, y: str, first_x: int = 0) -> np.ndarray:
    figure = heat_map_figure(values.float().cpu().numpy(), title=title, x=x, y=y, first_x=first_x)
    return figure_pixels(figure)
