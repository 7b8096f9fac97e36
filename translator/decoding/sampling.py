"""One piece after the other without looking back: greedy search, and sampling.

Letters: A sentences still running, N outputs of each sentence (1 for greedy search), R = A · N rows, V vocabulary.
"""

import hashlib
from collections.abc import Sequence

import torch
from torch import Tensor

from translator.decoding.beam import top_candidates
from translator.decoding.constraints import Constraints
from translator.decoding.options import Hypothesis, Sampling, SearchOptions
from translator.ids import BOS, EOS, PAD
from translator.models.base import Seq2Seq


def truncated_probabilities(log_probs: Tensor, sampling: Sampling) -> Tensor:
    """The distribution (R, V) to draw from: tempered, cut to the top k, then to the top p, and normalised."""
    probabilities = torch.softmax(log_probs / sampling.temperature, dim=-1)
    if sampling.top_k == 0 and sampling.top_p == 1:
        return probabilities
    ordered, places = probabilities.sort(dim=-1, descending=True, stable=True)
    if sampling.top_k > 0:
        ordered[:, sampling.top_k :] = 0
    ordered /= ordered.sum(-1, keepdim=True)
    # The fewest pieces that hold the share p: those before which less than p has been reached.
    ordered = ordered.masked_fill(ordered.cumsum(-1) - ordered >= sampling.top_p, 0)
    return torch.zeros_like(probabilities).scatter(-1, places, ordered / ordered.sum(-1, keepdim=True))


def draw(probabilities: Tensor, uniform: Tensor) -> Tensor:
    """One piece of every row of probabilities (R, V) by inverting the distribution function at `uniform` (R,)."""
    cumulative = probabilities.to(uniform.dtype).cumsum(-1)
    places = torch.searchsorted(cumulative, (uniform * cumulative[:, -1])[:, None], right=True).squeeze(1)
    return places.clamp_max(probabilities.size(1) - 1)


def _uniform(seeds: Sequence[int], lengths: list[int], num_outputs: int, sampling: Sampling) -> Tensor:
    """Random numbers (B, steps, N) that depend on each sentence's own seed and nothing of its neighbours."""
    numbers = torch.zeros(len(seeds), max(lengths) + 1, num_outputs, dtype=torch.double)
    for row, (seed, length) in enumerate(zip(seeds, lengths, strict=True)):
        digest = hashlib.blake2b(f"{sampling.seed} {seed}".encode(), digest_size=8).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest, "little") >> 1)
        numbers[row, : length + 1] = torch.rand(length + 1, num_outputs, dtype=torch.double, generator=generator)
    return numbers


def sample(
    model: Seq2Seq,
    source: Tensor,  # (B, S)
    source_mask: Tensor,  # (B, S)
    options: SearchOptions,
    prefixes: Sequence[Sequence[int]] | None = None,
    seeds: Sequence[int] | None = None,
) -> list[list[Hypothesis]]:
    """Greedy search where `options.sampling` is None, else `num_hypotheses` draws for each sentence, likeliest first.

    `seeds` tells the sentences apart, so that a sentence's draws are the same wherever in a batch it stands.
    """
    constraints = Constraints(source_mask, options, prefixes)
    sampling, num_sentences, device = options.sampling, source.size(0), source.device
    num_outputs = options.num_hypotheses if sampling else 1
    exact = torch.float if device.type == "mps" else torch.double  # which Apple's GPUs do not have
    uniform = None
    if sampling is not None:
        seeds = range(num_sentences) if seeds is None else seeds
        uniform = _uniform(seeds, constraints.max_length.tolist(), num_outputs, sampling).to(device, exact)
    state = model.start(model.encode(source, source_mask))
    if num_outputs > 1:
        state = state.select(torch.arange(num_sentences, device=device).repeat_interleave(num_outputs))
    sentences = torch.arange(num_sentences, device=device)  # (A,)
    ids = torch.full((num_sentences, num_outputs, constraints.longest + 1), PAD, device=device)
    lengths = torch.zeros(num_sentences, num_outputs, dtype=torch.long, device=device)
    scores = torch.zeros(num_sentences, num_outputs, dtype=exact, device=device)
    running = torch.ones(num_sentences, num_outputs, dtype=torch.bool, device=device)  # (A, N)
    tokens = torch.full((num_sentences * num_outputs,), BOS, device=device)  # (R,)
    for step in range(constraints.longest + 1):
        logits, state, _ = model.step(tokens, state)
        log_probs = constraints.log_probs(logits, ids[sentences, :, :step].flatten(0, 1))  # (R, V)
        if sampling is None or uniform is None:
            nothing = log_probs.new_zeros(log_probs.size(0), 1)
            values, tokens = (best.squeeze(1) for best in top_candidates(log_probs[:, None], nothing, 1))
        else:
            tokens = draw(truncated_probabilities(log_probs, sampling), uniform[sentences, step].flatten())
            values = log_probs.gather(1, tokens[:, None]).squeeze(1)
        scores[sentences] += torch.where(running, values.view_as(running).to(scores.dtype), 0)
        running &= (tokens.view_as(running) != EOS) & ~constraints.at_limit(step)[:, None]
        tokens = torch.where(running.flatten(), tokens, PAD)
        ids[sentences, :, step] = tokens.view_as(running)
        lengths[sentences] += running
        keep = running.any(1).nonzero().squeeze(1)  # (A',)
        if keep.numel() == 0:
            break
        if keep.numel() < sentences.numel():
            rows = (keep[:, None] * num_outputs + torch.arange(num_outputs, device=device)).flatten()
            state = state.select(rows, keep)
            sentences, running, tokens = sentences[keep], running[keep], tokens[rows]
            constraints.select(keep)
    return _hypotheses(ids.tolist(), lengths.tolist(), scores.tolist(), options)


def _hypotheses(
    ids: list[list[list[int]]], lengths: list[list[int]], scores: list[list[float]], options: SearchOptions
) -> list[list[Hypothesis]]:
    sentences = []
    for sentence in zip(ids, lengths, scores, strict=True):
        outputs = [
            Hypothesis(pieces[:length], score, float(score / options.penalty(length + 1.0)))
            for pieces, length, score in zip(*sentence, strict=True)
        ]
        sentences.append(sorted(outputs, key=lambda hypothesis: -hypothesis.normalized_score))
    return sentences
