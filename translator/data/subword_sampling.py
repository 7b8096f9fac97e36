"""Subword regularisation: the same words split differently in every epoch, reproducibly.

SentencePiece can sample too, but from a generator that cannot be reset within a thread, so its samples cannot be made a
function of (seed, epoch, example). Here both methods work on the ids of a sentence that is already tokenised; no text
has to be kept for it. No piece crosses the start of a word, so words are sampled one by one, and what is worked out for
a word is remembered.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from random import Random

from sentencepiece import SentencePieceProcessor

WORD_START = "▁"  # SentencePiece's mark for the space before a word
MAX_REMEMBERED_LENGTH = 24  # characters; longer words (and text without spaces) are rarely met again
MAX_REMEMBERED = 2**18  # entries of the memory, some 100 MB at most


class SubwordSampler:
    """Common to both methods: takes a sentence apart into words and leaves bytes and special ids alone."""

    def __init__(self, processor: SentencePieceProcessor, strength: float) -> None:
        num_pieces = processor.get_piece_size()
        self.strength = strength
        self.pieces: list[str] = [processor.id_to_piece(i) for i in range(num_pieces)]
        fixed = [processor.is_control(i) or processor.is_unknown(i) or processor.is_byte(i) for i in range(num_pieces)]
        self.ids = {piece: i for i, piece in enumerate(self.pieces) if not fixed[i]}
        self.scores: list[float] = [processor.get_score(i) for i in range(num_pieces)]
        self._is_fixed = fixed
        # A new word begins at these ids: they start one, or stand alone.
        self._begins = [fixed[i] or piece.startswith(WORD_START) for i, piece in enumerate(self.pieces)]

    def sample(self, ids: Sequence[int], random: Random) -> list[int]:
        """Another way to split the sentence with these ids."""
        sampled: list[int] = []
        begins = self._begins
        first = 0
        for position in range(1, len(ids) + 1):
            if position == len(ids) or begins[ids[position]] or self._is_fixed[ids[first]]:
                word = tuple(ids[first:position])
                sampled += word if self._is_fixed[word[0]] else self._sample_word(word, random)
                first = position
        return sampled

    def _sample_word(self, word: tuple[int, ...], random: Random) -> Sequence[int]:
        raise NotImplementedError

    def _text(self, word: tuple[int, ...]) -> str:
        return "".join(self.pieces[i] for i in word)


class BpeDropout(SubwordSampler):
    """BPE-dropout (Provilkov et al. 2020, Algorithm 1): each merge is passed over with probability `strength`.

    The candidates for a merge are looked at from the best to the worst until one is kept; after a merge all of them may
    be looked at again. The outcome depends only on which of these looks end in a drop, and few do, so outcomes are
    remembered by the numbers of the dropped looks.
    """

    def __init__(self, processor: SentencePieceProcessor, strength: float) -> None:
        super().__init__(processor, strength)
        self._log_keep = math.log1p(-strength)
        self._ranks = {piece: -self.scores[i] for piece, i in self.ids.items()}
        # For each word: the ids and the number of looks, by the numbers of the dropped looks.
        self._outcomes: dict[tuple[int, ...], dict[tuple[int, ...], tuple[list[int], int]]] = {}
        self._num_outcomes = 0

    def _sample_word(self, word: tuple[int, ...], random: Random) -> Sequence[int]:
        outcomes = self._outcomes.get(word)
        if outcomes is None:
            text = self._text(word)
            if len(text) > MAX_REMEMBERED_LENGTH:
                return self._merge(text, self._drops(random))[0]
            outcomes = self._outcomes[word] = {(): self._merge(text, iter(()))}
            self._num_outcomes += 1
        pieces, num_looks = outcomes[()]
        dropped: tuple[int, ...] = ()
        drop = self._gap(random) if num_looks else 0
        while drop < num_looks:
            dropped += (drop,)
            if dropped not in outcomes:
                outcomes[dropped] = self._merge(self._text(word), iter(dropped))
                self._num_outcomes += 1
            pieces, num_looks = outcomes[dropped]
            drop += 1 + self._gap(random)
        if self._num_outcomes > MAX_REMEMBERED:
            self._outcomes.clear()
            self._num_outcomes = 0
        return pieces

    def _gap(self, random: Random) -> int:
        """How many looks are kept before the next drop: geometrically distributed."""
        return int(math.log(1 - random.random()) / self._log_keep)

    def _drops(self, random: Random) -> Iterator[int]:
        """Numbers of the looks that end in a drop."""
        drop = -1
        while True:
            drop += 1 + self._gap(random)
            yield drop

    def _merge(self, text: str, drops: Iterator[int]) -> tuple[list[int], int]:
        """The ids after merging with these drops, and the number of candidates that were looked at."""
        pieces = list(text)
        num_looks = 0
        next_drop = next(drops, -1)
        while True:
            joined = (left + right for left, right in pairwise(pieces))
            candidates = sorted(
                (rank, position) for position, pair in enumerate(joined) if (rank := self._ranks.get(pair)) is not None
            )
            for _, position in candidates:
                num_looks += 1
                if num_looks - 1 != next_drop:
                    pieces[position : position + 2] = [pieces[position] + pieces[position + 1]]
                    break
                next_drop = next(drops, -1)
            else:
                return [self.ids[piece] for piece in pieces], num_looks


class UnigramSampling(SubwordSampler):
    """Unigram sampling (Kudo 2018, section 3.2): a split x has probability P(x)^strength / Σ P(x')^strength.

    Sampled over all splits of a word by forward filtering and backward sampling; the sums of the forward pass are
    remembered.
    """

    def __init__(self, processor: SentencePieceProcessor, strength: float) -> None:
        super().__init__(processor, strength)
        self._longest_piece = max(map(len, self.ids))
        self._lattices: dict[tuple[int, ...], list[tuple[list[float], list[tuple[int, int]]]]] = {}

    def _sample_word(self, word: tuple[int, ...], random: Random) -> Sequence[int]:
        lattice = self._lattices.get(word)
        if lattice is None:
            text = self._text(word)
            lattice = self._lattice(text)
            if len(text) <= MAX_REMEMBERED_LENGTH:
                if len(self._lattices) >= MAX_REMEMBERED // 8:
                    self._lattices.clear()
                self._lattices[word] = lattice
        sampled: list[int] = []
        end = len(lattice) - 1
        while end > 0:
            cumulative, arrivals = lattice[end]
            choice = 0 if len(arrivals) == 1 else bisect_right(cumulative, random.random() * cumulative[-1])
            end, piece = arrivals[min(choice, len(arrivals) - 1)]
            sampled.append(piece)
        return sampled[::-1]

    def _lattice(self, text: str) -> list[tuple[list[float], list[tuple[int, int]]]]:
        """For each end: the cumulative weights of the pieces that arrive there, and these as (start, id)."""
        log_sums = [0.0]  # of the weights of all splits up to here
        lattice: list[tuple[list[float], list[tuple[int, int]]]] = [([], [])]
        for end in range(1, len(text) + 1):
            starts = range(max(0, end - self._longest_piece), end)
            arrivals = [(start, self.ids[text[start:end]]) for start in starts if text[start:end] in self.ids]
            logs = [log_sums[start] + self.strength * self.scores[piece] for start, piece in arrivals]
            largest = max(logs, default=-math.inf)
            weights = [math.exp(log - largest) if log > -math.inf else 0.0 for log in logs]
            log_sums.append(largest + math.log(sum(weights)) if largest > -math.inf else -math.inf)
            lattice.append((list(accumulate(weights)), arrivals))
        return lattice
