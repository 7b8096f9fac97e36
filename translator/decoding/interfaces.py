"""What text-to-text translation needs of a tokenizer, and what it returns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from torch import Tensor

from translator.decoding.hypotheses import Hypothesis
from translator.schema.decode import SearchOptions


class SearchEngine(Protocol):
    """A search outside torch. It may leave sentences to ours, and must find the same hypotheses for the others."""

    @property
    def name(self) -> str: ...
    def accepts(self, options: SearchOptions) -> bool:
        """Whether it can search with these options; raises an OptionError if nothing else is to do so."""
        ...

    def find(
        self,
        batches: Sequence[Sequence[Sequence[int]]],
        options: SearchOptions,
        *,
        need_scores: bool,
        at_most: int,
        before_batch: Callable[[Callable[[], bool]], None],
    ) -> list[list[list[Hypothesis] | None]]:
        """The hypotheses of each source of each batch; None where they are left to our own search.

        Scores may be NaN if they are not needed. At most so many batches are searched at a time, and `before_batch` is
        called each time, with a function that tells whether the work has been abandoned.
        """
        ...


class TextTokenizer(Protocol):
    def encode_source(self, texts: list[str]) -> list[list[int]]: ...
    def encode_target(self, texts: list[str]) -> list[list[int]]: ...
    def decode_target(self, ids: Sequence[Sequence[int]]) -> list[str]: ...
    def source_pieces(self, ids: Sequence[int]) -> list[str]: ...
    def target_pieces(self, ids: Sequence[int]) -> list[str]: ...
    @property
    def target_vocab_size(self) -> int: ...


class AttentionMap(NamedTuple):
    source_pieces: list[str]  # S of them, EOS the last
    target_pieces: list[str]  # T of them, EOS the last
    weights: Tensor  # (T, S)


@dataclass(frozen=True)
class Output:
    """One translation of a line."""

    text: str
    score: float  # log-probability; with minimum Bayes risk the expected utility, from 0 to 100
    normalized_score: float  # what the search compared
    num_pieces: int
    alignment: list[tuple[int, int]] | None = None  # (source word, target word)
    attention: list[AttentionMap] | None = None  # one for each part that the line was translated in
    model_score: float | None = None  # the normalised score by the model, where something else decided on the rank


@dataclass(frozen=True)
class Translation:
    """All translations found for a line, best first: at least one."""

    outputs: list[Output]
    num_source_pieces: int = 0
    num_parts: int = 1  # more than one if the line was too long for the model, or was split into its sentences
    left_by_engine: bool = field(default=False, compare=False)  # whether torch had to search in place of an engine
    terms_left_out: tuple[str, ...] = ()  # required terms that there was no room for


BLANK = Translation([Output("", 0.0, 0.0, 0)])
