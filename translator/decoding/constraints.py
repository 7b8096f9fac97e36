"""What a hypothesis may be continued with: everything that stands between the model's logits and the search."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from translator.decoding.hypotheses import LOWEST_SCORE, length_limits
from translator.ids import BOS, EOS, PAD
from translator.kernels.choice import use_kernels
from translator.kernels.decoding import log_softmax_in_place
from translator.schema.decode import SearchOptions


def penalize_repetition(logits: Tensor, history: Tensor, penalty: float) -> Tensor:
    """Makes the pieces of the history less likely (Keskar et al. 2019, section 4.1), whatever their logits' sign."""
    seen = logits.gather(1, history)  # (R, t)
    return logits.scatter(1, history, torch.where(seen > 0, seen / penalty, seen * penalty))


def ban_repeated_ngrams(log_probs: Tensor, history: Tensor, size: int) -> None:
    """Forbids, in place, every piece that would repeat `size` pieces in a row of the history (R, t)."""
    num_windows = history.size(1) - size + 1
    if num_windows < 1:
        return
    following = history[:, size - 1 :]  # (R, windows): what came after each of the earlier contexts
    if size == 1:
        matches = torch.ones_like(following, dtype=torch.bool)
    else:
        contexts = history[:, :-1].unfold(1, size - 1, 1)  # (R, windows, size - 1)
        matches = (contexts == history[:, None, 1 - size :]).all(2)
    rows, positions = matches.nonzero(as_tuple=True)
    log_probs[rows, following[rows, positions]] = -torch.inf


def _log_softmax(logits: Tensor) -> Tensor:
    """In single precision at least; the logits may be overwritten."""
    if use_kernels(logits):
        return log_softmax_in_place(logits)
    return torch.log_softmax(logits, dim=-1, dtype=torch.promote_types(logits.dtype, torch.float32))


class ForbiddenSequences:
    """Sequences of pieces that are never completed: the last piece is banned once those before it have been written."""

    def __init__(self, sequences: Sequence[Sequence[int]], device: torch.device) -> None:
        by_length: dict[int, list[Sequence[int]]] = {}
        for sequence in sequences:
            by_length.setdefault(len(sequence), []).append(sequence)
        single = by_length.pop(1, [])
        self.single = torch.tensor([piece for (piece,) in single], dtype=torch.long, device=device)
        self.longer = [torch.tensor(group, dtype=torch.long, device=device) for group in by_length.values()]

    def ban(self, log_probs: Tensor, history: Tensor) -> None:
        log_probs[:, self.single] = -torch.inf
        for sequences in self.longer:  # (N, n)
            context_length = sequences.size(1) - 1
            if history.size(1) < context_length:
                continue
            tail = history[:, -context_length:]  # (R, n - 1)
            rows, which = (tail[:, None] == sequences[None, :, :-1]).all(2).nonzero(as_tuple=True)
            log_probs[rows, sequences[which, -1]] = -torch.inf


class Constraints:
    """The options' constraints for one batch. Rows come in groups of equal size, one group for each sentence."""

    def __init__(
        self,
        source_mask: Tensor,  # (B, S)
        options: SearchOptions,
        prefixes: Sequence[Sequence[int]] | None = None,
        forbidden: Sequence[Sequence[int]] = (),
        never: Sequence[int] = (),
    ) -> None:
        device = source_mask.device
        shortest, longest = length_limits(source_mask, options, prefixes)
        self.options = options
        self.longest = max(longest)
        self.min_length = torch.tensor(shortest, device=device)  # (A,)
        self.max_length = torch.tensor(longest, device=device)  # (A,)
        # On the host, so that no step waits for the device: the steps at which limits and prefixes can matter at all.
        self.last_minimum, self.first_maximum = max(shortest), min(longest)
        self.longest_prefix = max(map(len, prefixes)) if prefixes else 0
        self.prefixes = torch.full((len(longest), self.longest_prefix), PAD)
        for sentence, prefix in enumerate(prefixes or []):
            self.prefixes[sentence, : len(prefix)] = torch.tensor(prefix, dtype=torch.long)
        self.prefixes = self.prefixes.to(device)  # (A, P)
        self.forbidden = ForbiddenSequences(forbidden, device) if forbidden else None
        self.never = torch.tensor((PAD, BOS, *never), device=device)
        self.looks_back = options.repetition_penalty != 1 or options.no_repeat_ngram > 0 or bool(forbidden)

    def select(self, sentences: Tensor) -> None:
        """Only these sentences remain."""
        self.min_length = self.min_length[sentences]
        self.max_length = self.max_length[sentences]
        self.prefixes = self.prefixes[sentences]

    def at_limit(self, step: int) -> Tensor:
        """The sentences whose hypotheses have reached their maximum length and must end now: (A,) booleans."""
        return self.max_length <= step

    def log_probs(self, logits: Tensor, step: int, history: Callable[[], Tensor]) -> Tensor:
        """The log-probabilities (R, V) of piece number `step`; what is not allowed gets -inf.

        `history` returns the pieces (R, t) before it, and is called only if a constraint depends on them. The logits
        may be overwritten. The result is not normalised again, so a hypothesis keeps the log-probability that the model
        gives it; only the repetition penalty changes the distribution itself.
        """
        before = history() if self.looks_back else self.never.new_empty(0, 0)  # (R, t)
        if self.options.repetition_penalty != 1 and step > 0:
            logits = penalize_repetition(logits, before, self.options.repetition_penalty)
        log_probs = _log_softmax(logits)  # (R, V)
        forced = self._forced_choice(log_probs, step)
        end = log_probs[:, EOS].clone()  # (R,)
        log_probs.index_fill_(1, self.never, -torch.inf)
        if self.options.no_repeat_ngram > 0:
            ban_repeated_ngrams(log_probs, before, self.options.no_repeat_ngram)
        if self.forbidden is not None:
            self.forbidden.ban(log_probs, before)
            log_probs[:, EOS] = end  # a sentence may always end
        if step < self.last_minimum:
            group = log_probs.size(0) // self.min_length.size(0)
            log_probs[(self.min_length > step).repeat_interleave(group), EOS] = -torch.inf
        if self.options.no_repeat_ngram > 0 or self.forbidden is not None or step < self.last_minimum:
            # Where nothing else is allowed, the hypothesis ends, so that every sentence gets a translation.
            stuck = (log_probs.amax(1) == -torch.inf).nonzero().squeeze(1)
            log_probs[stuck, EOS] = end[stuck]
        if forced is not None:
            rows, tokens, values = forced
            log_probs[rows] = -torch.inf
            log_probs[rows, tokens] = values
        return log_probs

    def _forced_choice(self, log_probs: Tensor, step: int) -> tuple[Tensor, Tensor, Tensor] | None:
        """The rows that have no choice, the piece each one must take and its log-probability.

        A prefix is written out piece by piece; a hypothesis of maximum length must end.
        """
        if self.longest_prefix <= step < self.first_maximum:
            return None
        tokens = torch.full_like(self.max_length, PAD)  # PAD: free to choose
        if step < self.longest_prefix:
            tokens = self.prefixes[:, step]
        if step >= self.first_maximum:
            tokens = tokens.masked_fill(self.at_limit(step), EOS)
        tokens = tokens.repeat_interleave(log_probs.size(0) // tokens.size(0))  # (R,)
        rows = (tokens != PAD).nonzero().squeeze(1)
        tokens = tokens[rows]
        return rows, tokens, log_probs[rows, tokens].clamp_min(LOWEST_SCORE)
