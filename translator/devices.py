"""Which device to compute on."""

import torch

from translator.errors import UserError


def choose_device(name: str, local_rank: int = 0) -> torch.device:
    """`auto` prefers CUDA, then Apple's MPS, then the CPU; each rank of a machine takes its own GPU."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    device = torch.device(name)
    if device.type == "cuda" and device.index is None:
        device = torch.device("cuda", local_rank)
    available = {"cpu": 1, "cuda": torch.cuda.device_count(), "mps": int(torch.backends.mps.is_available())}
    count = available.get(device.type, 1)
    if (device.index or 0) >= count:
        found = f"{count} of them found" if count else "none found"
        raise UserError(f"trainer.device={name}: {device} is not available ({found}); use trainer.device=auto or cpu")
    return device
