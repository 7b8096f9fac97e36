"""The random numbers of Python, numpy and torch: seeding them, and their states as JSON."""

import base64
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

import numpy as np
import torch


def seed_everything(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 - the global generator is what libraries draw from
    torch.manual_seed(seed)  # also CUDA and MPS


class RandomState(NamedTuple):
    """The states of all generators that training on a device may draw from."""

    python: tuple[Any, ...]
    numpy: Any
    cpu: torch.Tensor  # torch's
    device: torch.Tensor | None  # torch's on an accelerator

    @classmethod
    def now(cls, device: torch.device) -> Self:
        """Quick enough for every update."""
        return cls(random.getstate(), np.random.get_state(), torch.get_rng_state(), _device_state(device))  # noqa: NPY002

    def restore(self, device: torch.device) -> None:
        random.setstate(self.python)
        np.random.set_state(self.numpy)  # noqa: NPY002
        torch.set_rng_state(self.cpu)
        if self.device is not None and device.type == "cuda":
            torch.cuda.set_rng_state(self.device, device)
        elif self.device is not None and device.type == "mps":
            torch.mps.set_rng_state(self.device)


def random_state(device: torch.device) -> dict[str, Any]:
    """The state as plain values, for JSON."""
    state = RandomState.now(device)
    version, internal, gauss = state.python
    _, keys, position, has_gauss, cached = state.numpy
    return {
        "python": [version, list(internal), gauss],
        "numpy": [keys.tolist(), int(position), int(has_gauss), float(cached)],
        "torch": _encode(state.cpu),
        "device": None if state.device is None else _encode(state.device),
    }


def restore_random_state(state: dict[str, Any], device: torch.device) -> None:
    version, internal, gauss = state["python"]
    keys, position, has_gauss, cached = state["numpy"]
    RandomState(
        python=(version, tuple(internal), gauss),
        numpy=("MT19937", np.array(keys, np.uint32), position, has_gauss, cached),
        cpu=_decode(state["torch"]),
        device=None if state["device"] is None else _decode(state["device"]),
    ).restore(device)


@contextmanager
def untouched_random_state(device: torch.device) -> Iterator[None]:
    """Restores all generators afterwards, so that validating more often does not change what is learnt."""
    state = RandomState.now(device)
    try:
        yield
    finally:
        state.restore(device)


def _device_state(device: torch.device) -> torch.Tensor | None:
    if device.type == "cuda":
        return torch.cuda.get_rng_state(device)
    return torch.mps.get_rng_state() if device.type == "mps" else None


def _encode(state: torch.Tensor) -> str:
    return base64.b64encode(state.numpy().tobytes()).decode()


def _decode(text: str) -> torch.Tensor:
    return torch.frombuffer(bytearray(base64.b64decode(text)), dtype=torch.uint8)
