"""How a run's model translates according to its configuration, in validation as well as afterwards."""

from functools import partial
from typing import Any

from translator.config import Config
from translator.data.normalization import normalize_text
from translator.decoding.minimum_risk import PairwiseUtility
from translator.languages import alignment_tokens, is_written_without_spaces


def translation_options(config: Config) -> dict[str, Any]:
    """The arguments of `LineTranslator` that the configuration decides."""
    return {
        "options": config.decode,
        "max_pieces": config.data.max_pieces,
        "normalize": normalize_text if config.data.cleaning.normalize else None,
        "joiner": "" if is_written_without_spaces(config.data.target) else " ",
        "split_words": alignment_tokens,
        "make_utility": partial(_make_utility, target_language=config.data.target),
    }


def _make_utility(name: str, target_language: str) -> PairwiseUtility:
    # Only now: nothing but minimum Bayes risk needs sacrebleu for translating, and it takes a while to load.
    from translator.evaluation.utilities import pairwise_utility

    return pairwise_utility(name, target_language)
