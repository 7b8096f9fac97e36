"""Greedy search, beam search and sampling behind one function."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from translator.decoding.beam import beam_search
from translator.decoding.constraints import Constraints
from translator.decoding.greedy_and_sampling import greedy_or_sample
from translator.decoding.hypotheses import Hypothesis
from translator.models.base import Seq2Seq
from translator.schema.decode import SearchOptions

__all__ = ["Hypothesis", "SearchOptions", "search"]


@torch.inference_mode()
def search(
    model: Seq2Seq,
    source: Tensor,  # (B, S)
    source_mask: Tensor,  # (B, S)
    options: SearchOptions,
    *,
    prefixes: Sequence[Sequence[int]] | None = None,
    forbidden: Sequence[Sequence[int]] = (),
    never: Sequence[int] = (),
    seeds: Sequence[int] | None = None,
    before_step: Callable[[], None] = lambda: None,
) -> list[list[Hypothesis]]:
    """The hypotheses of every sentence, best first: at least one and at most `options.num_hypotheses`.

    The model should be in evaluation mode. Every sentence's output begins with its prefix, which may be empty, and
    contains none of the `forbidden` sequences of pieces nor a piece of `never`. `seeds` are numbers that tell the
    sentences apart when sampling. The output for a sentence depends on that sentence alone, not on the rest of the
    batch. `before_step` is called before each step and may raise an exception to end the search.
    """
    if source.size(0) == 0:
        return []
    constraints = Constraints(source_mask, options, prefixes, forbidden, never)
    if options.sample or options.beam_size == 1:
        return greedy_or_sample(model, source, source_mask, options, constraints, before_step, seeds)
    return beam_search(model, source, source_mask, options, constraints, before_step)
