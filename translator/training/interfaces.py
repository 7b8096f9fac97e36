"""What the training loop expects of the objects it is given."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

from torch import Tensor

from translator.data.batching import Batch
from translator.models.base import Seq2Seq


class Loader(Protocol):
    """Endless batches, epoch after epoch, from the position set by `load_state_dict`.

    `epoch` is that of the next batch, counted from 0: the number of epochs already completed.
    """

    @property
    def epoch(self) -> int: ...

    def __iter__(self) -> Iterator[Batch]: ...

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


class TrainingBatch(Protocol):
    """The part of a batch that a loss reads."""

    source: Tensor  # (B, S)
    source_mask: Tensor  # (B, S)
    target_in: Tensor  # (B, T)
    target_out: Tensor  # (B, T)
    target_mask: Tensor  # (B, T)
    num_target_tokens: int  # True in target_mask


class LossOutput(NamedTuple):
    """Sums over the real target positions of a batch; the caller divides by the tokens of the whole update.

    `parts` are shown beside the loss under their names. `nll`, the negative log-likelihood without any smoothing, must
    be among them: perplexity is computed from it.
    """

    loss_sum: Tensor  # (), differentiable
    parts: dict[str, Tensor]  # () each, detached
    num_tokens: int


class Moment(NamedTuple):
    """Where an update is in its run, as far as losses and models need to know."""

    share_done: float = 0.0  # of all updates of the run, before this one
    teacher_forcing: float = 1.0  # the probability of being given the reference's previous piece


NO_MOMENT = Moment()  # outside a run's updates, as in validation


class Loss(Protocol):
    """Sums over the real target tokens of a batch; other objectives can replace it without changes to the loop."""

    def __call__(self, model: Seq2Seq, batch: Any, moment: Moment = NO_MOMENT) -> LossOutput: ...


Notify = Callable[[str], None]  # shows one line to the user
