"""Adam, AdamW and Muon, with weight decay only where it belongs."""

from collections.abc import Sequence

import torch
from torch import nn

from translator.training.muon import Muon

FUSED_DEVICES = ("cuda", "cpu", "mps", "xpu")


def split_parameters(model: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Parameters that decay (matrices of linear maps) and others (biases, norms, embeddings, also tied ones)."""
    embeddings = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    decayed: list[nn.Parameter] = []
    others: list[nn.Parameter] = []
    for parameter in model.parameters():
        if parameter.requires_grad:
            is_matrix = parameter.ndim >= 2 and id(parameter) not in embeddings
            (decayed if is_matrix else others).append(parameter)
    return decayed, others


def build_optimizer(
    model: nn.Module, *, name: str, learning_rate: float, betas: Sequence[float], eps: float, weight_decay: float
) -> torch.optim.Optimizer:
    """`name` is adamw (decay decoupled from the gradient, Loshchilov and Hutter 2019), adam (decay added) or muon."""
    decayed, others = split_parameters(model)
    chosen = [(parameters, decay) for parameters, decay in ((decayed, weight_decay), (others, 0.0)) if parameters]
    groups = [{"params": some, "weight_decay": decay, "orthogonalize": some is decayed} for some, decay in chosen]
    fused = next(model.parameters()).device.type in FUSED_DEVICES
    optimizers: dict[str, type[torch.optim.Adam]] = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam, "muon": Muon}
    return optimizers[name](groups, lr=learning_rate, betas=(betas[0], betas[1]), eps=eps, fused=fused)


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    """The moments and step counters as a flat dictionary; hyper-parameters come from the configuration instead."""
    state = optimizer.state_dict()["state"]
    return {f"{index}.{name}": value for index, values in state.items() for name, value in values.items()}


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, torch.Tensor]) -> None:
    state: dict[int, dict[str, torch.Tensor]] = {}
    for key, value in tensors.items():
        index, name = key.split(".", 1)
        state.setdefault(int(index), {})[name] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
