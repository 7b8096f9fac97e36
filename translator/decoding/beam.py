"""Batched beam search over the Seq2Seq contract. Letters: A sentences still running, K beam size, V vocabulary.

Each step extends every hypothesis by every piece and looks at the 2K best continuations of each sentence: at most K of
them end, so at least K go on. A continuation that ends is kept if it is among the K best. Finished hypotheses are kept
in a pool of the K best by normalised score, from which only a better hypothesis can displace them.

A sentence is done when one of these holds:
- No running hypothesis can overtake the last of the finished ones that are asked for. Log-probabilities only fall, so
  a running hypothesis with sum s reaches at best s / penalty(longest output). This rule changes no result.
- With a length penalty and `stop=first`, K hypotheses have finished, as in fairseq and CTranslate2. The bound above is
  loose with a penalty, so waiting for it (`stop=exact`) takes longer. With K = 1 this is greedy search.
- The sentence has reached its maximum length, where every hypothesis is forced to end.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from translator.decoding.constraints import Constraints
from translator.decoding.hypotheses import Hypothesis, hypothesis, is_normalized, length_penalty
from translator.ids import BOS, EOS, PAD
from translator.kernels.topk import top_candidates
from translator.models.base import Seq2Seq
from translator.schema.decode import SearchOptions, Stop


def expand(scores: Tensor, log_probs: Tensor, num_best: int) -> tuple[Tensor, Tensor, Tensor]:
    """The best continuations of hypotheses with scores (A, k): their scores, hypotheses and pieces, all (A, n)."""
    vocab_size = log_probs.size(1)
    num_places = scores.size(1) * vocab_size
    values, places = top_candidates(log_probs.view(*scores.shape, vocab_size), scores, min(num_best, num_places))
    # NaN, from a model that has diverged, would count as the best of all.
    values = values.masked_fill(values.isnan(), -torch.inf)
    parents, tokens = places // vocab_size, places % vocab_size
    missing = num_best - values.size(1)  # a vocabulary smaller than the beam
    if missing:
        values = torch.nn.functional.pad(values, (0, missing), value=-torch.inf)
        parents = torch.nn.functional.pad(parents, (0, missing))
        tokens = torch.nn.functional.pad(tokens, (0, missing), value=PAD)
    return values, parents, tokens


class FinishedPool:
    """The K best finished hypotheses of every sentence of the batch."""

    def __init__(self, num_sentences: int, beam_size: int, longest: int, like: Tensor) -> None:
        shape = (num_sentences, beam_size)
        self.normalized = like.new_full(shape, -torch.inf)  # sorted, best first
        self.scores = like.new_full(shape, -torch.inf)
        self.lengths = torch.full(shape, -1, device=like.device)  # -1: nothing here
        self.ids = torch.full((*shape, longest), PAD, device=like.device)

    def add(self, sentences: Tensor, accepted: Tensor, scores: Tensor, penalty: float, history: Tensor) -> None:
        """Takes the accepted ones (A, K) of hypotheses `history` (A, K, t) of these sentences (A,) of the batch."""
        length = history.size(2)
        normalized = torch.where(accepted, scores / penalty, -torch.inf)
        lengths = torch.where(accepted, length, -1)
        ids = torch.nn.functional.pad(history, (0, self.ids.size(2) - length), value=PAD)
        # A stable sort: of two equally good hypotheses the one that finished first comes first; empty places come last.
        together = torch.cat([self.normalized[sentences], normalized], 1)  # (A, 2K)
        present = torch.cat([self.lengths[sentences], lengths], 1) >= 0
        order = torch.sort(together, dim=1, descending=True, stable=True).indices
        order = order.gather(1, torch.sort(~present.gather(1, order), dim=1, stable=True).indices)
        order = order[:, : self.scores.size(1)]  # (A, K)
        self.normalized[sentences] = together.gather(1, order)
        self.scores[sentences] = torch.cat([self.scores[sentences], scores], 1).gather(1, order)
        self.lengths[sentences] = torch.cat([self.lengths[sentences], lengths], 1).gather(1, order)
        self.ids[sentences] = torch.cat([self.ids[sentences], ids], 1).gather(
            1, order[:, :, None].expand(-1, -1, ids.size(2))
        )

    def hypotheses(self, num_hypotheses: int) -> list[list[Hypothesis]]:
        tensors = [tensor[:, :num_hypotheses] for tensor in (self.ids, self.lengths, self.scores, self.normalized)]
        sentences = zip(*(tensor.tolist() for tensor in tensors), strict=True)
        return [
            [hypothesis(ids[:length], *scores) for ids, length, *scores in zip(*found, strict=True) if length >= 0]
            for found in sentences
        ]


def beam_search(
    model: Seq2Seq,
    source: Tensor,  # (B, S)
    source_mask: Tensor,  # (B, S)
    options: SearchOptions,
    constraints: Constraints,
    before_step: Callable[[], None],
    record: Callable[..., None] | None = None,  # told of each step's candidates; see inspection/beam_tree.py
) -> list[list[Hypothesis]]:
    """The best hypotheses of every sentence, best first; at least one, at most `options.num_hypotheses`."""
    beam_size, device = options.beam_size, source.device
    state = model.start(model.encode(source, source_mask))
    sentences = torch.arange(source.size(0), device=device)  # (A,) the sentences of the batch that are still running
    num_finished = torch.zeros_like(sentences)  # (A,)
    history = sentences.new_empty(source.size(0), 1, 0)  # (A, k, t); k is 1 before the first step
    scores: Tensor | None = None  # (A, k)
    pool: FinishedPool | None = None
    tokens = torch.full_like(sentences, BOS)  # (A · k)
    is_best = torch.arange(beam_size, device=device) == 0
    for step in range(constraints.longest + 1):
        before_step()
        logits, state, _ = model.step(tokens, state)
        log_probs = constraints.log_probs(logits, step, partial(history.flatten, 0, 1))  # (A · k, V)
        if scores is None or pool is None:
            scores = log_probs.new_zeros(sentences.size(0), 1)
            pool = FinishedPool(sentences.size(0), beam_size, constraints.longest, like=log_probs)
        width = scores.size(1)
        values, parents, pieces = expand(scores, log_probs, 2 * beam_size)  # (A, 2K)
        ends = pieces == EOS
        accepted = ends[:, :beam_size] & (values[:, :beam_size] > -torch.inf)
        at_limit = constraints.at_limit(step)
        # Where the model gives no finite score at all, fall back to the best unfinished hypothesis.
        lost = (at_limit | (values[:, 0] == -torch.inf)) & (num_finished == 0) & ~accepted.any(1)
        accepted |= lost[:, None] & is_best
        if bool(accepted.any()):
            ended = history.gather(1, parents[:, :beam_size, None].expand(-1, -1, step))  # (A, K, t)
            pool.add(sentences, accepted, values[:, :beam_size], length_penalty(step + 1, options), ended)
            num_finished = num_finished + accepted.sum(1)

        # The K best that go on, still best first.
        going_on = torch.sort(ends, dim=1, stable=True).indices[:, :beam_size]  # (A, K)
        if record is not None:
            record(values, parents, pieces, accepted, going_on)
        scores = values.gather(1, going_on).masked_fill(ends.gather(1, going_on), -torch.inf)
        parents, pieces = parents.gather(1, going_on), pieces.gather(1, going_on)
        best_possible = scores[:, 0] / length_penalty(constraints.max_length + 1, options)  # (A,)
        done = at_limit | (best_possible <= pool.normalized[sentences, options.num_hypotheses - 1])
        if is_normalized(options) and options.stop is Stop.first:
            done |= num_finished >= beam_size

        keep = (~done).nonzero().squeeze(1)  # (A',)
        if keep.numel() == 0:
            break
        remaining = None
        if keep.numel() < done.numel():
            remaining = keep
            sentences, num_finished, scores = sentences[keep], num_finished[keep], scores[keep]
            constraints.select(keep)
        rows = (parents[keep] + keep[:, None] * width).flatten()  # (A' · K)
        state = state.select(rows, remaining)
        tokens = pieces[keep].flatten()
        history = torch.cat([history.flatten(0, 1)[rows], tokens[:, None]], 1).unflatten(0, (keep.numel(), beam_size))
    assert pool is not None
    return pool.hypotheses(options.num_hypotheses)
