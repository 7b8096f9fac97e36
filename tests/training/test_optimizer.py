"""Which parameters decay, and that the optimizer's state can be stored and restored."""

import pytest
import torch
from torch import nn

from support.training_toys import ToyLoader, ToyModel, make_model, same, weights
from translator.training.optimizer import build_optimizer, optimizer_tensors, restore_optimizer, split_parameters

OPTIONS = {"name": "adamw", "learning_rate": 0.1, "betas": (0.9, 0.98), "eps": 1e-9, "weight_decay": 0.5}


def test_only_matrices_of_linear_maps_decay() -> None:
    model = ToyModel()
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    decayed, others = split_parameters(model)
    assert [names[id(p)] for p in decayed] == ["hidden.weight"]
    assert sorted(names[id(p)] for p in others) == [
        "embedding.weight",
        "hidden.bias",
        "norm.bias",
        "norm.weight",
        "output.bias",
    ]


def test_frozen_parameters_are_left_out() -> None:
    model = ToyModel()
    model.hidden.weight.requires_grad_(False)
    assert split_parameters(model)[0] == []


@pytest.mark.parametrize("name", ["adam", "adamw"])
def test_a_step_is_torchs_own(name: str) -> None:
    """Fused, in two groups, against the plain single-tensor loop for each group."""
    model, reference = make_model(), make_model()
    optimizer = build_optimizer(model, **(OPTIONS | {"name": name}))
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[name]
    common = {"lr": 0.1, "betas": (0.9, 0.98), "eps": 1e-9, "foreach": False, "fused": False}
    decayed = kind([reference.hidden.weight], weight_decay=0.5, **common)
    others = kind([p for p in reference.parameters() if p is not reference.hidden.weight], weight_decay=0.0, **common)
    for _ in range(3):
        for ours, theirs in zip(model.parameters(), reference.parameters(), strict=True):
            ours.grad = torch.randn_like(ours)
            theirs.grad = ours.grad.clone()
        for each in (optimizer, decayed, others):
            each.step()
    for ours, theirs in zip(model.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_state_survives_being_flattened() -> None:
    first, second = make_model(), make_model()
    optimizers = [build_optimizer(model, **OPTIONS) for model in (first, second)]
    generator = torch.Generator().manual_seed(3)

    def step(model: nn.Module, optimizer: torch.optim.Optimizer, generator: torch.Generator) -> None:
        for parameter in model.parameters():
            parameter.grad = torch.randn(parameter.shape, generator=generator)
        optimizer.step()

    step(first, optimizers[0], generator)
    second.load_state_dict(first.state_dict())
    tensors = {name: tensor.clone() for name, tensor in optimizer_tensors(optimizers[0]).items()}
    assert {name.split(".")[1] for name in tensors} == {"step", "exp_avg", "exp_avg_sq"}
    restore_optimizer(optimizers[1], tensors)
    state = generator.get_state()
    step(first, optimizers[0], generator)
    step(second, optimizers[1], generator.set_state(state))
    assert same(weights(first), weights(second))


def test_the_toy_loader_resumes_where_it_stopped() -> None:
    """The oracle of the resume tests must itself be correct."""
    whole, first, second = ToyLoader(), ToyLoader(), ToyLoader()
    expected = [batch.indices.tolist() for batch, _ in zip(whole, range(15), strict=False)]
    found = [batch.indices.tolist() for _, batch in zip(range(8), first, strict=False)]
    second.load_state_dict(first.state_dict())
    found += [batch.indices.tolist() for _, batch in zip(range(7), second, strict=False)]
    assert found == expected
