"""Orthogonalised momentum, against singular value decompositions and torch's own Muon."""

import pytest
import torch
from torch import Tensor, nn

from support.training_toys import make_model, same, weights
from translator.training.muon import UPDATE_RMS, Muon, orthogonalized, square_blocks
from translator.training.optimizer import build_optimizer, optimizer_tensors, restore_optimizer

OPTIONS = {"name": "muon", "learning_rate": 0.1, "betas": (0.9, 0.98), "eps": 1e-9, "weight_decay": 0.5}


def random_matrices(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def muon(parameters: list[nn.Parameter], **options: float) -> Muon:
    return Muon([{"params": parameters, "orthogonalize": True}], **{"lr": 0.1, "weight_decay": 0.0} | options)


@pytest.mark.parametrize("shape", [(16, 16), (16, 40), (40, 16)])
def test_singular_vectors_stay_and_singular_values_come_close_to_one(shape: tuple[int, int]) -> None:
    matrices = random_matrices(3, *shape)
    left, values, right = torch.linalg.svd(matrices, full_matrices=False)
    assert values.amax() / values.amin() > 2
    found = left.mT @ orthogonalized(matrices) @ right.mT  # (3, 16, 16), diagonal
    new_values = found.diagonal(dim1=-2, dim2=-1)
    torch.testing.assert_close(found, torch.diag_embed(new_values), atol=1e-9, rtol=0)
    large = values > 0.05 * values.amax(-1, keepdim=True)  # five iterations do not lift the very smallest
    assert ((new_values[large] > 0.65) & (new_values[large] < 1.25)).all()


def test_each_matrix_is_normalised_by_itself() -> None:
    matrices = random_matrices(3, 8, 8) * torch.tensor([1e-4, 1.0, 1e4])[:, None, None]
    together = orthogonalized(matrices)
    for matrix, result in zip(matrices, together, strict=True):
        torch.testing.assert_close(orthogonalized(matrix[None])[0], result)


def test_a_gradient_of_zeros_changes_nothing() -> None:
    assert not orthogonalized(torch.zeros(2, 4, 4)).any()


@pytest.mark.parametrize(("shape", "blocks"), [((12, 4), 3), ((4, 12), 3), ((4, 4), 1)])
def test_blocks_are_squares_and_share_the_memory_of_the_matrix(shape: tuple[int, int], blocks: int) -> None:
    matrix = random_matrices(*shape)
    parts = square_blocks(matrix)
    assert parts.shape == (blocks, 4, 4)
    expected = matrix.split(4, dim=0 if shape[0] > 4 else 1)
    assert all(torch.equal(part, one) for part, one in zip(parts, expected, strict=True))
    parts.zero_()
    assert not matrix.any()


def test_a_matrix_that_does_not_fall_into_squares_stays_whole() -> None:
    assert square_blocks(torch.zeros(6, 4)).shape == (1, 6, 4)


@pytest.mark.usefixtures("bfloat16_products")
def test_steps_are_those_of_torchs_muon() -> None:
    """On a square matrix, up to the rounding of torch's bfloat16."""
    ours, theirs = (nn.Parameter(random_matrices(32, 32, dtype=torch.float32)) for _ in range(2))
    start = ours.detach().clone()
    optimizer = muon([ours], lr=0.02, weight_decay=0.1)
    reference = torch.optim.Muon([theirs], lr=0.02, weight_decay=0.1, adjust_lr_fn="match_rms_adamw")
    for step in range(4):
        ours.grad = random_matrices(32, 32, seed=step, dtype=torch.float32)
        theirs.grad = ours.grad.clone()
        optimizer.step()
        reference.step()
    moved = (theirs - start).norm()
    assert (ours - theirs).norm() < 0.01 * moved


def test_stacked_projections_move_as_if_they_were_apart() -> None:
    stacked = nn.Parameter(random_matrices(24, 8))
    apart = [nn.Parameter(part.clone()) for part in stacked.detach().split(8)]
    gradient = random_matrices(24, 8, seed=1)
    stacked.grad = gradient
    for part, own in zip(apart, gradient.split(8), strict=True):
        part.grad = own.clone()
    muon([stacked]).step()
    muon(apart).step()
    torch.testing.assert_close(stacked, torch.cat(apart))


@pytest.mark.parametrize("shape", [(8, 8), (24, 8), (8, 24), (12, 8)])
def test_updates_are_as_large_as_those_of_adam(shape: tuple[int, int]) -> None:
    matrix = nn.Parameter(torch.zeros(*shape))
    matrix.grad = random_matrices(*shape, dtype=torch.float32)
    muon([matrix], lr=0.01).step()
    rms = matrix.detach().square().mean().sqrt() / 0.01
    assert 0.7 * UPDATE_RMS < rms < 1.25 * UPDATE_RMS


def test_only_matrices_of_linear_maps_are_orthogonalised() -> None:
    """The others take exactly the steps of AdamW."""
    model, reference = make_model(), make_model()
    optimizers = [build_optimizer(model, **OPTIONS), build_optimizer(reference, **OPTIONS | {"name": "adamw"})]
    for seed in range(3):
        for one, optimizer in zip((model, reference), optimizers, strict=True):
            for parameter in one.parameters():
                parameter.grad = random_matrices(*parameter.shape, seed=seed, dtype=torch.float32)
            optimizer.step()
    differing = [
        name
        for (name, ours), theirs in zip(model.named_parameters(), reference.parameters(), strict=True)
        if not torch.equal(ours, theirs)
    ]
    assert differing == ["hidden.weight"]


def test_state_survives_being_flattened() -> None:
    first, second = make_model(), make_model()
    optimizers = [build_optimizer(model, **OPTIONS) for model in (first, second)]

    def step(model: nn.Module, optimizer: torch.optim.Optimizer, seed: int) -> None:
        for parameter in model.parameters():
            parameter.grad = random_matrices(*parameter.shape, seed=seed, dtype=torch.float32)
        optimizer.step()

    step(first, optimizers[0], 1)
    second.load_state_dict(first.state_dict())
    tensors = {name: tensor.clone() for name, tensor in optimizer_tensors(optimizers[0]).items()}
    assert {name.split(".")[1] for name in tensors} == {"step", "exp_avg", "exp_avg_sq", "momentum"}
    restore_optimizer(optimizers[1], tensors)
    for model, optimizer in zip((first, second), optimizers, strict=True):
        step(model, optimizer, 2)
    assert same(weights(first), weights(second))


def test_a_float16_overflow_skips_both_kinds_of_group() -> None:
    model = make_model()
    optimizer = build_optimizer(model, **OPTIONS)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
    before = weights(model)
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, torch.inf)
    scaler.scale(torch.zeros(()))  # creates the scale
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    assert same(before, weights(model))
