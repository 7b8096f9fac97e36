"""Pictures and histograms of a model and its corpus."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from translator.build.views import RunViews, length_histogram
from translator.models.lstm import LstmSeq2Seq
from translator.models.transformer import Transformer
from translator.plots import weights as plots
from translator.training.board import Histogram
from translator.training.random_state import random_state

STREAMED: Any = SimpleNamespace(train_tables=[])


def make_model(**options: Any) -> Transformer:
    torch.manual_seed(0)
    sizes = {"model_size": 8, "feedforward_size": 8, "num_heads": 2, "encoder_layers": 1, "decoder_layers": 1}
    return Transformer(20, 20, **sizes, **options)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """The values of the heat maps, in place of their pixels."""
    values: list[np.ndarray] = []

    def draw(of: np.ndarray, **options: Any) -> Any:
        values.append(of)
        return plots.heat_map_figure(of, **options)

    monkeypatch.setattr("translator.build.views.heat_map_figure", draw)
    return values


def test_sinusoids_are_those_of_the_paper_and_drawn_once(drawn: list[np.ndarray]) -> None:
    views = RunViews(make_model(positions="sinusoidal"), STREAMED)
    start = views.at_start()
    assert start["positions"].shape[2] == 3
    position, pair = np.arange(128)[:, None], np.arange(0, 8, 2)[None]
    np.testing.assert_allclose(drawn[0][:, ::2], np.sin(position / 10000 ** (pair / 8)), atol=1e-6)
    assert len(drawn) == 1
    assert not any(name.startswith("positions") for name in views.at_validation())


def test_rotary_positions_show_their_cosines(drawn: list[np.ndarray]) -> None:
    assert "positions" in RunViews(make_model(positions="rotary"), STREAMED).at_start()
    position, pair = np.arange(128)[:, None], np.arange(0, 4, 2)[None]
    np.testing.assert_allclose(drawn[0], np.cos(position / 10000 ** (pair / 4)), atol=1e-6)


def test_learned_positions_are_drawn_as_they_are_now(drawn: list[np.ndarray]) -> None:
    model = make_model(positions="learned", max_positions=16)
    views = RunViews(model, STREAMED)
    assert {"positions/source", "positions/target"} <= views.at_start().keys()
    with torch.no_grad():
        model.source_positions.weight.fill_(3.0)  # type: ignore[union-attr, operator]
    drawn.clear()
    views.at_validation()
    np.testing.assert_array_equal(drawn[0], np.full((16, 8), 3.0, np.float32))


def test_a_relative_bias_is_shown_by_distance(drawn: list[np.ndarray]) -> None:
    model = make_model(positions="relative")
    assert {"positions/encoder", "positions/decoder"} <= RunViews(model, STREAMED).at_validation().keys()
    assert model.encoder_bias is not None
    between = model.encoder_bias.within(65)[0].detach().numpy()  # (H, T, T)
    np.testing.assert_array_equal(drawn[0][:, 64:], between[:, 0, :])  # keys after the query
    np.testing.assert_array_equal(drawn[0][:, :65], between[:, 64, :])  # keys before it
    assert drawn[1].shape == (2, 65), "the decoder only looks back"


@pytest.mark.parametrize(
    ("tie", "names"),
    [
        ("all", {"source_target_output"}),
        ("target", {"source", "target_output"}),
        ("none", {"source", "target", "output"}),
    ],
)
def test_norms_of_each_embedding_matrix_once(tie: str, names: set[str]) -> None:
    model = LstmSeq2Seq(20, 20, 8, 6, 5, 1, 1, tie_embeddings=tie)
    views = RunViews(model, STREAMED).at_validation()
    assert views.keys() == {f"embedding_norm{kind}/{name}" for kind in ("", "_by_piece") for name in names}
    of_source = next(view for name, view in views.items() if name.startswith("embedding_norm/source"))
    assert isinstance(of_source, Histogram)
    norms = np.linalg.norm(model.embeddings.source.weight.detach().double().numpy(), axis=1)
    edges, counts = of_source
    assert counts.sum() == 20
    assert counts[:15].sum() == (norms < edges[15]).sum()
    np.testing.assert_allclose([edges[0], edges[-1]], [norms.min(), norms.max()], rtol=1e-6)


def test_lengths_are_counted_over_all_corpora() -> None:
    columns: Any = [np.array([1, 3, 3]), np.array([2, 7])]
    edges, counts = length_histogram(columns)
    assert counts.tolist() == [1, 1, 2, 0, 0, 0, 1]
    assert edges[:2].tolist() == [0.5, 1.5]
    assert len(edges) == len(counts) + 1


def test_drawing_does_not_change_the_random_state() -> None:
    model = make_model(positions="learned", max_positions=16)
    before = random_state(torch.device("cpu"))
    RunViews(model, STREAMED).at_start()
    assert random_state(torch.device("cpu")) == before


def test_figures_of_few_pieces() -> None:
    """Fewer pieces than groups."""
    figure = plots.norms_figure(np.array([1.0, 2.0, 4.0]), "three")
    assert figure.axes[0].lines[0].get_ydata().tolist() == [1.0, 2.0, 4.0]  # type: ignore[union-attr]


def test_a_model_that_has_diverged_is_drawn_too() -> None:
    model = LstmSeq2Seq(20, 20, 8, 6, 5, 1, 1, tie_embeddings="all")
    with torch.no_grad():
        model.embeddings.target.weight[3] = torch.nan
    histogram = RunViews(model, STREAMED).at_validation()["embedding_norm/source_target_output"]
    assert isinstance(histogram, Histogram)
    assert histogram.counts.sum() == 19
