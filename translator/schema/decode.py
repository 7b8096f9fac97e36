"""Options of the group `decode`: how translations are searched for.

This is their only definition. The configuration, the flags of the commands and the arguments of `Translator.load` are
made from these fields.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, ClassVar, Self

from translator.schema.options import LARGEST_SEED, MOST_TOKENS, Options, option

MOST_HYPOTHESES = 100_000
MOST_CANDIDATES = 1_000  # each is compared with each
LONGEST_OUTPUT = 100_000  # pieces
LARGEST_RATIO = 1_000
TUNED = ("beam_size", "stop", "alpha")  # what `translator.tune` chooses


class LengthPenalty(StrEnum):
    none = "none"
    average = "average"
    gnmt = "gnmt"


class Stop(StrEnum):
    first = "first"  # once as many hypotheses as the beam is wide have ended
    exact = "exact"  # once no running hypothesis can overtake those that have ended


class Utility(StrEnum):
    chrf = "chrf"
    bleu = "bleu"


@dataclass
class SearchOptions(Options):
    group: ClassVar[str] = "decode"

    beam_size: int = option(
        5, "beam size; 1 is greedy search", minimum=1, maximum=MOST_HYPOTHESES, flag="--beam", metavar="K"
    )
    num_hypotheses: int = option(
        1,
        "number of translations of each line: the best ones, or as many samples",
        minimum=1,
        maximum=MOST_HYPOTHESES,
        flag="--nbest",
    )
    length_penalty: LengthPenalty = option(
        LengthPenalty.average,
        "what log-probabilities are divided by to compare hypotheses: nothing, the length, or GNMT's penalty",
    )
    alpha: float = option(1.0, "exponent of the length penalty", minimum=0, maximum=10)
    stop: Stop = option(
        Stop.exact,
        "with a length penalty, a beam ends once K hypotheses have ended, or once no other can overtake them",
    )
    max_length_ratio: float = option(
        2.0, "longest output, in pieces for each piece of the source", minimum=0, maximum=LARGEST_RATIO, metavar="R"
    )
    max_length_extra: int = option(
        20, "number of pieces by which an output may exceed that ratio", minimum=0, maximum=LONGEST_OUTPUT
    )
    min_length: int = option(1, "shortest output, in pieces; 0 allows an empty one", minimum=0, maximum=LONGEST_OUTPUT)
    min_length_ratio: float = option(
        0.0,
        "shortest output, in pieces for each piece of the source; the larger of the two minima counts",
        minimum=0,
        maximum=LARGEST_RATIO,
        metavar="R",
    )
    no_repeat_ngram: int = option(0, "never write the same N pieces in a row twice; 0 = off", minimum=0)
    repetition_penalty: float = option(
        1.0, "above 1, pieces already written become less likely", minimum=0.01, maximum=1_000, metavar="P"
    )
    forbid: list[str] = option([], "never write this word; can be repeated", metavar="WORD")
    terms: str = option(
        "", "terminology: a file with a source term, a tab and its required translation on each line", metavar="FILE"
    )
    sample: bool = option(False, "draw translations at random from the model's distribution instead of searching")
    temperature: float = option(
        1.0, "sampling temperature; below 1, likely pieces become likelier", minimum=0.01, maximum=100, metavar="T"
    )
    top_k: int = option(0, "sample from the K likeliest pieces only; 0 = all", minimum=0, metavar="K")
    top_p: float = option(
        1.0,
        "sample from the fewest pieces that hold this share of the probability (Holtzman et al. 2020)",
        minimum=1e-6,  # a smaller share could be zero in float32
        maximum=1,
        metavar="P",
    )
    epsilon: float = option(
        0.0, "sample only pieces with at least this probability (Hewitt et al. 2022); 0 = all", minimum=0, below=1
    )
    mbr: int = option(
        0,
        "choose by minimum Bayes risk among N candidates: samples with `sample`, else the best of the beam; 0 = off",
        minimum=0,
        maximum=MOST_CANDIDATES,
    )
    mbr_utility: Utility = option(Utility.chrf, "how similar candidates are for `mbr`: sentence-level chrF or BLEU")
    seed: int = option(1, "random seed for sampling", minimum=0, maximum=LARGEST_SEED)
    batch_tokens: int = option(4_096, "number of source tokens translated together", minimum=1, maximum=MOST_TOKENS)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(
            self.mbr == 0 or self.num_hypotheses <= self.mbr,
            "num_hypotheses",
            f"of {self.mbr} candidates no more than that can be chosen; raise mbr",
        )
        self.require(
            self.sample or self.mbr > 0 or self.num_hypotheses <= self.beam_size,
            "num_hypotheses",
            f"a beam of {self.beam_size} cannot give more hypotheses than that; widen the beam",
        )
        if self.terms:
            self.require(not self.sample, "terms", "sampling cannot enforce terms; leave out `sample`")
            self.require(self.mbr == 0, "terms", "minimum Bayes risk cannot enforce terms; leave out `mbr`")
            self.require(self.beam_size > 1, "terms", "greedy search cannot enforce terms; use a beam, such as 5")
        self.require(all(word.strip() for word in self.forbid), "forbid", "a forbidden word cannot be blank")
        # Bytes of the command line that are not UTF-8 arrive as lone surrogates.
        self.require(all(map(_is_unicode, self.forbid)), "forbid", "a forbidden word must be valid UTF-8")

    def changed(self, **changes: Any) -> Self:
        """A copy with some options changed. A longer n-best list widens the beam, unless its size is given too."""
        wanted = changes.get("num_hypotheses")
        is_beam = not changes.get("sample", self.sample) and not changes.get("mbr", self.mbr)
        if isinstance(wanted, int) and "beam_size" not in changes and is_beam:
            changes["beam_size"] = max(self.beam_size, min(wanted, MOST_HYPOTHESES))
        return super().changed(**changes)

    def for_candidates(self, *, all_of_beam: bool = False) -> Self:
        """The options of the search itself: with `mbr` it has to find all candidates, for which the beam is widened.

        With `all_of_beam` it returns all hypotheses of the beam, for reranking.
        """
        if self.mbr == 0:
            return replace(self, num_hypotheses=self.beam_size) if all_of_beam and not self.sample else self
        return replace(self, num_hypotheses=self.mbr, beam_size=max(self.beam_size, 1 if self.sample else self.mbr))


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)
