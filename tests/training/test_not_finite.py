"""The message about an update with a non-finite loss or gradient."""

import numpy as np
import torch

from translator.data.batching import Batch
from translator.training.distributed import Ranks
from translator.training.not_finite import describe_update, suspicious_rows


def batch(*rows: int) -> Batch:
    return Batch.from_rows([[5, 3]] * len(rows), [[6]] * len(rows), np.array(rows))


def test_rows_with_a_non_finite_loss_are_blamed_first() -> None:
    good, bad = torch.tensor([1.0, 2.0]), torch.tensor([1.0, float("nan")])
    assert suspicious_rows([(batch(1, 2), good), (batch(7, 8), bad)], Ranks()) == [7, 8]
    assert suspicious_rows([(batch(1, 2), good), (batch(7, 8), good)], Ranks()) == [1, 2, 7, 8], "it was the gradient"


def test_a_few_rows_are_named_and_the_others_counted() -> None:
    text = describe_update(3, float("inf"), 2.5, 1e-3, list(range(20)))
    assert text == (
        "update 3: loss inf, gradient norm 2.5, learning rate 0.001, rows 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13,"
        " 14, 15 and 4 more of the training corpus"
    )
    assert "rows 4 of the" in describe_update(3, 1.0, float("nan"), 1e-3, [4])
