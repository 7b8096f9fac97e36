"""Options of `translator.augment`: which of the synthetic pairs are kept."""

from dataclasses import dataclass
from enum import StrEnum

from translator.schema.decode import Utility
from translator.schema.options import Options, option


class Kind(StrEnum):
    back = "back"  # the run translates the target language of the model to be trained into its source language
    forward = "forward"  # more text in the source language, translated by a model of the same direction
    distill = "distill"  # the source side of a training corpus, translated by a teacher


@dataclass
class AugmentOptions(Options):
    keep_share: float = option(
        1.0,
        "keep this share of the pairs, those with the best normalised log-probabilities",
        above=0,
        maximum=1,
        metavar="P",
    )
    min_score: float | None = option(
        None, "drop translations with a normalised log-probability below this, such as -1.5", metavar="X"
    )
    max_ratio: float | None = option(
        None,
        "drop pairs with one side of more than 20 characters that is over R times as long as the other; default: the "
        "run's data.cleaning.max_ratio; 0 = no limit",
        minimum=0,
        metavar="R",
    )
    closest: Utility = option(
        Utility.bleu, "with --reference, keep the translation that is closest to it by sentence-level BLEU or chrF"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        is_ratio = self.max_ratio is None or self.max_ratio == 0 or self.max_ratio >= 1
        self.require(is_ratio, "max_ratio", "must be at least 1, or 0 for no limit")
