"""The one place that chooses between a reference formula and its faster form for CPUs."""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor


def use_kernels(*operands: Tensor) -> bool:
    """Whether the functions of this package should compute with these operands, instead of the reference formula.

    They are written for CPUs in single or double precision: half precision would lose digits on the detours that they
    take. `torch.compile` fuses the reference formulas itself, and autocast has to see the operations that it casts.
    """
    if torch.compiler.is_compiling() or torch.is_autocast_enabled("cpu"):
        return False
    dtype = operands[0].dtype
    if dtype not in (torch.float32, torch.float64):
        return False
    return all(operand.is_cpu and operand.dtype == dtype for operand in operands)


def without_autocast(operand: Tensor) -> AbstractContextManager[object]:
    """For functions that must compute in the type of their operands. There is no autocast for the `meta` device."""
    return nullcontext() if operand.is_meta else torch.autocast(operand.device.type, enabled=False)
