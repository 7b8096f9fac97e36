"""Exponential moving average of the weights: after each update  e ← d·e + (1 - d)·w."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class ExponentialMovingAverage:
    """Averaged copies of a model's trainable parameters.

    The decay of update u is min(decay, (1 + u) / (10 + u)), so the random initial weights soon lose their influence.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self._parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self.weights: dict[str, Tensor] = {name: p.detach().clone() for name, p in self._parameters.items()}

    @torch.no_grad()
    def update(self, update: int) -> None:
        decay = min(self.decay, (1 + update) / (10 + update))
        torch._foreach_lerp_(list(self.weights.values()), list(self._parameters.values()), 1 - decay)

    @contextmanager
    def in_place_of_weights(self) -> Iterator[None]:
        """Inside the block the model has the averaged weights; afterwards its own are restored, bit for bit."""
        own = {name: p.detach().clone() for name, p in self._parameters.items()}
        self._copy(self.weights, self._parameters)
        try:
            yield
        finally:
            self._copy(own, self._parameters)

    def load(self, weights: Mapping[str, Tensor]) -> None:
        self._copy({name: weights[name] for name in self.weights}, self.weights)

    @staticmethod
    @torch.no_grad()
    def _copy(source: Mapping[str, Tensor], target: Mapping[str, Tensor]) -> None:
        for name, tensor in target.items():
            tensor.copy_(source[name])
