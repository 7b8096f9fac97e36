"""A model's weights as a flat dictionary of tensors, each stored once."""

from collections.abc import Iterable
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn

from translator.errors import UserError
from translator.files.atomic import atomic_file


def write_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    """Writes a safetensors file, with the metadata that other readers expect; OSError where it cannot be written."""
    try:
        with atomic_file(path) as temporary:
            save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, temporary, {"format": "pt"})
    except SafetensorError as error:  # safetensors reports a full disk in its own way
        raise OSError(f"{path}: {error}") from error


def collect_weights(model: nn.Module) -> dict[str, Tensor]:
    """Every persistent tensor under the first of its names: tied matrices are one matrix."""
    weights, seen = {}, set()
    for name, tensor in model.state_dict().items():
        place = (tensor.data_ptr(), tensor.shape, tensor.stride())
        if tensor.numel() == 0 or place not in seen:
            seen.add(place)
            weights[name] = tensor
    return weights


@torch.no_grad()
def restore_weights(model: nn.Module, weights: dict[str, Tensor], origin: str) -> None:
    """Copies stored weights into the model; `origin` is the file that a message about a difference names."""
    own = collect_weights(model)
    differences = [f"{name} is missing" for name in own.keys() - weights.keys()]
    differences += [f"{name} is unknown" for name in weights.keys() - own.keys()]
    differences += [
        f"{name} has shape {tuple(weights[name].shape)}, not {tuple(own[name].shape)}"
        for name in own.keys() & weights.keys()
        if weights[name].shape != own[name].shape
    ]
    if differences:
        shown = "; ".join(sorted(differences)[:3]) + ("; …" if len(differences) > 3 else "")
        raise UserError(
            f"{origin}: these are weights of another model ({shown}); give the configuration they belong to"
        )
    for name, tensor in own.items():
        tensor.copy_(weights[name])


def average_weights(checkpoints: Iterable[dict[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of each tensor, summed in float64 (Vaswani et al. 2017, section 6.1: averaging checkpoints)."""
    sums: dict[str, Tensor] = {}
    dtypes: dict[str, torch.dtype] = {}
    count = 0
    for weights in checkpoints:
        count += 1
        for name, tensor in weights.items():
            dtypes[name] = tensor.dtype
            sums[name] = sums[name] + tensor.double() if name in sums else tensor.double()
    return {name: (total / count).to(dtypes[name]) for name, total in sums.items()}
