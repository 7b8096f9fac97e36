"""How a run's configuration wants its model to translate, in validation as well as afterwards."""

from typing import Any

from translator.config import Config
from translator.data.normalization import normalize_text
from translator.decoding.options import SearchOptions
from translator.languages import alignment_tokens, is_written_without_spaces
from translator.schema.training import DecodeConfig


def translation_options(config: Config) -> dict[str, Any]:
    """The arguments of `LineTranslator` that the configuration decides."""
    return {
        "options": search_options(config.decode),
        "batch_tokens": config.decode.batch_tokens,
        "max_pieces": config.data.max_pieces,
        "normalize": normalize_text if config.data.cleaning.normalize else None,
        "joiner": "" if is_written_without_spaces(config.data.target) else " ",
        "split_words": alignment_tokens,
    }


def search_options(config: DecodeConfig) -> SearchOptions:
    """The part of the configuration that the search itself needs."""
    return SearchOptions(
        beam_size=config.beam_size,
        length_penalty=config.length_penalty.value,
        alpha=config.alpha,
        max_length_ratio=config.max_length_ratio,
        max_length_extra=config.max_length_extra,
        min_length=config.min_length,
        min_length_ratio=config.min_length_ratio,
        no_repeat_ngram=config.no_repeat_ngram,
        repetition_penalty=config.repetition_penalty,
    )
