"""What a report is made from: a run, the held-out set, the run's translations of it, and its training text."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from translator.config import Config
from translator.evaluation.alignment import GoldAlignment
from translator.evaluation.words import SplitWords, bleu_words
from translator.languages import is_written_without_spaces, sentence_length
from translator.runs.directory import RunDirectory

LONGEST_COUNTED = 200  # words; the last bar of a histogram of lengths has all longer sentences


@dataclass(frozen=True)
class HeldOut:
    """The sentences that the run is judged by."""

    name: str  # such as "test (data/demo/test)"
    sources: list[str]
    references: list[str]
    source_language: str
    target_language: str
    gold: list[GoldAlignment] | None = None

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def split_words(self) -> SplitWords:
        return bleu_words(self.target_language)


@dataclass
class TextStatistics:
    """Words and lengths of a parallel text, read once. Lengths are as `count_lengths` has them."""

    num_pairs: int = 0
    is_whole: bool = True  # False where reading stopped early
    source_words: Counter[str] = field(default_factory=Counter)
    target_words: Counter[str] = field(default_factory=Counter)
    source_lengths: Counter[int] = field(default_factory=Counter)
    target_lengths: Counter[int] = field(default_factory=Counter)


def count_lengths(texts: Iterable[str], language: str) -> Counter[int]:
    """How many sentences have each length: in words, or in characters if the language has no spaces."""
    in_characters = is_written_without_spaces(language)
    return Counter(min(sentence_length(text, in_characters=in_characters), LONGEST_COUNTED) for text in texts)


def text_statistics(
    pairs: Iterable[tuple[str, str]],
    source_language: str,
    target_language: str,
    *,
    at_most: int | None = None,
    is_late: Callable[[], bool] = lambda: False,
) -> TextStatistics:
    """Counts the words of both sides as BLEU would, and the lengths of the sentences."""
    found, split_source, split_target = TextStatistics(), bleu_words(source_language), bleu_words(target_language)
    iterator = iter(pairs)
    for source, target in islice(iterator, at_most):
        if found.num_pairs % 1_000 == 0 and is_late():
            found.is_whole = False
            return found
        found.num_pairs += 1
        found.source_words.update(split_source(source))
        found.target_words.update(split_target(target))
        found.source_lengths.update(count_lengths([source], source_language))
        found.target_lengths.update(count_lengths([target], target_language))
    found.is_whole = next(iterator, None) is None
    return found


@dataclass(frozen=True)
class ForcedSentence:
    """What the model says about a reference that it is led through piece by piece (teacher forcing)."""

    index: int  # of the sentence in the held-out set
    source_ids: list[int]  # S, EOS the last
    target_ids: list[int]  # T, EOS the last
    log_probs: np.ndarray  # (T): of the reference's pieces
    confidences: np.ndarray  # (T): the probability of the piece that the model finds most likely …
    predictions: np.ndarray  # (T): … and that piece
    attention: np.ndarray | None  # (L, H, T, S)


@dataclass(frozen=True)
class SearchSample:
    """A part of the held-out set, translated with the run's own search and once more greedily."""

    indices: list[int]
    beam_texts: list[str]
    greedy_texts: list[str]
    beam_scores: list[float]  # what the search compares: log-probability over length penalty
    greedy_scores: list[float]
    beam_seconds: float
    greedy_seconds: float
    beam_size: int
    num_in_parts: int = 0  # lines too long for one search, which are in none of the lists above


@dataclass
class RunMaterial:
    """Everything about one run that its sections are computed from; None where it is not known."""

    name: str
    run: RunDirectory
    config: Config
    hypotheses: list[str] | None = None
    training: TextStatistics | None = None
    forced: list[ForcedSentence] | None = None
    search: SearchSample | None = None
    direction: str | None = None  # such as en-de, where the run has both
    length_penalty: Callable[[int], float] = lambda length: 1.0  # by the number of pieces, EOS included
