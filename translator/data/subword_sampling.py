"""Subword regularisation: the same words split differently in every epoch, reproducibly. BPE-dropout is next door.

SentencePiece can sample too, but from a generator that cannot be reset within a thread, so its samples cannot be made a
function of (seed, epoch, example). Here both methods work on the ids of a sentence that is already tokenised; no text
has to be kept for it. No piece crosses the start of a word, so words are sampled one by one, and what is worked out for
a word is remembered.
"""

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from random import Random

from sentencepiece import SentencePieceProcessor

WORD_START = "▁"  # SentencePiece's mark for the space before a word
MAX_REMEMBERED_LENGTH = 24  # characters; longer words (and text without spaces) are rarely met again
MAX_REMEMBERED = 2**18  # entries of the memory, some 100 MB at most


class SubwordSampler(ABC):
    """What both methods know of the vocabulary. Bytes and special ids are left alone."""

    def __init__(self, processor: SentencePieceProcessor, strength: float) -> None:
        num_pieces = processor.get_piece_size()
        self.strength = strength
        self.pieces: list[str] = [processor.id_to_piece(i) for i in range(num_pieces)]
        fixed = [processor.is_control(i) or processor.is_unknown(i) or processor.is_byte(i) for i in range(num_pieces)]
        self.ids = {piece: i for i, piece in enumerate(self.pieces) if not fixed[i]}
        self.scores: list[float] = [processor.get_score(i) for i in range(num_pieces)]
        self.is_fixed = fixed
        # A new word begins at these ids: they start one, or stand alone. It also begins after those that stand alone.
        self.begins = [fixed[i] or piece.startswith(WORD_START) for i, piece in enumerate(self.pieces)]

    @abstractmethod
    def sample_rows(self, rows: Sequence[Sequence[int]], seeds: Sequence[str]) -> list[list[int]]:
        """Another way to split each of the sentences with these ids, decided by its seed alone."""


class UnigramSampling(SubwordSampler):
    """Unigram sampling (Kudo 2018, section 3.2): a split x has probability P(x)^strength / Σ P(x')^strength.

    Sampled over all splits of a word by forward filtering and backward sampling; the sums of the forward pass are
    remembered.
    """

    def __init__(self, processor: SentencePieceProcessor, strength: float) -> None:
        super().__init__(processor, strength)
        self._longest_piece = max(map(len, self.ids))
        self._lattices: dict[tuple[int, ...], list[tuple[list[float], list[tuple[int, int]]]]] = {}

    def sample_rows(self, rows: Sequence[Sequence[int]], seeds: Sequence[str]) -> list[list[int]]:
        return [self._sample(row, Random(seed)) for row, seed in zip(rows, seeds, strict=True)]

    def _sample(self, ids: Sequence[int], random: Random) -> list[int]:
        sampled: list[int] = []
        first = 0
        for position in range(1, len(ids) + 1):
            if position == len(ids) or self.begins[ids[position]] or self.is_fixed[ids[first]]:
                word = tuple(ids[first:position])
                sampled += word if self.is_fixed[word[0]] else self._sample_word(word, random)
                first = position
        return sampled

    def _sample_word(self, word: tuple[int, ...], random: Random) -> Sequence[int]:
        lattice = self._lattices.get(word)
        if lattice is None:
            text = "".join(self.pieces[i] for i in word)
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
