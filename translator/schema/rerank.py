"""Options for reranking: other runs that score the translations found by a search."""

import math
from dataclasses import dataclass

from translator.schema.options import Options, option

NONE = "none"


@dataclass
class RerankOptions(Options):
    rerank: list[str] = option(
        [],
        "let this run, of the same or the opposite direction or from right to left (data.reverse_target), score all "
        "translations of the beam as well, "
        "with this weight (default: 1); can be repeated; `none` ignores the weights that translator.tune has stored",
        metavar="RUN[:WEIGHT]",
    )
    rerank_length: float = option(
        0.0, "weight of the length of a translation, in pieces, with --rerank", minimum=-1_000, maximum=1_000
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(all(name.strip() for name in self.rerank), "rerank", "give the directory of a training run")
        finite = all(math.isfinite(weight) for _, weight in self.judges())
        self.require(finite, "rerank", "the weight of a run must be a finite number")
        self.require(
            NONE not in self.rerank or self.rerank == [NONE], "rerank", f"`{NONE}` cannot be given together with runs"
        )
        self.require(
            self.rerank_length == 0 or bool(self.judges()),
            "rerank_length",
            "is only used for reranking; add --rerank RUN",
        )

    def judges(self) -> list[tuple[str, float]]:
        """The runs and their weights."""
        return [split_weight(text) for text in self.rerank if text != NONE]


def split_weight(text: str) -> tuple[str, float]:
    """Splits RUN:WEIGHT; a colon that is not followed by a number belongs to the name."""
    name, colon, weight = text.rpartition(":")
    try:
        return (name, float(weight)) if colon and name else (text, 1.0)
    except ValueError:
        return text, 1.0
