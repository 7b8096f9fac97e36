"""Search with CTranslate2. Its translations are those of our own search, up to the rounding of float32.

Both searches keep the same hypotheses and stop by the same rule when scores are divided by the length. CTranslate2
only has one minimum and maximum length per batch, and other rules there, so it first searches without these limits.
Where a limit matters:
- Greedy search: an output that is too long is cut, and one that is too short is searched for again with the minimum;
  `score_batch` then gives the log-probabilities.
- A beam with an empty hypothesis, which is not allowed by default, is searched again without it.
- All other beams are left to torch, and so are sentences with a forced prefix.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import ctranslate2
import torch

from translator.decoding.hypotheses import Hypothesis, hypothesis, length_limit, length_penalty
from translator.engines.cache import converted
from translator.engines.choice import check_options
from translator.errors import OptionError
from translator.export.ctranslate2_model import MAX_POSITIONS, convert, supported
from translator.ids import BOS, PAD
from translator.runs.directory import RunDirectory
from translator.runs.loading import LoadedRun
from translator.schema.decode import SearchOptions

SCORED_TOKENS = 2_048  # of outputs whose log-probabilities are computed at a time, for the whole vocabulary
Source = Sequence[int]  # ids that end with EOS
Limits = tuple[int, int]  # the shortest and the longest output allowed, in pieces without EOS
Found = list[Hypothesis] | None  # None where our own search has to find them


class Result(NamedTuple):
    """What CTranslate2 has found for a sentence, best first."""

    rows: list[list[str]]  # pieces without EOS
    scores: list[float]  # divided by the length penalty; with greedy search, log-probabilities


class CTranslate2Engine:
    """Finds the hypotheses of batches of sentences; `is_required` if the user wants this engine and no other."""

    def __init__(self, folder: Path, run: LoadedRun, *, int8: bool = False, is_required: bool = True) -> None:
        self.is_required = is_required
        compute_type = "int8" if int8 else "float32"
        self.name = f"ctranslate2 {compute_type}"
        tokenizer = run.tokenizer
        self.source_pieces = tokenizer.source_pieces(range(tokenizer.source_vocab_size))
        self.target_pieces = tokenizer.target_pieces(range(tokenizer.target_vocab_size))
        self.target_ids = {piece: number for number, piece in enumerate(self.target_pieces)}
        self.never = {self.target_pieces[piece] for piece in (PAD, BOS, *tokenizer.tag_ids.values())}
        supported(run.model)
        self._folder = converted(  # kept, since a temporary folder is removed together with it
            RunDirectory(folder),
            run,
            compute_type,
            lambda path: convert(run.model, path, self.source_pieces, self.target_pieces, compute_type),
        )
        num_workers = torch.get_num_threads()  # as many batches at a time as torch would search in
        self.translator = ctranslate2.Translator(
            str(self._folder.path), compute_type=compute_type, inter_threads=num_workers, intra_threads=1
        )
        torch.set_num_threads(num_workers)  # CTranslate2 has set the number of OpenMP's threads, which torch shares

    def accepts(self, options: SearchOptions) -> bool:
        """Whether it can search with these options; where no other engine will do, they are refused by name."""
        try:
            check_options(options)
        except OptionError:
            if self.is_required:
                raise
            return False
        return True

    def find(self, sources: Sequence[Source], options: SearchOptions) -> list[Found]:
        """The hypotheses of each source, which ends with EOS; None where our own search has to find them."""
        limits = [length_limit(len(source) - 1, options) for source in sources]
        fitting = [
            index
            for index, (source, (_, longest)) in enumerate(zip(sources, limits, strict=True))
            if max(longest + 1, len(source)) <= MAX_POSITIONS
        ]
        found: list[Found] = [None] * len(sources)
        if fitting:
            searched = self._search(
                [sources[index] for index in fitting], [limits[index] for index in fitting], options
            )
            for index, hypotheses in zip(fitting, searched, strict=True):
                found[index] = hypotheses
        return found

    def _search(self, sources: Sequence[Source], limits: Sequence[Limits], options: SearchOptions) -> list[Found]:
        """Like `find`, for sources that fit the table of positions and the length limits of their outputs."""
        if options.beam_size == 1:
            return self._greedy(sources, limits, options)
        found: list[Found] = []
        end_scores: dict[int, float] = {}  # of the empty hypotheses, which are not allowed
        for index, (result, own) in enumerate(zip(self._decode(sources, limits, options), limits, strict=True)):
            is_within = self._is_within(result, own)
            found.append(self._hypotheses(result, options) if is_within else None)
            if not is_within and own[0] == 1 and self._is_within(result, (0, own[1])):
                end_scores[index] = result.scores[result.rows.index([])]
        if end_scores:
            chosen = [sources[index] for index in end_scores]
            their_limits = [limits[index] for index in end_scores]
            again = self._without_empty(chosen, their_limits, options, list(end_scores.values()))
            for index, hypotheses in zip(end_scores, again, strict=True):
                found[index] = hypotheses
        return found

    def _decode(
        self, sources: Sequence[Source], limits: Sequence[Limits], options: SearchOptions, shortest: int = 0
    ) -> list[Result]:
        """CTranslate2's own search. Where an output may not end yet, the other pieces share the probability of EOS."""
        results = self.translator.translate_batch(
            self._pieces_of(sources),
            beam_size=options.beam_size,
            num_hypotheses=options.beam_size,  # all that have finished: the longest tells when the search ended
            length_penalty=0 if options.beam_size == 1 else options.alpha,
            max_input_length=0,
            min_decoding_length=shortest,
            max_decoding_length=max(longest for _, longest in limits),
            return_scores=True,
            max_batch_size=0,
        )
        return [Result(result.hypotheses, result.scores) for result in results]

    def _pieces_of(self, sources: Sequence[Source]) -> list[list[str]]:
        """Without EOS, which CTranslate2 adds."""
        return [[self.source_pieces[piece] for piece in source[:-1]] for source in sources]

    def _is_within(self, result: Result, limits: Limits) -> bool:
        """Whether no limit had a say in the search, nor a piece that is never written."""
        shortest, longest = limits
        return all(shortest <= len(row) < longest and self.never.isdisjoint(row) for row in result.rows)

    def _hypotheses(self, result: Result, options: SearchOptions, surplus: float = 0.0) -> list[Hypothesis]:
        """The best of a beam; `surplus` is what CTranslate2 has added to every log-probability."""
        found = []
        for pieces, normalized in zip(*result, strict=True):
            penalty = float(length_penalty(len(pieces) + 1.0, options))
            score = normalized * penalty - surplus
            found.append((pieces, score, score / penalty))
        found.sort(key=lambda one: -one[2])
        return [
            hypothesis(self._ids(pieces), score, normalized)
            for pieces, score, normalized in found[: options.num_hypotheses]
        ]

    def _ids(self, pieces: Sequence[str]) -> list[int]:
        return [self.target_ids[piece] for piece in pieces]

    def _without_empty(
        self, sources: Sequence[Source], limits: Sequence[Limits], options: SearchOptions, end_scores: Sequence[float]
    ) -> list[Found]:
        """Searches again where one of the hypotheses was empty, with the log-probability in `end_scores`.

        CTranslate2 then divides the first piece's probability by that of not ending at once, 1 - p. All hypotheses of
        a sentence gain the same, so the beam does not change, but those divided by a smaller length gain more.
        """
        found: list[Found] = []
        results = self._decode(sources, limits, options, shortest=1)
        for result, own, end_score in zip(results, limits, end_scores, strict=True):
            surplus = -math.log1p(-math.exp(end_score)) if end_score < 0 else math.inf
            is_usable = self._is_within(result, own) and math.isfinite(surplus)
            hypotheses = self._hypotheses(result, options, surplus) if is_usable else []
            # CTranslate2 may have dropped a hypothesis beyond the beam whose rank was worse only with the surplus.
            is_certain = bool(hypotheses) and hypotheses[-1].normalized_score >= result.scores[-1]
            found.append(hypotheses if is_certain else None)
        return found

    def _greedy(self, sources: Sequence[Source], limits: Sequence[Limits], options: SearchOptions) -> list[Found]:
        """Each piece is the likeliest one that is allowed, so a limit changes an output only from there on."""
        results = self._decode(sources, limits, options)
        rows, scores = [result.rows[0] for result in results], [result.scores[0] for result in results]
        too_short = [index for index, (shortest, _) in enumerate(limits) if len(rows[index]) < shortest]
        for shortest in {limits[index][0] for index in too_short}:
            group = [index for index in too_short if limits[index][0] == shortest]
            again = self._decode(
                [sources[index] for index in group], [limits[index] for index in group], options, shortest
            )
            for index, result in zip(group, again, strict=True):
                rows[index] = result.rows[0]
        too_long = [index for index, (_, longest) in enumerate(limits) if len(rows[index]) >= longest]
        for index in too_long:
            rows[index] = rows[index][: limits[index][1]]
        changed = sorted({*too_short, *too_long})
        log_probabilities = self._log_probabilities(
            [sources[index] for index in changed], [rows[index] for index in changed]
        )
        for index, log_probability in zip(changed, log_probabilities, strict=True):
            scores[index] = log_probability
        found: list[Found] = []
        for row, score in zip(rows, scores, strict=True):
            normalized = score / float(length_penalty(len(row) + 1.0, options))
            found.append([hypothesis(self._ids(row), score, normalized)] if self.never.isdisjoint(row) else None)
        return found

    def _log_probabilities(self, sources: Sequence[Source], rows: Sequence[list[str]]) -> list[float]:
        """Of given outputs, with their EOS."""
        if not rows:
            return []
        scored = self.translator.score_batch(
            self._pieces_of(sources),
            list(rows),
            max_input_length=0,
            max_batch_size=max(1, SCORED_TOKENS // (max(map(len, rows)) + 1)),
        )
        return [sum(one.log_probs) for one in scored]
