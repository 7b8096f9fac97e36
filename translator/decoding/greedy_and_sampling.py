"""One piece after the other without looking back: greedy search and sampling.

Letters: A sentences still running, N outputs of each sentence (1 for greedy search), R = A · N rows, V vocabulary.
"""

import hashlib
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from translator.decoding.constraints import Constraints
from translator.decoding.hypotheses import Hypothesis, hypothesis, length_penalty
from translator.ids import BOS, EOS, PAD
from translator.kernels.topk import top_candidates
from translator.models.base import Seq2Seq
from translator.schema.decode import SearchOptions

# Finished sentences leave the batch once they are one in so many, since the state of the others is copied each time.
ENOUGH_TO_LEAVE = 8
SMALLEST_TEMPERATURE = 1e-30  # below it, all log-probabilities would become infinite


def truncated_probabilities(log_probs: Tensor, options: SearchOptions) -> Tensor:
    """The distribution (R, V) to draw from: tempered, cut by ε, to the top k, then to the top p, and normalised."""
    tempered = log_probs / max(options.temperature, SMALLEST_TEMPERATURE)
    # If the model has diverged: NaN means impossible, and where nothing is possible the sentence ends.
    tempered = tempered.masked_fill(tempered.isnan(), -torch.inf)
    tempered[:, EOS] = torch.where(tempered.amax(-1) == -torch.inf, 0, tempered[:, EOS])
    probabilities = torch.softmax(tempered, dim=-1)
    if options.top_k == 0 and options.top_p == 1 and options.epsilon == 0:
        return probabilities
    ordered, places = probabilities.sort(dim=-1, descending=True, stable=True)
    if options.epsilon > 0:  # the likeliest piece always remains
        ordered[:, 1:] *= ordered[:, 1:] >= options.epsilon
    if options.top_k > 0:
        ordered[:, options.top_k :] = 0
    ordered /= ordered.sum(-1, keepdim=True)
    # The fewest pieces that hold the share p: those before which less than p has been reached.
    ordered = ordered.masked_fill(ordered.cumsum(-1) - ordered >= options.top_p, 0)
    return torch.zeros_like(probabilities).scatter(-1, places, ordered / ordered.sum(-1, keepdim=True))


def draw(probabilities: Tensor, uniform: Tensor) -> Tensor:
    """One piece of every row of probabilities (R, V) by inverting the distribution function at `uniform` (R,)."""
    cumulative = probabilities.to(uniform.dtype).cumsum(-1)
    places = torch.searchsorted(cumulative, (uniform * cumulative[:, -1])[:, None], right=True).squeeze(1)
    return places.clamp_max(probabilities.size(1) - 1)


def _uniform(seeds: Sequence[int], lengths: list[int], num_outputs: int, seed: int) -> Tensor:
    """Random numbers (B, steps, N) that depend on `seed` and the sentence's own seed, not on its neighbours."""
    numbers = torch.zeros(len(seeds), max(lengths) + 1, num_outputs, dtype=torch.double)
    for row, (own, length) in enumerate(zip(seeds, lengths, strict=True)):
        digest = hashlib.blake2b(f"{seed} {own}".encode(), digest_size=8).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest, "little") >> 1)
        numbers[row, : length + 1] = torch.rand(length + 1, num_outputs, dtype=torch.double, generator=generator)
    return numbers


