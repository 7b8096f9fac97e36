"""The random numbers of Python, numpy and torch: seeding them, and their states as JSON."""

import base64
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch


def seed_everything(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 - the global generator is what libraries draw from
    torch.manual_seed(seed)  # also CUDA and MPS


def random_state(device: torch.device) -> dict[str, Any]:
    """The states of all generators that training on the device may draw from."""
    version, internal, gauss = random.getstate()
    numpy_state: Any = np.random.get_state()  # noqa: NPY002
    _, keys, position, has_gauss, cached = numpy_state
    return {
        "python": [version, list(internal), gauss],
        "numpy": [keys.tolist(), int(position), int(has_gauss), float(cached)],
        "torch": _encode(torch.get_rng_state()),
        "device": _device_state(device),
    }


def restore_random_state(state: dict[str, Any], device: torch.device) -> None:
    version, internal, gauss = state["python"]
    random.setstate((version, tuple(internal), gauss))
    keys, position, has_gauss, cached = state["numpy"]
    np.random.set_state(("MT19937", np.array(keys, np.uint32), position, has_gauss, cached))  # noqa: NPY002
    torch.set_rng_state(_decode(state["torch"]))
    if state["device"] is not None and device.type == "cuda":
        torch.cuda.set_rng_state(_decode(state["device"]), device)
    elif state["device"] is not None and device.type == "mps":
        torch.mps.set_rng_state(_decode(state["device"]))


@contextmanager
def untouched_random_state(device: torch.device) -> Iterator[None]:
    """Restores all generators afterwards, so that validating more often does not change what is learnt."""
    state = random_state(device)
    try:
        yield
    finally:
        restore_random_state(state, device)


def _device_state(device: torch.device) -> str | None:
    if device.type == "cuda":
        return _encode(torch.cuda.get_rng_state(device))
    return _encode(torch.mps.get_rng_state()) if device.type == "mps" else None


def _encode(state: torch.Tensor) -> str:
    return base64.b64encode(state.numpy().tobytes()).decode()


def _decode(text: str) -> torch.Tensor:
    return torch.frombuffer(bytearray(base64.b64decode(text)), dtype=torch.uint8)
