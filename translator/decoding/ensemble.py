"""Several models as one: the mean of their probabilities, behind the interface of a single model."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn

from translator.models.base import Decoded, Kept, Memory, Seq2Seq, State, Step


@dataclass(frozen=True)
class EnsembleState(State):
    members: tuple[State, ...]

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> Self:
        return type(self)(tuple(member.select(rows, sentences) for member in self.members))


class Ensemble(Seq2Seq):
    """Models of any architecture that share their vocabularies. An ensemble can search and score, but not be trained.

    Its states are already log-probabilities, so `project` returns them unchanged.
    """

    def __init__(self, models: Sequence[Seq2Seq]) -> None:
        super().__init__()
        if not models:
            raise ValueError("an ensemble needs at least one model")
        self.models = nn.ModuleList(models)
        self.members = list(models)  # the same, for the type checker

    def encode(self, source: Tensor, source_mask: Tensor) -> Memory:
        memories = tuple(model.encode(source, source_mask) for model in self.members)
        return Memory(memories[0].states, source_mask, memories)

    def start(self, memory: Memory) -> EnsembleState:
        return EnsembleState(tuple(model.start(m) for model, m in zip(self.members, memory.summary, strict=True)))

    def step(self, tokens: Tensor, state: State, *, need_weights: bool = False) -> Step:
        assert isinstance(state, EnsembleState)
        models = zip(self.members, state.members, strict=True)
        steps = [model.step(tokens, own, need_weights=need_weights) for model, own in models]
        logits, states, attentions = zip(*steps, strict=True)
        return Step(_mean_log_probs(logits), EnsembleState(states), _mean_attention(attentions))

    def forward(
        self,
        source: Tensor,
        source_mask: Tensor,
        target_in: Tensor,
        *,
        teacher_forcing: float = 1.0,
        kept: Kept | None = None,
        need_weights: bool = False,
    ) -> Decoded:
        if teacher_forcing != 1 or kept is not None:
            raise ValueError("an ensemble is not trained: teacher_forcing must be 1, and all pieces are kept")
        outputs = [model(source, source_mask, target_in, need_weights=need_weights) for model in self.members]
        logits = [model.project(output.states) for model, output in zip(self.members, outputs, strict=True)]
        return Decoded(_mean_log_probs(logits), _mean_attention([output.attention for output in outputs]))

    def project(self, states: Tensor) -> Tensor:
        return states

    def search_size(self, source_length: int, target_length: int, num_hypotheses: int) -> int:
        return sum(model.search_size(source_length, target_length, num_hypotheses) for model in self.members)

    @property
    def output_weight(self) -> Tensor:
        raise TypeError("an ensemble has no output matrix: it is not trained")


def _mean_log_probs(logits: Sequence[Tensor]) -> Tensor:
    """The logarithm of the mean of the models' probabilities."""
    log_probs = torch.stack([torch.log_softmax(one.float() if one.itemsize < 4 else one, -1) for one in logits])
    return torch.logsumexp(log_probs, 0) - math.log(len(logits))


def _mean_attention(attentions: Sequence[Tensor | None]) -> Tensor | None:
    """Models may have different numbers of layers and heads, so each is averaged first: (B or R, 1, 1, …)."""
    present = [one.mean((1, 2), keepdim=True) for one in attentions if one is not None]
    return torch.stack(present).mean(0) if present else None
