"""The device to train on and the number format of the forward pass."""

import contextlib
from dataclasses import dataclass

import torch

from translator.devices import choose_device

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True)
class Execution:
    """A device and the format of the forward pass; weights, gradients and optimizer state keep their own (float32)."""

    device: torch.device
    dtype: torch.dtype = torch.float32  # float32 = as the weights are, no autocast

    def autocast(self) -> contextlib.AbstractContextManager[object]:
        if self.dtype is torch.float32:
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, self.dtype)

    def grad_scaler(self) -> torch.amp.GradScaler:
        """Keeps small float16 gradients from underflowing (Micikevicius et al. 2018, 3.2); off for other formats."""
        return torch.amp.GradScaler(self.device.type, enabled=self.dtype is torch.float16)


def choose_execution(device_name: str, precision: str, local_rank: int = 0) -> Execution:
    """`auto` is bfloat16 on GPUs that have it, float16 on older ones, and float32 everywhere else."""
    device = choose_device(device_name, local_rank)
    if device.type == "cuda":
        torch.cuda.set_device(device)
        torch.set_float32_matmul_precision("high")  # TF32 for what stays in float32
        torch.backends.cudnn.allow_tf32 = True
        if precision == "auto":
            precision = "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float16"
    return Execution(device, _DTYPES["float32" if precision == "auto" else precision])
