"""What the training loop expects of the objects it is given."""

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from translator.data.batching import Batch
from translator.models.base import Seq2Seq
from translator.training.loss import LossOutput


class Loader(Protocol):
    """Endless batches, epoch after epoch, from where `load_state_dict` put it.

    `epoch` is that of the next batch, counted from 0: the number of epochs already handed out.
    """

    @property
    def epoch(self) -> int: ...

    def __iter__(self) -> Iterator[Batch]: ...

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


class Loss(Protocol):
    """Sums over the real target tokens of a batch; other objectives can take its place without touching the loop."""

    def __call__(self, model: Seq2Seq, batch: Any, *, teacher_forcing: float = 1.0) -> LossOutput: ...


Notify = Callable[[str], None]  # shows one line to the person who waits
