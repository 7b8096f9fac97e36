"""How a run's model translates according to its configuration, in validation as well as afterwards."""

from collections.abc import Callable
from functools import partial
from typing import Any

from translator.config import Config
from translator.data.normalization import normalize_text
from translator.data.tokenizer import Tokenizer
from translator.decoding.minimum_risk import PairwiseUtility
from translator.languages import alignment_tokens, is_written_without_spaces
from translator.runs.directions import Direction, directions_of


def translation_options(config: Config, tokenizer: Tokenizer, direction: Direction | None = None) -> dict[str, Any]:
    """The arguments of `LineTranslator` that the configuration decides; by default for the run's first direction."""
    direction = direction or directions_of(config, tokenizer)[0]
    return {
        "source_tags": direction.tags,
        "never": tuple(tokenizer.tag_ids.values()),
        "reverse_target": config.data.reverse_target,
        "options": config.decode,
        "max_pieces": config.data.max_pieces,
        "normalize": normalization(config),
        "joiner": "" if is_written_without_spaces(direction.target) else " ",
        "split_words": alignment_tokens,
        "make_utility": partial(_make_utility, target_language=direction.target),
    }


def normalization(config: Config) -> Callable[[str], str] | None:
    """How the run normalises a line of text, if it does."""
    return normalize_text if config.data.cleaning.normalize else None


def _make_utility(name: str, target_language: str) -> PairwiseUtility:
    # Only now: nothing but minimum Bayes risk needs sacrebleu for translating, and it takes a while to load.
    from translator.evaluation.utilities import pairwise_utility

    return pairwise_utility(name, target_language)
