"""Trivial batches, for tests of the prefetching thread."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from translator.data.batching import Batch
from translator.data.loader import Place
from translator.errors import UserError


class Numbers:
    """Batches of one numbered row; can be made to fail at one of them."""

    def __init__(self, fails_at: int = -1) -> None:
        self.fails_at = fails_at
        self.num_made = 0

    @property
    def description(self) -> dict[str, Any]:
        return {}

    @property
    def batches_per_epoch(self) -> int:
        return 0

    def batches(self, place: Place) -> Iterator[tuple[Batch, Place]]:
        position = place.position
        while True:
            if position == self.fails_at:
                raise UserError("row 5 is damaged")
            self.num_made += 1
            row = np.array([position + 10])
            position += 1
            yield Batch.from_rows([row], [row], row), Place(0, position)
