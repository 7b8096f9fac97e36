"""The contract between a translation model and everything that trains it, searches with it or looks into it.

Letters used for dimensions throughout: B sentences, S source length, T target length, D model size, V vocabulary,
L decoder layers, H heads, R rows (hypotheses) during search, K = R / B hypotheses of each sentence.
Masks are boolean, True = may be attended to.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

from torch import Tensor, nn
from torch.nn import functional as F

from translator.models.embeddings import Embeddings


class Memory(NamedTuple):
    """The encoder's output."""

    states: Tensor  # (B, S, D)
    mask: Tensor  # (B, S)
    summary: Any = None  # whatever else the decoder starts from, for example the last states of a recurrent encoder


class Kept(NamedTuple):
    """The pieces that keep their embeddings; those of all others are zero (token cutoff, Shen et al. 2020)."""

    source: Tensor  # (B, S)
    target: Tensor  # (B, T)


class Decoded(NamedTuple):
    """The decoder's output for a whole target, and the cross-attention behind it where it was asked for."""

    states: Tensor  # (B, T, D), to be projected to the vocabulary by `Seq2Seq.project`
    attention: Tensor | None = None  # (B, L, H, T, S)


class Step(NamedTuple):
    """The decoder's output for one more token of every row."""

    logits: Tensor  # (R, V)
    state: "State"
    attention: Tensor | None = None  # (R, L, H, S)


class State(ABC):
    """Everything the decoder must know to go on: an explicit value, never changed in place.

    Its rows are hypotheses. Row r belongs to sentence r // K, where K is the same for all sentences. What depends on
    the source alone is stored once per sentence, not once per hypothesis.
    """

    @abstractmethod
    def select(self, rows: Tensor, sentences: Tensor | None = None) -> Self:
        """The state in which row i continues the old row `rows[i]`; rows may be repeated, reordered and left out.

        `sentences` names the sentences that remain, in order; without it all of them do. Every chosen row must come
        from the sentence that the new row belongs to.
        """


class Seq2Seq(nn.Module, ABC):
    """A model that reads a source and writes a target, one piece after the other."""

    embeddings: Embeddings

    @abstractmethod
    def encode(self, source: Tensor, source_mask: Tensor) -> Memory:
        """Reads the source ids (B, S)."""

    @abstractmethod
    def forward(
        self,
        source: Tensor,  # (B, S) ids
        source_mask: Tensor,  # (B, S)
        target_in: Tensor,  # (B, T) ids, shifted right: BOS first
        *,
        teacher_forcing: float = 1.0,
        kept: Kept | None = None,
        need_weights: bool = False,
    ) -> Decoded:
        """The states for the whole target at once, each knowing only the target before it.

        `teacher_forcing` is the probability that a step is given the reference's previous piece and not the model's own
        prediction (scheduled sampling); models that cannot sample refuse anything but 1. `kept` says which pieces keep
        their embeddings; without it all do.
        """

    @property
    def output_weight(self) -> Tensor:
        """The matrix (V, D) from states to logits, also for losses that never hold all the logits at once."""
        return self.embeddings.output_weight

    @property
    def output_bias(self) -> Tensor | None:
        return self.embeddings.output_bias  # (V,)

    def project(self, states: Tensor) -> Tensor:
        """States (…, D) to logits (…, V)."""
        return F.linear(states, self.output_weight, self.output_bias)

    @abstractmethod
    def start(self, memory: Memory) -> State:
        """The state before the first step, with one row for each sentence."""

    @abstractmethod
    def step(self, tokens: Tensor, state: State, *, need_weights: bool = False) -> Step:
        """Feeds the tokens (R), the first of which is BOS, and gives the logits of the next ones."""

    def search_size(self, source_length: int, target_length: int, num_hypotheses: int) -> int:
        """About how many numbers a search holds at its peak for one sentence, besides logits and pieces.

        Limits how many sentences are translated at a time; 0 if it is little.
        """
        return 0


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Within, the model is in evaluation mode; afterwards each of its modules is in the mode it was in before."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode
