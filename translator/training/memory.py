"""Out of memory: which errors mean it, and how large a micro-batch may be from then on."""

import gc

import torch

from translator.data.batching import Batch
from translator.errors import UserError

# A batch slightly smaller than one that failed would most likely fail as well.
_MARGIN = 0.9


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
