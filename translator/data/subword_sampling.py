"""Subword regularisation: the same words are segmented differently in every epoch, reproducibly.

Unigram sampling is here, BPE-dropout in `translator.data.bpe_dropout`. SentencePiece can sample too, but its random
generator cannot be reset within a thread, so its samples cannot be a function of (seed, epoch, example). Here both
methods work on the ids of a tokenised sentence, so the text need not be kept. No piece crosses the start of a word, so
words are sampled one by one, and the results for each word are cached.
"""

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from random import Random

from sentencepiece import SentencePieceProcessor

WORD_START = "▁"  # SentencePiece's mark for the space before a word
MAX_REMEMBERED_LENGTH = 24  # characters; longer words (and text without spaces) rarely recur
MAX_REMEMBERED = 2**18  # entries in the cache, about 100 MB at most


class SubwordSampler(ABC):
    """What both methods need of the vocabulary. Bytes and special ids are never resegmented."""

    def __init__(self, processor: SentencePieceProcessor, strength: float) -> None:
        num_pieces = processor.get_piece_size()
        self.strength = strength
        self.pieces: list[str] = [processor.id_to_piece(i) for i in range(num_pieces)]
        fixed = [processor.is_control(i) or processor.is_unknown(i) or processor.is_byte(i) for i in range(num_pieces)]
        self.ids = {piece: i for i, piece in enumerate(self.pieces) if not fixed[i]}
        self.scores: list[float] = [processor.get_score(i) for i in range(num_pieces)]
        self.is_fixed = fixed
        # A word begins at these ids: pieces that start a word, and fixed ids. One also begins after each fixed id.
        self.begins = [fixed[i] or piece.startswith(WORD_START) for i, piece in enumerate(self.pieces)]

    @abstractmethod
    def sample_rows(self, rows: Sequence[Sequence[int]], seeds: Sequence[str]) -> list[list[int]]:
        """A new segmentation of each sentence with these ids, determined by its seed alone."""


class UnigramSampling(SubwordSampler):
    """Unigram sampling (Kudo 2018, section 3.2): segmentation x has probability P(x)^strength / Σ P(x')^strength.

    Sampled from all segmentations of a word by forward filtering and backward sampling; the sums of the forward pass
    are cached.
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
        """For each end position: the cumulative weights of the pieces that end there, and these as (start, id)."""
        log_sums = [0.0]  # of the weights of all segmentations up to here
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
