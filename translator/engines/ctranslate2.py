"""Search with CTranslate2. Its translations are those of our own search, up to the rounding of float32.

Both searches keep the same hypotheses and stop by the same rule when scores are divided by the length. CTranslate2
only has one minimum and maximum length per batch, and other rules there, so it first searches with the loosest limits
of a batch, and a minimum of at most one piece. Where a limit matters:
- Greedy search: an output that is too long is cut, and one that is too short is searched for again with the minimum.
- A beam may not contain the empty hypothesis, by default. CTranslate2 then divides the probability of the first piece
  by that of not ending at once, 1 - p. All hypotheses of a sentence gain the same, so the beam does not change, but
  scores divided by a smaller length gain more. Where that might decide, p is computed and the gain taken away.
- A beam with a hypothesis that is too long is searched again together with others that have the same limits.
- If the best hypotheses are then still not certain, the sentence is left to torch. So are beams that break a larger
  minimum, and sentences with a forced prefix.
"""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import ctranslate2
import torch

from translator.decoding.hypotheses import Hypothesis, hypothesis, length_limit, length_penalty
from translator.decoding.length_batches import batches_by_length
from translator.decoding.workers import for_each, num_workers
from translator.engines.cache import converted
from translator.engines.choice import check_options
from translator.errors import OptionError
from translator.export.ctranslate2_model import MAX_POSITIONS, convert, supported
from translator.ids import BOS, PAD
from translator.runs.directory import RunDirectory
from translator.runs.loading import LoadedRun
from translator.schema.decode import SearchOptions

SCORED_TOKENS = 2_048  # of outputs whose log-probabilities are computed at a time, for the whole vocabulary
TIE = 1e-5  # difference of normalised scores that rounding can make
CPU = torch.device("cpu")
Source = Sequence[int]  # ids that end with EOS
Found = list[Hypothesis] | None  # None where our own search has to find them


class Limits(NamedTuple):
    """The lengths that outputs may have, in pieces without EOS."""

    shortest: int
    longest: int


class AtLimit(NamedTuple):
    """A sentence with a hypothesis as long as its longest output or longer, whose beam has to be searched again."""

    place: tuple[int, int]  # its batch, and its index there
    source: Source
    limits: Limits


