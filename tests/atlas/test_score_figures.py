"""Chapter 2: scores, saturation and masks, against numpy and torch's own modules."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from translator.atlas.figures import masks
from translator.atlas.figures.scores import normal_theory
from translator.atlas.material import Material
from translator.build.atlas_command import load_trained_run
from translator.ids import BOS, EOS, PAD


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True))


def test_scores_in_the_plane_are_their_formulas(figures: dict[str, Any]) -> None:
    found = figures["scores"]["plane"]
    q, k = np.array(found["queries"]), np.array(found["keys"])
    lengths = np.linalg.norm(q, axis=1)[:, None] * np.linalg.norm(k, axis=1)[None]
    squares = ((q[:, None] - k[None]) ** 2).sum(-1)
    expected = {
        "dot": q @ k.T,
        "scaled_dot": q @ k.T / math.sqrt(2),
        "cosine": math.sqrt(2) * (q @ k.T) / lengths,
        "gaussian": -squares / 2 / math.sqrt(2),
    }
    for name, scores in expected.items():
        np.testing.assert_allclose(found["scores"][name]["scores"], scores, atol=1e-3)
    for one in found["scores"].values():
        np.testing.assert_allclose(one["weights"], softmax(np.array(one["scores"])), atol=1e-4)
    assert found["num_parameters"] == {"additive": 40, "dot": 0, "scaled_dot": 0, "cosine": 1, "gaussian": 2}


def test_saturation_follows_the_theory(figures: dict[str, Any]) -> None:
    found = figures["scores"]["saturation"]
    for row in found["sizes"]:
        assert row["dot"]["deviation"] == pytest.approx(math.sqrt(row["size"]), rel=0.1)
        assert row["scaled_dot"]["deviation"] == pytest.approx(1, rel=0.1)
        for name in ("dot", "scaled_dot"):
            assert sum(row[name]["sorted"]) == pytest.approx(1, abs=1e-3)
            assert row[name]["sorted"][0] == pytest.approx(row[name]["largest"], rel=1e-3)
            if row["size"] >= 16:
                for key in ("entropy", "largest"):
                    assert row[name][key] == pytest.approx(row[name]["theory"][key], abs=0.15)
                assert row[name]["gradient"] == pytest.approx(row[name]["theory"]["gradient"], abs=0.05)


def test_the_gradient_of_the_theory_is_the_norm_of_the_jacobian() -> None:
    found = normal_theory(0.0)  # equal weights 1/S: diag(α) − αα^T has S − 1 eigenvalues 1/S
    assert found["gradient"] == pytest.approx(math.sqrt(31) / 32)
    assert found["entropy"] == pytest.approx(5)
    narrow = normal_theory(0.1)
    assert 5 - narrow["entropy"] == pytest.approx(0.1**2 / 2 / math.log(2), rel=0.05)  # second order in the deviation


def torch_layer() -> tuple[nn.MultiheadAttention, torch.Tensor, torch.Tensor]:
    """torch's own module with the weights of the layer of the figures."""
    layer, x, pad = masks._layer_and_inputs()
    other = nn.MultiheadAttention(masks.MODEL_SIZE, masks.NUM_HEADS, batch_first=True).eval()
    other.in_proj_weight.data.copy_(layer.input_projection.weight)
    other.in_proj_bias.data.copy_(layer.input_projection.bias)
    other.out_proj.load_state_dict(layer.output_projection.state_dict())
    return other, x, pad


def test_padding_leaks_as_much_as_in_torchs_attention(figures: dict[str, Any]) -> None:
    layer, x, pad = torch_layer()
    alone = layer(x, x, x)[0]
    for row in figures["scores"]["padding"]["rows"]:
        padded = torch.cat((x, pad.expand(1, row["padding"], -1)), 1)
        output, weights = layer(padded, padded, padded, average_attn_weights=False)
        real = masks.LENGTH
        assert row["unmasked"]["leaked"] == pytest.approx(weights[..., :real, real:].sum(-1).mean().item(), abs=1e-5)
        change = ((output[:, :real] - alone).norm() / alone.norm()).item()
        assert row["unmasked"]["change"] == pytest.approx(change, abs=1e-4)
        assert row["masked"]["leaked"] == 0
        assert row["masked"]["change"] < 1e-5


def test_the_future_leaks_as_much_as_in_torchs_attention(figures: dict[str, Any]) -> None:
    found = figures["scores"]["future"]
    layer, x, other = torch_layer()
    changed = torch.cat((x[:, :-1], other), 1)
    blocked = torch.ones(masks.LENGTH, masks.LENGTH, dtype=torch.bool).triu(1)
    for name, mask in (("masked", blocked), ("unmasked", None)):
        before, weights = layer(x, x, x, attn_mask=mask)
        after, _ = layer(changed, changed, changed, attn_mask=mask)
        np.testing.assert_allclose(found[name]["weights"], weights[0].detach(), atol=1e-4)
        assert found[name]["leaked"] == pytest.approx(weights[0].triu(1).sum(-1).mean().item(), abs=1e-5)
        changes = (after - before)[0].norm(dim=-1) / before[0].norm(dim=-1)
        assert found[name]["changes"] == pytest.approx(changes.tolist(), abs=1e-4)
    assert found["masked"]["changes"][:-1] == [0] * (masks.LENGTH - 1)


def test_an_empty_row(figures: dict[str, Any]) -> None:
    found = figures["scores"]["empty_rows"]
    assert found["softmax"]["weights"] == ["nan"] * 4
    assert found["masked_softmax"] == {"weights": ["0"] * 4, "gradient": ["0"] * 4}


def test_padding_of_a_trained_run(atlas_run: Path) -> None:
    run = load_trained_run("--run", atlas_run, "transformer")
    assert run is not None
    found = masks.padding_of_run(Material(quick=True, run=run))
    assert found is not None
    masked = [row["masked"] for row in found["rows"]]
    assert masked == pytest.approx([masked[0]] * len(masked), rel=1e-4)  # padding changes nothing …
    assert found["rows"][0]["unmasked"] == pytest.approx(masked[0])
    assert found["rows"][-1]["unmasked"] != pytest.approx(masked[0], rel=1e-3)  # … unless it is seen
    total, count = 0.0, 0
    for source, target in masks._encoded_pairs(run, masks.NUM_SENTENCES_QUICK):
        sources, inputs = torch.tensor([source]), torch.tensor([[BOS, *target]])
        model = run.translator.model
        with torch.no_grad():
            logits = model.project(model(sources, sources != PAD, inputs).states[0])
        total += nn.functional.cross_entropy(logits, torch.tensor([*target, EOS]), reduction="sum").item()
        count += len(target) + 1
    assert masked[0] == pytest.approx(math.exp(total / count), rel=1e-5)
    assert masks.padding_of_run(Material()) is None
