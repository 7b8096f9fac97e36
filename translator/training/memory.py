"""Memory: how much there is, how much training needs, and what to do when it runs out."""

import gc
import os
from pathlib import Path

import torch

from translator.data.batching import Batch
from translator.errors import UserError

# A batch slightly smaller than one that failed would most likely fail as well.
_MARGIN = 0.9
# Bytes for each parameter: the weight, its gradient and Adam's two moments, all float32.
_TRAINING_BYTES, _AVERAGE_BYTES = 16, 4
# Where Linux says how much memory a container may use, in the two versions of control groups.
_CONTAINER_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def training_bytes(num_parameters: int, *, with_average: bool) -> int:
    """Bytes that a model needs during training, without activations; `with_average` is a moving average of weights."""
    return num_parameters * (_TRAINING_BYTES + (_AVERAGE_BYTES if with_average else 0))


def device_memory(device: torch.device) -> int | None:
    """All memory of a device in bytes, used or free; None if unknown."""
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    if device.type == "mps":
        return torch.mps.recommended_max_memory()
    try:
        limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    except (AttributeError, ValueError, OSError):  # Windows
        return None
    for path in map(Path, _CONTAINER_LIMITS):
        text = path.read_text(encoding="ascii").strip() if path.is_file() else ""
        limits += [int(text)] if text.isdigit() else []  # "max" means no limit
    return min(limits)


def format_bytes(number: int) -> str:
    return f"{number / 1e9:,.1f} GB"


def is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    message = str(error).lower()
    signs = ("can't allocate memory", "not enough memory", "out of memory", "alloc_failed")
    return isinstance(error, RuntimeError) and any(sign in message for sign in signs)


def release_memory(device: torch.device) -> None:
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
    elif device.type == "mps":
        torch.mps.empty_cache()


def batch_size(batch: Batch) -> int:
    """Positions on both sides, padding included: what activations are roughly proportional to."""
    return batch.source.numel() + batch.target_in.numel()


class MemoryLimit:
    """The largest micro-batch that is tried; larger ones are split by rows until every part is below it."""

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit

    def parts(self, batch: Batch) -> list[Batch]:
        if self.limit is None or batch_size(batch) <= self.limit or len(batch) == 1:
            return [batch]
        return [part for half in batch.split() for part in self.parts(half)]

    def lower(self, failed: Batch) -> None:
        """Remembers that this batch did not fit."""
        if len(failed) == 1:
            raise UserError(
                f"out of memory with a single sentence pair of {failed.source.shape[1]} and {failed.target_in.shape[1]}"
                f" pieces, row {failed.indices.item()} of the training corpus: lower data.max_pieces, or train a"
                " smaller model"
            )
        self.limit = int(_MARGIN * batch_size(failed))
