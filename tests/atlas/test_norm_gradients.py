"""Gradients before training, and how the chapters describe measured trainings."""

import copy

import pytest
import torch

from translator.atlas.figures import norm_gradients
from translator.atlas.figures.norm_gradients import gradient_norm, layer_gradients, loss_of
from translator.atlas.material import Material
from translator.models.transformer import Transformer


@pytest.mark.parametrize("order", ["pre", "post"])
def test_the_norm_is_the_slope_along_the_gradient(order: str) -> None:
    """A step of length ε along a layer's gradient raises the loss by ε times its norm: float64, central differences."""
    torch.manual_seed(1)
    model = Transformer(30, 30, 8, 16, 2, 2, 2, norm_order=order, dropout=0.0).double()
    source, target = torch.randint(4, 30, (2, 3, 5))
    loss_of(model, source, target).backward()
    for number, layer in enumerate(model.decoder):
        norm = gradient_norm(layer)
        losses = []
        for step in (1e-5, -1e-5):
            moved = copy.deepcopy(model)
            with torch.no_grad():
                for to, parameter in zip(moved.decoder[number].parameters(), layer.parameters(), strict=True):
                    assert parameter.grad is not None
                    to += step * parameter.grad / norm
                losses.append(float(loss_of(moved, source, target)))
        assert (losses[0] - losses[1]) / 2e-5 == pytest.approx(norm, rel=1e-6)


def test_what_the_chapter_says_of_the_first_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    """They get almost no gradient with post-norm and plain initialisation, and only then."""
    monkeypatch.setattr(norm_gradients, "QUICK_DEPTHS", (2, 8))
    state = torch.get_rng_state()
    figures = norm_gradients.norm_gradients(Material(quick=True))
    assert torch.equal(state, torch.get_rng_state())
    ratios = {}
    for one in figures["variants"]:
        assert {depth: len(norms) for depth, norms in one["layers"].items()} == {"2": 2, "8": 8}
        ratios[one["norm_order"], one["initialisation"]] = one["layers"]["8"][0] / one["layers"]["8"][-1]
    assert (
        ratios["post", "plain"] < 0.5 < min(ratios["pre", "plain"], ratios["pre", "scaled"], ratios["post", "scaled"])
    )


def test_seeds_give_other_models_and_the_same_one_again() -> None:
    first, again, other = (layer_gradients("pre", "plain", 2, seed) for seed in (1, 1, 2))
    assert first == again != other
