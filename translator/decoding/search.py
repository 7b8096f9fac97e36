"""The one door to searching: greedy search, beam search and sampling behind the same call."""

from collections.abc import Sequence

import torch
from torch import Tensor

from translator.decoding.beam import beam_search
from translator.decoding.greedy_and_sampling import sample
from translator.decoding.options import Hypothesis, Sampling, SearchOptions
from translator.models.base import Seq2Seq

__all__ = ["Hypothesis", "Sampling", "SearchOptions", "search"]


@torch.inference_mode()
def search(
    model: Seq2Seq,
    source: Tensor,  # (B, S)
    source_mask: Tensor,  # (B, S)
    options: SearchOptions,
    *,
    prefixes: Sequence[Sequence[int]] | None = None,
    seeds: Sequence[int] | None = None,
) -> list[list[Hypothesis]]:
    """The hypotheses of every sentence, best first: at least one and at most `options.num_hypotheses`.

    The model should be in evaluation mode. `prefixes` are pieces that a sentence's output must begin with (an empty
    list where there are none); `seeds` are numbers that tell the sentences apart when sampling. What comes out for
    a sentence depends on that sentence alone, not on the others of the batch.
    """
    if source.size(0) == 0:
        return []
    if options.sampling is not None or options.beam_size == 1:
        return sample(model, source, source_mask, options, prefixes, seeds)
    return beam_search(model, source, source_mask, options, prefixes)