class Result(NamedTuple):
    """What CTranslate2 has found for a sentence, best first."""

    rows: list[list[str]]  # pieces without EOS
    scores: list[float]  # divided by the length penalty; with greedy search, log-probabilities, or none


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
        num_threads = torch.get_num_threads()  # as many batches at a time as torch would search in
        self.translator = ctranslate2.Translator(
            str(self._folder.path), compute_type=compute_type, inter_threads=num_threads, intra_threads=1
        )
        torch.set_num_threads(num_threads)  # CTranslate2 has set the number of OpenMP's threads, which torch shares

    def accepts(self, options: SearchOptions) -> bool:
        """Whether it can search with these options; where no other engine will do, they are refused by name."""
        try:
            check_options(options)
        except OptionError:
            if self.is_required:
                raise
            return False
        return True

    def find(
        self,
        batches: Sequence[Sequence[Source]],
        options: SearchOptions,
        *,
        need_scores: bool = True,
        at_most: int | None = None,
        before_batch: Callable[[Callable[[], bool]], None] = lambda abandoned: None,
    ) -> list[list[Found]]:
        """The hypotheses of each source, which ends with EOS; None where our own search has to find them.

        Greedy search is faster without scores, which are NaN then. At most so many batches are searched at a time.
        """
        found: list[list[Found]] = [[None] * len(batch) for batch in batches]
        at_limit: list[AtLimit] = []  # gathered from all batches: a few sentences take nearly as long as many

        def first(number: int, abandoned: Callable[[], bool]) -> None:
            before_batch(abandoned)
            found[number] = self._find(number, batches[number], options, need_scores, at_limit)

        def again(chosen: list[AtLimit], abandoned: Callable[[], bool]) -> None:
            before_batch(abandoned)
            for one, result in zip(chosen, self._within_limits(chosen, options), strict=True):
                batch, index = one.place
                found[batch][index] = result

        for_each(first, range(len(batches)), CPU, at_most)
        budget = max((len(batch) * max(map(len, batch)) for batch in batches if batch), default=0)
        at_limit.sort(key=lambda one: one.place)  # batches are the same whichever thread was faster
        for_each(again, _with_common_limits(at_limit, budget, num_workers(CPU)), CPU, at_most)
        return found

    def _find(
        self,
        number: int,
        sources: Sequence[Source],
        options: SearchOptions,
        need_scores: bool,
        at_limit: list[AtLimit],
    ) -> list[Found]:
        """Searches a batch, and adds the sentences that have to be searched again."""
        limits = [Limits(*length_limit(len(source) - 1, options)) for source in sources]
        found: list[Found] = [None] * len(sources)
        fitting = [
            index
            for index, (source, own) in enumerate(zip(sources, limits, strict=True))
            if max(own.longest + 1, len(source)) <= MAX_POSITIONS
        ]
        if not fitting:
            return found
        chosen, their_limits = [sources[index] for index in fitting], [limits[index] for index in fitting]
        if options.beam_size == 1:
            hypotheses = self._greedy(chosen, their_limits, options, need_scores)
        else:
            hypotheses, too_long = self._beam(chosen, their_limits, options, need_scores)
            at_limit += [AtLimit((number, fitting[one]), chosen[one], their_limits[one]) for one in too_long]
        for index, own_hypotheses in zip(fitting, hypotheses, strict=True):
            found[index] = own_hypotheses
        return found

    def _beam(
        self, sources: Sequence[Source], limits: Sequence[Limits], options: SearchOptions, need_scores: bool
    ) -> tuple[list[Found], list[int]]:
        """The hypotheses, and which sentences have one that is too long."""
        minimum = min(1, *(own.shortest for own in limits))
        found: list[Found] = [None] * len(sources)
        # One more than the limit, to see which beams end before they reach it.
        results = self._decode(sources, _longest(limits) + 1, options, minimum)
        too_long, gained = [], []
        for index, (result, own) in enumerate(zip(results, limits, strict=True)):
            lengths = [len(row) for row in result.rows]
            # With a larger minimum, EOS leaves its probability to the other pieces at every step.
            if min(lengths) < own.shortest or not self._is_allowed(result):
                continue
            if max(lengths) >= own.longest:
                if own.shortest == minimum:
                    too_long.append(index)
            elif minimum == 0:
                found[index] = self._hypotheses(result, options)
            elif not need_scores and options.num_hypotheses == 1 and lengths[0] == max(lengths):
                found[index] = self._only(result.rows[0], None, options)  # whatever they gained, the others gained more
            else:
                gained.append(index)
        for index, gain in zip(gained, self._gains([sources[index] for index in gained]), strict=True):
            found[index] = self._without_gain(results[index], gain, options)
        return found, too_long

    def _gains(self, sources: Sequence[Source]) -> list[float]:
        """What log-probabilities gain if the first piece may not be EOS, whose probability is p: -log(1 - p)."""
        ends = [min(log_probability, 0.0) for (log_probability,) in self._score(sources, [[] for _ in sources])]
        return [-math.log1p(-math.exp(end)) if end < 0 else math.inf for end in ends]

    def _without_gain(self, result: Result, gain: float, options: SearchOptions) -> Found:
        if not math.isfinite(gain):
            return None
        hypotheses = self._hypotheses(result, options, gain)
        # One beyond the beam may have been dropped whose rank was worse only with the gain: as long as the longest, it
        # gained least. Then it at most ties with ours.
        penalty = float(length_penalty(max(map(len, result.rows)) + 1.0, options))
        dropped = result.scores[-1] - gain / penalty
        return hypotheses if hypotheses[-1].normalized_score >= dropped - TIE else None

    def _decode(
        self,
        sources: Sequence[Source],
        longest: int,
        options: SearchOptions,
        shortest: int = 0,
        need_scores: bool = True,
    ) -> list[Result]:
        """CTranslate2's own search. Where an output may not end yet, the other pieces share the probability of EOS."""
        results = self.translator.translate_batch(
            self._pieces_of(sources),
            beam_size=options.beam_size,
            num_hypotheses=options.beam_size,  # all that have finished: the longest tells when the search ended
            length_penalty=0 if options.beam_size == 1 else options.alpha,
            max_input_length=0,
            min_decoding_length=shortest,
            max_decoding_length=longest,
            return_scores=need_scores,
            max_batch_size=0,
        )
        return [Result(result.hypotheses, result.scores) for result in results]

    def _pieces_of(self, sources: Sequence[Source]) -> list[list[str]]:
        """Without EOS, which CTranslate2 adds."""
        return [list(map(self.source_pieces.__getitem__, source[:-1])) for source in sources]

    def _is_allowed(self, result: Result) -> bool:
        """Whether it has none of the pieces that are never written."""
        return all(self.never.isdisjoint(row) for row in result.rows)

    def _hypotheses(self, result: Result, options: SearchOptions, gain: float = 0.0) -> list[Hypothesis]:
        """The best of a beam; `gain` is what CTranslate2 has added to every log-probability."""
        found = []
        for pieces, normalized in zip(*result, strict=True):
            penalty = float(length_penalty(len(pieces) + 1.0, options))
            score = normalized * penalty - gain
            found.append((pieces, score, score / penalty))
        found.sort(key=lambda one: -one[2])
        return [hypothesis(self._ids(pieces), *scores) for pieces, *scores in found[: options.num_hypotheses]]

    def _ids(self, pieces: Sequence[str]) -> list[int]:
        return list(map(self.target_ids.__getitem__, pieces))

    def _within_limits(self, chosen: Sequence[AtLimit], options: SearchOptions) -> list[Found]:
        """Searches again within limits that all have in common; every hypothesis is then scored as a whole."""
        sources, limits = [one.source for one in chosen], chosen[0].limits
        results = self._decode(sources, limits.longest, options, limits.shortest)
        owners = [index for index, result in enumerate(results) for _ in result.rows]
        rows = [row for result in results for row in result.rows]
        scores: list[list[list[float]]] = [[] for _ in sources]
        for index, of_row in zip(owners, self._score([sources[index] for index in owners], rows), strict=True):
            scores[index].append(of_row)
        found = zip(results, scores, strict=True)
        return [self._certain(result, of_rows, limits, options) for result, of_rows in found]

    def _certain(
        self, result: Result, piece_scores: Sequence[Sequence[float]], limits: Limits, options: SearchOptions
    ) -> Found:
        """The best hypotheses by their true scores, unless one that CTranslate2 has dropped may belong to them.

        At the limit it takes hypotheses as they are, while ours have to end. Its scores may contain a gain.
        """
        if not self._is_allowed(result) or any(len(row) < limits.shortest for row in result.rows):
            return None
        found = []
        for row, of_pieces in zip(result.rows, piece_scores, strict=True):
            score = sum(of_pieces)
            found.append(hypothesis(self._ids(row), score, score / float(length_penalty(len(row) + 1.0, options))))
        found.sort(key=lambda one: -one.normalized_score)
        del found[options.num_hypotheses :]
        last = found[-1].normalized_score
        penalty = float(length_penalty(limits.longest + 1.0, options))
        # In place of a hypothesis that ends at the limit, ours goes on with one that ranks below all the others there.
        unfinished = [
            sum(of_pieces[:-1])
            for row, of_pieces in zip(result.rows, piece_scores, strict=True)
            if len(row) == limits.longest
        ]
        if unfinished and last < min(unfinished) / penalty:
            return None
        # Hypotheses beyond the beam ranked below the last one. Ending at the limit adds nothing to them but length.
        bound = min(result.scores) * float(length_penalty(float(limits.longest), options)) / penalty
        is_complete = len(result.rows) < options.beam_size
        return found if is_complete or last >= bound else None

    def _greedy(
        self, sources: Sequence[Source], limits: Sequence[Limits], options: SearchOptions, need_scores: bool
    ) -> list[Found]:
        """Each piece is the likeliest one that is allowed, so a limit changes an output only from there on."""
        results = self._decode(sources, _longest(limits), options, need_scores=need_scores)
        rows = [result.rows[0] for result in results]
        too_short = [index for index, own in enumerate(limits) if len(rows[index]) < own.shortest]
        for shortest in {limits[index].shortest for index in too_short}:
            group = [index for index in too_short if limits[index].shortest == shortest]
            longest = _longest([limits[index] for index in group])
            again = self._decode([sources[index] for index in group], longest, options, shortest, need_scores)
            for index, result in zip(group, again, strict=True):
                rows[index] = result.rows[0]
        too_long = [index for index, own in enumerate(limits) if len(rows[index]) >= own.longest]
        for index in too_long:
            rows[index] = rows[index][: limits[index].longest]
        if not need_scores:
            return [self._only(row, None, options) for row in rows]
        scores = [result.scores[0] for result in results]
        changed = sorted({*too_short, *too_long})
        scored = self._score([sources[index] for index in changed], [rows[index] for index in changed])
        for index, piece_scores in zip(changed, scored, strict=True):
            scores[index] = sum(piece_scores)
        return [self._only(row, score, options) for row, score in zip(rows, scores, strict=True)]

    def _only(self, row: list[str], score: float | None, options: SearchOptions) -> Found:
        """The only hypothesis of greedy search."""
        if not self.never.isdisjoint(row):
            return None
        if score is None:
            return [Hypothesis(self._ids(row), math.nan, math.nan)]
        return [hypothesis(self._ids(row), score, score / float(length_penalty(len(row) + 1.0, options)))]

    def _score(self, sources: Sequence[Source], rows: Sequence[list[str]]) -> list[list[float]]:
        """The log-probabilities of the pieces of given outputs, and of their EOS."""
        if not rows:
            return []
        scored = self.translator.score_batch(
            self._pieces_of(sources),
            list(rows),
            max_input_length=0,
            max_batch_size=max(1, SCORED_TOKENS // (max(map(len, rows)) + 1)),
        )
        return [one.log_probs for one in scored]


def _with_common_limits(waiting: Sequence[AtLimit], budget: int, at_least: int) -> list[list[AtLimit]]:
    """Batches with the same limits, and at least so many for each if possible."""
    groups: dict[Limits, list[AtLimit]] = {}
    for one in waiting:
        groups.setdefault(one.limits, []).append(one)
    batches = []
    for group in groups.values():
        lengths = [len(one.source) for one in group]
        share = min(budget, -(-len(group) // at_least) * max(lengths))  # tokens
        batches += [[group[index] for index in batch] for batch in batches_by_length(lengths, share)]
    return batches


def _longest(limits: Sequence[Limits]) -> int:
    return max(own.longest for own in limits)