class Outputs:
    """What has been written for a batch. The latest pieces of running sentences are kept apart until some leave."""

    def __init__(self, num_sentences: int, num_outputs: int, longest: int, device: torch.device) -> None:
        exact = torch.float if device.type == "mps" else torch.double  # which Apple's GPUs do not have
        self.ids = torch.full((num_sentences, num_outputs, longest + 1), PAD, device=device)
        self.scores = torch.zeros(num_sentences, num_outputs, dtype=exact, device=device)
        self.sentences = torch.arange(num_sentences, device=device)  # (A,)
        self.num_saved = 0  # pieces of the running sentences that are in `ids`
        self.pieces: list[Tensor] = []  # (A, N) each: the later ones; PAD for an output that has ended
        self.running_scores = self.scores  # (A, N)

    def add(self, pieces: Tensor, values: Tensor) -> None:
        """One more piece (A, N) of every running sentence, and what it adds to the scores."""
        self.pieces.append(pieces)
        self.running_scores = self.running_scores + values

    def save(self) -> None:
        columns = slice(self.num_saved, self.num_saved + len(self.pieces))
        self.ids[self.sentences, :, columns] = torch.stack(self.pieces, -1)
        self.scores[self.sentences] = self.running_scores
        self.num_saved, self.pieces = columns.stop, []

    def select(self, keep: Tensor) -> None:
        """Only these (A') of the sentences go on."""
        self.save()
        self.sentences, self.running_scores = self.sentences[keep], self.running_scores[keep]

    def history(self) -> Tensor:
        """All pieces (R, t) of the running sentences."""
        saved = self.ids[self.sentences, :, : self.num_saved]  # (A, N, saved)
        return torch.cat((saved, *(pieces[:, :, None] for pieces in self.pieces)), -1).flatten(0, 1)

    def hypotheses(self, options: SearchOptions) -> list[list[Hypothesis]]:
        """Those of every sentence, the likeliest first."""
        self.save()
        lengths = (self.ids != PAD).sum(2).tolist()
        sentences = []
        for sentence in zip(self.ids.tolist(), lengths, self.scores.tolist(), strict=True):
            outputs = [
                hypothesis(pieces[:length], score, float(score / length_penalty(length + 1.0, options)))
                for pieces, length, score in zip(*sentence, strict=True)
            ]
            sentences.append(sorted(outputs, key=lambda output: -output.normalized_score))
        return sentences


def greedy_or_sample(
    model: Seq2Seq,
    source: Tensor,  # (B, S)
    source_mask: Tensor,  # (B, S)
    options: SearchOptions,
    constraints: Constraints,
    before_step: Callable[[], None],
    seeds: Sequence[int] | None = None,
) -> list[list[Hypothesis]]:
    """Greedy search, or with `options.sample` as many samples as `num_hypotheses` for each sentence, likeliest first.

    `seeds` tells the sentences apart, so that a sentence's samples do not depend on its place in the batch.
    """
    num_sentences, device = source.size(0), source.device
    num_outputs = options.num_hypotheses if options.sample else 1
    outputs = Outputs(num_sentences, num_outputs, constraints.longest, device)
    uniform = None
    if options.sample:
        seeds = range(num_sentences) if seeds is None else seeds
        uniform = _uniform(seeds, constraints.max_length.tolist(), num_outputs, options.seed).to(outputs.scores)
    state = model.start(model.encode(source, source_mask))
    if num_outputs > 1:
        state = state.select(outputs.sentences.repeat_interleave(num_outputs))
    running = torch.ones(num_sentences, num_outputs, dtype=torch.bool, device=device)  # (A, N)
    tokens = torch.full((num_sentences * num_outputs,), BOS, device=device)  # (R,)
    for step in range(constraints.longest + 1):
        before_step()
        logits, state, _ = model.step(tokens, state)
        log_probs = constraints.log_probs(logits, step, outputs.history)  # (R, V)
        if uniform is None:
            # As in beam search: `max` breaks ties in ways that depend on the number of rows.
            best = top_candidates(log_probs[:, None], log_probs.new_zeros(log_probs.size(0), 1), 1)
            values, tokens = (part.squeeze(1) for part in best)  # (R,)
        else:
            tokens = draw(truncated_probabilities(log_probs, options), uniform[outputs.sentences, step].flatten())
            values = log_probs.gather(1, tokens[:, None]).squeeze(1)
        values = torch.where(running, values.view_as(running), 0)
        running = running & (tokens.view_as(running) != EOS)
        if step >= constraints.first_maximum:
            running &= ~constraints.at_limit(step)[:, None]
        tokens = torch.where(running.flatten(), tokens, PAD)
        outputs.add(tokens.view_as(running), values)
        keep = running.any(1).nonzero().squeeze(1)  # (A',)
        if keep.numel() == 0:
            break
        if ENOUGH_TO_LEAVE * (running.size(0) - keep.numel()) >= running.size(0):
            rows = (keep[:, None] * num_outputs + torch.arange(num_outputs, device=device)).flatten()
            state = state.select(rows, keep)
            running, tokens = running[keep], tokens[rows]
            constraints.select(keep)
            outputs.select(keep)
    return outputs.hypotheses(options)
