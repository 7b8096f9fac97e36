"""Beam search in which every output contains its required terms (Post and Vilar 2018, dynamic beam allocation).

Letters: A sentences still running, W width of the widest beam, V vocabulary.

Hypotheses are sorted into banks by the number of pieces of their terms that they contain, and the slots of the beam are
divided among the banks, since hypotheses with a term that the model would not have chosen always score lower than those
without. A beam is as wide as the options say, and wider by one hypothesis for each piece of its terms. In each
step the candidates are (section 3.1 of the paper) the best continuations of all hypotheses, the best ones of each, and
the pieces that begin or continue a missing term.

A hypothesis ends only when all its terms are there. One that would have no room for them within the maximum length is
dropped, so that in the end only hypotheses that write their terms remain. Outputs with terms are compared by their
log-probability, without a length penalty: a term that the model finds unlikely lowers the mean of all pieces so much
that padding would raise it. With `stop=first`, a hypothesis counts only if it ended among the best of all banks: those
that wrote their terms at the first opportunity also end early, and are poor. Without terms this is the search of
`translator.decoding.beam`.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, zip_longest
from typing import NamedTuple

import torch
from torch import Tensor

from translator.decoding.beam import FinishedPool, expand
from translator.decoding.constraints import Constraints
from translator.decoding.hypotheses import LOWEST_SCORE, Hypothesis, hypothesis, is_normalized, length_penalty
from translator.decoding.term_progress import RequiredTerms
from translator.ids import BOS, EOS, PAD
from translator.models.base import Seq2Seq
from translator.schema.decode import SearchOptions, Stop


class Candidate(NamedTuple):
    value: float  # the log-probability of the hypothesis with one more piece
    parent: int
    piece: int
    bank: int
    text: bytes


class _Sentence:
    """The hypotheses of a sentence, best first, apart from their scores and states."""

    def __init__(
        self, place: int, required: RequiredTerms, beam_size: int, prefix_length: int, max_length: int
    ) -> None:
        self.place = place  # in the batch
        self.required = required
        self.width = beam_size + required.size
        self.prefix_length, self.max_length = prefix_length, max_length
        self.texts = [b""]
        self.num_finished = 0  # among the best of all banks
        self.has_output = False

    def penalty(self, length: int, options: SearchOptions) -> float:
        """What log-probabilities are divided by to be compared."""
        return 1.0 if self.required.terms else float(length_penalty(float(length), options))

    def is_free(self, step: int) -> bool:
        """Whether the next piece is neither part of a prefix nor the EOS forced by the maximum length."""
        return self.prefix_length <= step < self.max_length

    def candidates(self, values: dict[tuple[int, int], float], step: int) -> list[Candidate]:
        """The continuations (hypothesis, piece) that leave room for the missing terms, best first."""
        found = []
        for (parent, piece), value in values.items():
            if value == -torch.inf:
                continue
            text = self.texts[parent] + self.required.pieces.texts[piece]
            progress = self.required.progress(text)
            has_room = piece == EOS or progress.num_needed <= self.max_length - step - 1
            if has_room or step + 1 < self.prefix_length:
                found.append(Candidate(value, parent, piece, progress.num_done, text))
        return sorted(found, key=lambda candidate: -candidate.value)


def allocate(candidates: Sequence[Candidate], num_places: int) -> list[Candidate]:
    """The candidates that get a slot: the best of each bank in turn. Input and output are sorted, best first."""
    if len(candidates) <= num_places:
        return list(candidates)
    banks: dict[int, list[int]] = {}
    for rank, candidate in enumerate(candidates):
        banks.setdefault(candidate.bank, []).append(rank)
    in_turn = chain.from_iterable(zip_longest(*(banks[bank] for bank in sorted(banks, reverse=True))))
    ranks = [rank for rank in in_turn if rank is not None]
    return [candidates[rank] for rank in sorted(ranks[:num_places])]


class _Beams:
    """The beams of the sentences that are still running."""

    def __init__(self, sentences: list[_Sentence], options: SearchOptions, longest: int, like: Tensor) -> None:
        self.sentences = sentences
        self.options = options
        self.width = max(sentence.width for sentence in sentences)
        self.scores = like.new_zeros(len(sentences), 1)  # (A, k); k is 1 before the first step
        self.history = torch.empty(len(sentences), 1, 0, dtype=torch.long, device=like.device)  # (A, k, t)
        self.pool = FinishedPool(len(sentences), options.beam_size, longest, like=like)

    def candidates(self, log_probs: Tensor, plain: Tensor, step: int) -> list[list[Candidate]]:
        """The continuations to choose from; `plain` are the log-probabilities (A · k, V) before any constraints."""
        num_rows = self.scores.size(1)
        progress = [
            (row * num_rows + place, sentence.required.progress(text))
            for row, sentence in enumerate(self.sentences)
            if sentence.is_free(step)
            for place, text in enumerate(sentence.texts)
        ]
        log_probs[[row for row, known in progress if known.num_needed], EOS] = -torch.inf
        found: list[dict[tuple[int, int], float]] = []
        best = (tensor.tolist() for tensor in expand(self.scores, log_probs, 2 * self.width))  # (A, 2W)
        for sentence, values, parents, pieces in zip(self.sentences, *best, strict=True):
            places = list(zip(parents, pieces, strict=True))[: 2 * sentence.width]
            found.append(dict(zip(places, values, strict=False)))
        wanted = [(row, piece) for row, known in progress for piece in known.following]
        for row, piece, value in [*self._best_of_each(log_probs), *self._of_terms(log_probs, plain, wanted)]:
            known = found[row // num_rows]
            place = (row % num_rows, piece)
            if place[0] < len(self.sentences[row // num_rows].texts) and known.get(place, -torch.inf) == -torch.inf:
                known[place] = value
        both = zip(self.sentences, found, strict=True)
        return [sentence.candidates(values, step) for sentence, values in both]

    def _best_of_each(self, log_probs: Tensor) -> Iterator[tuple[int, int, float]]:
        possible = log_probs.nan_to_num(nan=-torch.inf, neginf=-torch.inf)
        values, pieces = possible.topk(2)  # (A · k, 2), since one of them may be the end
        values = values + self.scores.flatten()[:, None]
        for row, two in enumerate(zip(pieces.tolist(), values.tolist(), strict=True)):
            yield from ((row, piece, value) for piece, value in zip(*two, strict=True))

    def _of_terms(
        self, log_probs: Tensor, plain: Tensor, wanted: list[tuple[int, int]]
    ) -> Iterator[tuple[int, int, float]]:
        """The values of pieces of terms, which may be written even where another constraint forbids them."""
        places = torch.tensor(wanted, dtype=torch.long, device=log_probs.device).view(-1, 2).unbind(1)  # (N,) each
        values = torch.where(log_probs[places] > -torch.inf, log_probs[places], plain[places])
        values = values.nan_to_num(LOWEST_SCORE).clamp_min(LOWEST_SCORE) + self.scores.flatten()[places[0]]
        return ((row, piece, value) for (row, piece), value in zip(wanted, values.tolist(), strict=True))

    def end_some(self, row: int, candidates: list[Candidate], step: int) -> list[Candidate]:
        """Adds the candidates of a sentence that end to the pool; returns those that continue."""
        sentence = self.sentences[row]
        ended = [one for one in allocate(candidates, sentence.width) if one.piece == EOS]
        if not candidates and not sentence.has_output:  # the model gives no finite score at all
            ended = [Candidate(-torch.inf, 0, EOS, 0, b"")]
        if ended:
            sentence.has_output = True
            place = torch.tensor([sentence.place], device=self.history.device)
            values = self.scores.new_tensor([[one.value for one in ended]])
            texts = self.history[row, [one.parent for one in ended]][None]  # (1, ended, t)
            accepted = torch.ones_like(values, dtype=torch.bool)
            self.pool.add(place, accepted, values, sentence.penalty(step + 1, self.options), texts)
            sentence.num_finished += sum(one.piece == EOS for one in candidates[: self.options.beam_size])
        return allocate([one for one in candidates if one.piece != EOS], sentence.width)

    def is_done(self, sentence: _Sentence, going_on: list[Candidate]) -> bool:
        options = self.options
        if not going_on:
            return True
        best_possible = going_on[0].value / sentence.penalty(sentence.max_length + 1, options)
        if best_possible <= float(self.pool.normalized[sentence.place, options.num_hypotheses - 1]):
            return True
        # Without a penalty, `first` means the same as `exact`; hypotheses without their terms would never stop.
        stops_at_first = options.stop is Stop.first and (is_normalized(options) or bool(sentence.required.terms))
        return stops_at_first and sentence.num_finished >= options.beam_size

    def advance(self, keep: list[int], going_on: list[list[Candidate]]) -> tuple[Tensor, Tensor]:
        """Only these sentences remain, with these candidates; returns the rows (A' · W) and the new pieces."""
        self.sentences = [self.sentences[row] for row in keep]
        for sentence, found in zip(self.sentences, going_on, strict=True):
            sentence.texts = [candidate.text for candidate in found]
        values, parents, pieces = (
            [[getattr(one, name) for one in found] + [nothing] * (self.width - len(found)) for found in going_on]
            for name, nothing in (("value", -torch.inf), ("parent", 0), ("piece", PAD))
        )
        device = self.scores.device
        firsts = torch.tensor(keep, device=device)[:, None] * self.scores.size(1)
        rows = (torch.tensor(parents, device=device) + firsts).flatten()
        tokens = torch.tensor(pieces, device=device).flatten()
        written = torch.cat([self.history.flatten(0, 1)[rows], tokens[:, None]], 1)
        self.history = written.unflatten(0, (len(keep), self.width))
        self.scores = self.scores.new_tensor(values)
        return rows, tokens


def _normalized(found: Hypothesis, options: SearchOptions) -> Hypothesis:
    """With the normalised score that the hypothesis would have without terms."""
    return hypothesis(found.ids, found.score, found.score / float(length_penalty(len(found.ids) + 1.0, options)))


@torch.inference_mode()
def term_search(
    model: Seq2Seq,
    source: Tensor,  # (B, S)
    source_mask: Tensor,  # (B, S)
    options: SearchOptions,
    required: Sequence[RequiredTerms],  # of each sentence; there must be room for them
    *,
    prefixes: Sequence[Sequence[int]] | None = None,
    forbidden: Sequence[Sequence[int]] = (),
    never: Sequence[int] = (),
    before_step: Callable[[], None] = lambda: None,
) -> list[list[Hypothesis]]:
    """The best hypotheses of every sentence that contain its terms, best first: at least one.

    The output for a sentence depends on that sentence alone, not on the rest of the batch.
    """
    constraints = Constraints(source_mask, options, prefixes, forbidden, never)
    limits = zip(constraints.max_length.tolist(), map(len, prefixes or [[]] * len(required)), strict=True)
    sentences = [
        _Sentence(place, terms, options.beam_size, prefix_length, max_length)
        for place, (terms, (max_length, prefix_length)) in enumerate(zip(required, limits, strict=True))
    ]
    state = model.start(model.encode(source, source_mask))
    tokens = torch.full((len(sentences),), BOS, device=source.device)  # (A · k)
    beams: _Beams | None = None
    for step in range(constraints.longest + 1):
        before_step()
        logits, state, _ = model.step(tokens, state)
        plain = torch.log_softmax(logits, -1, dtype=torch.promote_types(logits.dtype, torch.float32))  # (A · k, V)
        if beams is None:
            beams = _Beams(sentences, options, constraints.longest, like=plain)
        log_probs = constraints.log_probs(logits, step, partial(beams.history.flatten, 0, 1))  # (A · k, V)
        found = beams.candidates(log_probs, plain, step)
        going_on = [beams.end_some(row, candidates, step) for row, candidates in enumerate(found)]
        both = zip(beams.sentences, going_on, strict=True)
        keep = [row for row, (sentence, candidates) in enumerate(both) if not beams.is_done(sentence, candidates)]
        if not keep:
            break
        remaining = None
        if len(keep) < len(going_on):
            remaining = torch.tensor(keep, device=source.device)
            constraints.select(remaining)
        rows, tokens = beams.advance(keep, [going_on[row] for row in keep])
        state = state.select(rows, remaining)
    assert beams is not None
    return [
        [_normalized(one, options) for one in hypotheses] if terms.terms else hypotheses
        for terms, hypotheses in zip(required, beams.pool.hypotheses(options.num_hypotheses), strict=True)
    ]
