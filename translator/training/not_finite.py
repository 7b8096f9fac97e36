"""Updates with a loss or gradient that is not finite: which rows are to blame, and what is said about them."""

from collections.abc import Iterable

from torch import Tensor

from translator.data.batching import Batch
from translator.training.distributed import Ranks

_SHOWN_ROWS = 16


def suspicious_rows(results: Iterable[tuple[Batch, Tensor]], ranks: Ranks) -> list[int]:
    """The rows of all ranks whose own sums are not finite, or all of them where only their gradient is not."""
    rows: tuple[list[int], list[int]] = ([], [])
    for batch, sums in results:
        rows[bool(sums.isfinite().all())].extend(batch.indices.tolist())
    gathered = ranks.gather(rows)
    bad, good = ([row for of_rank in gathered for row in of_rank[kind]] for kind in (False, True))
    return bad or good


def describe_update(update: int, loss: float, gradient_norm: float, learning_rate: float, rows: list[int]) -> str:
    shown = ", ".join(map(str, rows[:_SHOWN_ROWS]))
    if len(rows) > _SHOWN_ROWS:
        shown += f" and {len(rows) - _SHOWN_ROWS} more"
    return (
        f"update {update}: loss {loss:g}, gradient norm {gradient_norm:g}, learning rate {learning_rate:.3g}, rows"
        f" {shown} of the training corpus"
    )
