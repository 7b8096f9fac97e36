"""BPE-dropout of many sentences at once: NumPy finds the words with a dropped merge, Python resegments only those."""

import math
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import chain, pairwise
from random import Random

import numpy as np
from sentencepiece import SentencePieceProcessor

from translator.data.subword_sampling import MAX_REMEMBERED, MAX_REMEMBERED_LENGTH, SubwordSampler

NUM_DRAWN = 4  # drops per word drawn with NumPy; more are rare
NO_MERGE = math.inf  # the rank of two pieces that cannot be merged


class BpeDropout(SubwordSampler):
    """BPE-dropout (Provilkov et al. 2020, Algorithm 1): each merge is dropped with probability `strength`.

    The candidates for a merge are looked at from best to worst until one is kept; after a merge, all of them may be
    looked at again. The outcome depends only on which of these looks end in a drop, and the number of looks between two
    drops is geometrically distributed. A word without a drop stays as it is, since all its looks are merges. The
    outcomes of other words are cached by the numbers of their dropped looks.
    """

    def __init__(self, processor: SentencePieceProcessor, strength: float) -> None:
        super().__init__(processor, strength)
        self._log_keep = math.log1p(-strength)
        self._ranks = {piece: -self.scores[i] for piece, i in self.ids.items()}
        self._is_fixed, self._begins = np.array(self.is_fixed), np.array(self.begins)
        self._num_characters = np.where(self._is_fixed, 1, [len(piece) for piece in self.pieces])
        # (word, numbers of the dropped looks) → (ids, number of looks)
        self._outcomes: dict[tuple[tuple[int, ...], tuple[int, ...]], tuple[list[int], int]] = {}

    def sample_rows(self, rows: Sequence[Sequence[int]], seeds: Sequence[str]) -> list[list[int]]:
        lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        ids = np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=int(lengths.sum()))
        starts, row_of_word = self._words(ids, lengths)
        ends = np.append(starts[1:], len(ids))[: len(starts)]
        num_looks = self._characters_of(ids, starts) - (ends - starts)  # if nothing is dropped
        keys = _word_keys(row_of_word, seeds)
        chosen = np.flatnonzero(self._gaps(keys, 0) < num_looks)
        drops = np.cumsum(np.stack([self._gaps(keys[chosen], i) + 1 for i in range(NUM_DRAWN)], axis=1), axis=1) - 1
        words = zip(*(array[chosen].tolist() for array in (starts, ends, num_looks, keys)), drops.tolist(), strict=True)

        old_ids = ids.tolist()
        new_ids: list[int] = []
        growth: list[int] = []
        done = 0
        for start, end, looks, key, numbers in words:
            split = self._split(tuple(old_ids[start:end]), looks, chain(numbers, self._later_drops(numbers[-1], key)))
            new_ids += old_ids[done:start]
            new_ids += split
            growth.append(len(split) - (end - start))
            done = end
        new_ids += old_ids[done:]
        np.add.at(lengths, row_of_word[chosen], growth)
        row_ends = np.cumsum(lengths)
        return [new_ids[a:b] for a, b in zip((row_ends - lengths).tolist(), row_ends.tolist(), strict=True)]

    def _words(self, ids: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where each word starts, and the number of its row."""
        row_ends = np.cumsum(lengths)
        is_start = self._begins[ids]
        is_start[1:] |= self._is_fixed[ids[:-1]]
        is_start[(row_ends - lengths)[lengths > 0]] = True
        starts = np.flatnonzero(is_start)
        return starts, np.searchsorted(row_ends, starts, side="right")

    def _characters_of(self, ids: np.ndarray, starts: np.ndarray) -> np.ndarray:
        return np.add.reduceat(self._num_characters[ids], starts) if len(ids) else np.zeros(0, dtype=np.int64)

    def _gaps(self, keys: np.ndarray, number: int) -> np.ndarray:
        """The number of looks without a drop before the next drop: geometrically distributed."""
        gaps = np.log(_uniform(keys, number)) / self._log_keep
        result: np.ndarray = np.minimum(gaps, 2**40).astype(np.int64)
        return result

    def _later_drops(self, drop: int, key: int) -> Iterator[int]:
        """The numbers of the dropped looks after the first NUM_DRAWN."""
        random = Random(key)
        while True:
            drop += 1 + int(math.log(1 - random.random()) / self._log_keep)
            yield drop

    def _split(self, word: tuple[int, ...], num_looks: int, drops: Iterator[int]) -> Sequence[int]:
        """The ids of the word with these looks dropped; `num_looks` is the number of looks without any drop."""
        pieces: Sequence[int] = word
        dropped: tuple[int, ...] = ()
        drop = next(drops)
        while drop < num_looks:
            dropped += (drop,)
            drop = next(drops)
            outcome = self._outcomes.get((word, dropped))
            if outcome is None:
                text = "".join(self.pieces[i] for i in word)
                outcome = self._merge(text, chain(dropped, (drop,), drops))
                if outcome[1] <= drop and len(text) <= MAX_REMEMBERED_LENGTH:  # the key has all its drops
                    self._remember((word, dropped), outcome)
                return outcome[0]
            pieces, num_looks = outcome
        return pieces

    def _remember(self, key: tuple[tuple[int, ...], tuple[int, ...]], outcome: tuple[list[int], int]) -> None:
        if len(self._outcomes) >= MAX_REMEMBERED:
            self._outcomes.clear()
        self._outcomes[key] = outcome

    def _merge(self, text: str, drops: Iterator[int]) -> tuple[list[int], int]:
        """The ids after merging with these drops, and the number of looks."""
        pieces = list(text)
        rank_of = self._ranks.get
        ranks = [rank_of(left + right, NO_MERGE) for left, right in pairwise(pieces)]  # of each piece with the next
        num_looks = 0
        next_drop = next(drops)
        while ranks and (best := min(ranks)) < NO_MERGE:
            position = ranks.index(best)
            if num_looks == next_drop:
                candidates = sorted((rank, place) for place, rank in enumerate(ranks) if rank < NO_MERGE)
                num_dropped = 0
                while num_looks == next_drop and num_dropped < len(candidates):
                    num_dropped += 1
                    num_looks += 1
                    next_drop = next(drops)
                if num_dropped == len(candidates):
                    break
                position = candidates[num_dropped][1]
            num_looks += 1
            pieces[position : position + 2] = [pieces[position] + pieces[position + 1]]
            del ranks[position]
            if position > 0:
                ranks[position - 1] = rank_of(pieces[position - 1] + pieces[position], NO_MERGE)
            if position < len(ranks):
                ranks[position] = rank_of(pieces[position] + pieces[position + 1], NO_MERGE)
        return [self.ids[piece] for piece in pieces], num_looks


def _word_keys(row_of_word: np.ndarray, seeds: Sequence[str]) -> np.ndarray:
    """A random key for each word, determined by the seed of its row and its position in the row."""
    digests = b"".join(blake2b(seed.encode(), digest_size=8).digest() for seed in seeds)
    row_keys = np.frombuffer(digests, dtype="<u8").astype(np.uint64)
    first_words = np.searchsorted(row_of_word, np.arange(len(seeds)))
    places = np.arange(len(row_of_word)) - first_words[row_of_word]
    return _mix(row_keys[row_of_word], places)


def _uniform(keys: np.ndarray, number: int) -> np.ndarray:
    """Uniform random numbers in (0, 1]: for each key, the one at index `number`."""
    return ((_mix(keys, np.array([number])) >> np.uint64(11)).astype(np.float64) + 1) * 2.0**-53


def _mix(keys: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """The outputs of SplitMix64 (Steele et al. 2014, figure 17), seeded with the keys, at these indices."""
    state = keys + (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    result: np.ndarray = state ^ (state >> np.uint64(31))
    return result
