"""Gradient norms of the parts of a model: its embeddings, every layer, its output."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn


class GradientNorms:
    """The parts of a model and the norms of their gradients. Their squares add up to the square of the whole norm."""

    def __init__(self, model: nn.Module) -> None:
        names: dict[nn.Parameter, list[str]] = {}
        for name, parameter in model.named_parameters(remove_duplicate=False):
            names.setdefault(parameter, []).append(name)
        self._parts: dict[str, list[nn.Parameter]] = {}
        for parameter, its_names in names.items():
            self._parts.setdefault(_common_part(its_names), []).append(parameter)

    @property
    def names(self) -> list[str]:
        return list(self._parts)

    def measure(self) -> Tensor:
        """The norms (P,) of the gradients that the parameters have now, in the order of `names`."""
        return torch.stack([_norm(part) for part in self._parts.values()])


def _norm(part: list[nn.Parameter]) -> Tensor:
    gradients = [parameter.grad for parameter in part if parameter.grad is not None]
    return torch.nn.utils.get_total_norm(gradients) if gradients else part[0].new_zeros(())


def _common_part(names: Iterable[str]) -> str:
    """One name for a parameter that several parts share: embeddings/output_source_target."""
    parts = sorted({_part(name) for name in names})
    rooms = {part.split("/")[0] for part in parts}
    if len(parts) == 1 or len(rooms) > 1:
        return "_".join(parts)
    (room,) = rooms
    return f"{room}/{'_'.join(part.removeprefix(f'{room}/').removesuffix('_weight') for part in parts)}"


def _part(name: str) -> str:
    """encoder.0.attention.query.weight belongs to encoder/1; what is not in a numbered layer, to the second level."""
    path = name.split(".")
    if len(path) > 1 and path[-1] in ("weight", "bias"):
        path.pop()
    layer = next((place for place, level in enumerate(path) if level.isdigit()), 1)
    return "/".join(str(int(level) + 1) if level.isdigit() else level for level in path[: layer + 1])
