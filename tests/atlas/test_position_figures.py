"""Chapter 5 against the formulas in numpy float64."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from translator.atlas.figures import positions
from translator.atlas.measure import positions as positions_measure
from translator.errors import UserError
from translator.models.transformer import Transformer


def transformer(kind: str) -> Transformer:
    return Transformer(20, 20, 16, 32, 2, 1, 1, positions=kind, max_positions=64)


def test_sinusoids(figures: dict[str, Any]) -> None:
    found = figures["positions"]["sinusoids"]
    size = found["size"]
    p, i = np.arange(len(found["table"]))[:, None], np.arange(size // 2)[None]
    angles = p / 10000 ** (2 * i / size)
    np.testing.assert_allclose(np.array(found["table"])[:, 0::2], np.sin(angles), atol=2e-5)
    np.testing.assert_allclose(np.array(found["table"])[:, 1::2], np.cos(angles), atol=2e-5)
    frequencies = 10000.0 ** (-2 * i[0] / size)
    theory = np.cos(np.array(found["offsets"])[:, None] * frequencies).sum(1)
    np.testing.assert_allclose(found["theory"], theory, atol=1e-5)
    for one in found["products"]:
        np.testing.assert_allclose(one["values"], theory, atol=1e-4)
    for dimension, wavelength in zip(found["dimensions"], found["wavelengths"], strict=True):
        assert wavelength == pytest.approx(2 * np.pi / frequencies[dimension // 2])


def test_rotary_scores_depend_on_the_distance_only(figures: dict[str, Any]) -> None:
    for one in figures["positions"]["rotary"]["sizes"]:
        assert one["largest_difference"] < 1e-5
        distances = np.arange(len(one["mean"]))
        frequencies = 10000.0 ** (-2 * np.arange(one["size"] // 2) / one["size"])
        # A random direction has, on average, the same part of its length in every plane.
        expected = np.cos(distances[:, None] * frequencies).mean(1)
        np.testing.assert_allclose(one["mean"], expected, atol=0.12)
        assert one["scores"][0]["values"][0] == pytest.approx(1, abs=1e-5)


def test_ranges_of_distances(figures: dict[str, Any]) -> None:
    found = figures["positions"]["relative"]
    encoder, decoder = (
        dict(zip(found["offsets"], found["buckets"][name], strict=True)) for name in ("encoder", "decoder")
    )
    assert [encoder[-n] for n in range(8)] == list(range(8))
    assert [encoder[n] for n in range(1, 8)] == list(range(17, 24))
    assert [decoder[-n] for n in range(16)] == list(range(16))
    assert encoder[-128] == encoder[-160] == 15
    assert encoder[128] == encoder[160] == decoder[-128] == 31
    assert {decoder[n] for n in range(1, 161)} == {0}  # the future, which a decoder never sees


def test_what_models_have_learned() -> None:
    model = transformer("learned")
    found = positions.trained_positions(model)
    rows = model.source_positions.weight.detach().double().numpy()[: positions.LEARNED_SHOWN]  # type: ignore[operator]
    directions = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    np.testing.assert_allclose(found["learned_source"], directions @ directions.T, atol=2e-5)
    model = transformer("relative")
    found = positions.trained_positions(model)
    assert model.encoder_bias is not None
    within = model.encoder_bias.within(2 * positions.FARTHEST + 1)[0, :, positions.FARTHEST].detach()  # (H, offsets)
    np.testing.assert_allclose(found["relative_encoder"]["heads"], within, atol=1e-5)
    assert found["relative_decoder"]["offsets"] == list(range(-positions.FARTHEST, 1))
    assert positions.trained_positions(transformer("sinusoidal")) == {}


def test_measuring_runs_without_learned_positions_is_refused(atlas_run: Path) -> None:
    parser = argparse.ArgumentParser()
    positions_measure.add_options(parser)
    with pytest.raises(UserError, match=r"--run .*: has no learned positions; train one with model\.positions=learned"):
        positions_measure.measure(parser.parse_args(["--run", str(atlas_run)]))
    with pytest.raises(UserError, match="--run nowhere: no such directory"):
        positions_measure.measure(parser.parse_args(["--run", "nowhere"]))
    assert torch.is_grad_enabled()
