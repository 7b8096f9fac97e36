"""Chapter 6: what is computed from times and memory, and from the autograd graph. No time is asserted."""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from translator.atlas.figures import complexity, paths
from translator.atlas.measure import complexity as complexity_measure
from translator.attention.multihead import MultiHeadAttention
from translator.models.lstm_layers import LstmLayer


def rows(axis: str, powers: dict[str, float], sizes: list[int]) -> list[dict[str, Any]]:
    return [
        {axis: size, **{kind: {"seconds": 1e-6 * size**power, "bytes": size**power} for kind, power in powers.items()}}
        for size in sizes
    ]


def test_exponents_and_crossing_of_exact_powers() -> None:
    powers = {"attention": 2.0, "multihead": 1.5, "recurrence": 1.0, "convolution": 1.0}
    by_length, by_width = rows("length", powers, [16, 256, 1024]), rows("width", powers, [32, 128, 512])
    found = complexity.exponents(by_length, by_width)
    for kind, power in powers.items():
        assert found["length"][kind] == {"seconds": pytest.approx(power), "bytes": pytest.approx(power)}
        assert found["width"][kind]["seconds"] == pytest.approx(power)
    assert found["length"]["range"] == [256, 1024]
    assert complexity.exponents(by_length[:2], by_width)["length"]["range"] is None
    for row in by_length:
        row["recurrence"]["seconds"] *= 100  # n² = 100 n at n = 100
    assert complexity.crossing(by_length) == pytest.approx(100)
    assert complexity.crossing(by_length[:1]) is None
    slope = np.polyfit([0, 1, 2], np.log([1.0, 3.0, 8.0]), 1)[0]
    assert complexity.fitted_exponent(np.exp([0, 1, 2]).tolist(), [1.0, 3.0, 8.0]) == pytest.approx(slope)


def test_the_modules_compute_what_their_names_say() -> None:
    x = torch.randn(7, 16)
    run, _ = complexity.module_of("attention", 16)
    expected = nn.functional.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None])[0, 0]
    torch.testing.assert_close(run(x), expected)
    run, _ = complexity.module_of("recurrence", 16)
    assert run(x).shape == (7, 16)
    run, _ = complexity.module_of("multihead", 16)
    assert run(x).shape == (7, 16)
    run, (weight, bias) = complexity.module_of("convolution", 16)
    torch.testing.assert_close(run(x), nn.functional.conv1d(x.T[None], weight, bias, padding=1)[0].T)


def test_memory_counts_every_storage_once_and_no_parameters() -> None:
    x = torch.randn(10, 4)
    weight = nn.Parameter(torch.randn(4, 4))
    assert complexity.saved_bytes(lambda x: x @ weight, x, [weight]) == 160  # x itself, for the gradient of the weight
    assert complexity.saved_bytes(lambda x: (x * x).exp(), x, []) == 320  # x, once, and the result


def test_a_short_measurement_has_all_sizes(figures: dict[str, Any]) -> None:
    found = figures["complexity"]["now"]["figures"]
    assert [row["length"] for row in found["by_length"]] == complexity.SHORTER["lengths"]
    assert [row["width"] for row in found["by_width"]] == complexity.SHORTER["widths"]
    assert all(row[kind]["seconds"] > 0 for row in found["by_length"] for kind in complexity.KINDS)
    memory = found["exponents"]["length"]
    assert memory["convolution"]["bytes"] == pytest.approx(1)
    assert 1.4 < memory["attention"]["bytes"] < 2
    parser = argparse.ArgumentParser()
    complexity_measure.add_options(parser)
    assert vars(parser.parse_args([])) == {}


def test_the_shipped_measurement_fits_its_own_exponents() -> None:
    path = Path(complexity.__file__).parents[1] / "data" / "complexity.json"
    found = json.loads(path.read_text(encoding="utf-8"))
    figures = found["figures"]
    for size, fitted in complexity.exponents(figures["by_length"], figures["by_width"]).items():
        shipped = figures["exponents"][size]
        assert shipped.keys() == fitted.keys()
        assert shipped["range"] == fitted["range"]
        for kind in complexity.KINDS:  # least squares are rounded differently on other processors
            assert shipped[kind] == pytest.approx(fitted[kind], rel=1e-9)
    assert figures["crossing"] == complexity.crossing(figures["by_length"])
    assert set(found["provenance"]) == {"command", "date", "versions", "machine"}


def test_an_lstm_step_by_step_is_the_lstm() -> None:
    layer, x = LstmLayer(6, 6), torch.randn(5, 6)
    start = torch.zeros(1, 6)
    torch.testing.assert_close(paths.step_by_step(layer, x), layer(x[:, None], start, start)[0][:, 0])


def test_chains_are_counted() -> None:
    x = torch.ones(2, requires_grad=True)
    assert paths.chain_length((x * 2).exp()) == 3  # the product, the exponential, and the input itself
    assert paths.chain_length((x * 2).exp() + x.exp()) == 4  # the longer of two ways


def test_only_the_recurrence_waits_longer_for_longer_sequences(figures: dict[str, Any]) -> None:
    found = figures["complexity"]["sequential"]["rows"]
    assert len({row["attention"] for row in found}) == len({row["convolution"] for row in found}) == 1
    steps = np.diff([row["recurrence"] for row in found]) / np.diff([row["length"] for row in found])
    assert len(set(steps)) == 1


def test_gradients_by_distance_are_those_of_the_whole_jacobian(figures: dict[str, Any]) -> None:
    found = figures["complexity"]["gradients"]
    convolution = found["gradients"]["convolution"]
    assert all(value > 0 for value in convolution[: found["reach"] + 1])
    assert not any(convolution[found["reach"] + 1 :])
    assert min(found["gradients"]["attention"]) > 0.05
    assert found["gradients"]["recurrence"][64] < 1e-3
    torch.manual_seed(paths.SEED)
    _, layer = MultiHeadAttention(paths.WIDTH, paths.NUM_HEADS), LstmLayer(paths.WIDTH, paths.WIDTH)
    paths.Convolutions(paths.WIDTH, paths.CONVOLUTIONS)
    x, zeros = torch.randn(paths.LENGTH, paths.WIDTH), torch.zeros(1, paths.WIDTH)
    jacobian = torch.autograd.functional.jacobian(lambda x: layer(x[:, None], zeros, zeros)[0][-1, 0], x)  # (D, n, D)
    norms = jacobian.square().sum((0, 2)).sqrt().flip(0)
    expected = (norms / norms[0]).tolist()
    assert found["gradients"]["recurrence"][:20] == pytest.approx(expected[:20], rel=0.5)  # of a few random directions
