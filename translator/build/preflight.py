"""Tries what a run will need later before its first update: memory, and a complete validation in miniature.

An option that only validation reads would otherwise fail hours after it was given.
"""

from collections.abc import Callable
from dataclasses import asdict, fields, replace
from typing import Any

import torch

from translator.build.data import PreparedData
from translator.build.validation import attention_images
from translator.config import Config, ModelConfig
from translator.decoding.line_translator import LineTranslator
from translator.errors import UserError, require
from translator.models.base import Seq2Seq
from translator.progress_display import show_progress
from translator.runs.model import build_model
from translator.runs.translation import translation_options
from translator.schema.decode import SearchOptions
from translator.schema.model import Positions, TransformerConfig
from translator.training.distributed import Ranks
from translator.training.memory import device_memory, format_bytes, is_out_of_memory, training_bytes
from translator.training.precision import Execution
from translator.training.random_state import untouched_random_state
from translator.training.validation import Validator

REHEARSED_PIECES = 8  # an untrained model does not know when to end
FLOAT_BYTES = 4
SCORE_COPIES = 2  # the logits, and at least one tensor of the same size computed from them


def check_memory(config: Config, source_vocab_size: int, target_vocab_size: int, device: torch.device) -> None:
    """Refuses a model whose weights, gradients and optimizer state cannot fit into the memory of the device."""
    with torch.device("meta"):  # counts parameters without allocating them
        model = build_model(_without_tables(config.model), source_vocab_size, target_vocab_size)
    num_parameters = sum(parameter.numel() for parameter in model.parameters())
    needed = training_bytes(num_parameters, with_average=config.trainer.ema_decay > 0)
    available = device_memory(device)
    if available is not None and needed > available:
        sizes = [name for name in _size_options(config.model) if getattr(config.model, name) > 1]
        largest = max(sizes, key=lambda name: getattr(config.model, name))
        raise UserError(
            f"model.{largest}={getattr(config.model, largest)}: a model of {num_parameters:,} parameters needs at least"
            f" {format_bytes(needed)} for weights, gradients and optimizer state, and {device} has"
            f" {format_bytes(available)}; make the model or tokenizer.vocab_size={config.tokenizer.vocab_size} smaller"
        )


def _without_tables(config: ModelConfig) -> ModelConfig:
    """The same parameters, without the position tables, which are computed on any device."""
    if isinstance(config, TransformerConfig) and config.positions in (Positions.sinusoidal, Positions.rotary):
        return replace(config, positions=Positions.none)
    return config


def _size_options(config: ModelConfig) -> list[str]:
    return [one.name for one in fields(config) if one.name.endswith("_size")]


def check_search_memory(config: Config, validator: Validator, vocab_size: int, device: torch.device) -> None:
    """Refuses a search whose hypotheses, each with a score for every piece, cannot fit into memory."""
    options, batches = config.decode, list(validator.batches)
    mean_length = sum(batch.num_source_tokens for batch in batches) / sum(map(len, batches))
    num_sentences = max(1, min(len(validator.sources), int(options.batch_tokens / mean_length)))
    name = "num_hypotheses" if options.sample else "beam_size"
    width = getattr(options, name)
    needed = num_sentences * width * vocab_size * FLOAT_BYTES * SCORE_COPIES
    available = device_memory(device)
    require(
        available is None or needed <= available,
        f"decode.{name}",
        width,
        f"{num_sentences} sentences at a time need about {format_bytes(needed)} for the scores of {vocab_size:,} pieces"
        f" and {device} has {format_bytes(available or 0)}; lower it or decode.batch_tokens={options.batch_tokens}",
    )


def rehearse_validation(
    config: Config, data: PreparedData, model: Seq2Seq, validator: Validator, execution: Execution
) -> None:
    """Validates the untrained model: the loss of one batch, then search, scores and picture of one sentence.

    Weights and random numbers are the same afterwards. Failures are reported under the options involved.
    """
    check_search_memory(config, validator, data.tokenizer.target_vocab_size, execution.device)
    options = {**translation_options(config, data.tokenizer), "options": _short_search(config.decode)}
    translator = LineTranslator(model, data.tokenizer, execution.device, **options)
    trainer = config.trainer
    source, reference = _shortest_pair(validator)
    rehearsal = replace(
        validator.limited(slice(1)),
        ranks=Ranks(),  # each process by itself
        sources=(source,),
        references=(reference,),
        loss=_naming(f"optim.loss={config.optim.loss}, trainer.batch_tokens={trainer.batch_tokens}", validator.loss),
        translate_lines=_naming(_changed_options(config.decode), translator.translate),
        score=_naming(f"data.target={config.data.target}", validator.score),
        draw_attention=_naming(
            f"trainer.num_samples={trainer.num_samples}", lambda lines: list(attention_images(translator, lines))
        ),
    )
    with untouched_random_state(execution.device), show_progress("trying out a validation", 1, "sentences"):
        rehearsal(model).score(trainer.best_metric)


def _short_search(options: SearchOptions) -> SearchOptions:
    return options.changed(max_length_ratio=0.0, max_length_extra=REHEARSED_PIECES)


def _shortest_pair(validator: Validator) -> tuple[str, str]:
    """The shortest pair with text on both sides."""
    pairs = zip(validator.sources, validator.references, strict=True)
    filled = [pair for pair in pairs if pair[0].strip() and pair[1].strip()]
    return min(filled, key=lambda pair: len(pair[0])) if filled else (validator.sources[0], validator.references[0])


def _changed_options(options: SearchOptions) -> str:
    """The options that are not at their defaults, one of which is to blame; the defaults work."""
    default = asdict(SearchOptions())
    changed = [f"decode.{name}={value}" for name, value in asdict(options).items() if value != default[name]]
    return ", ".join(changed) or "decode"


def _naming(options: str, function: Callable[..., Any] | None) -> Any:
    """Wraps the function so that failures are reported under the names of the options it depends on."""
    if function is None:
        return None

    def named(*arguments: Any, **keywords: Any) -> Any:
        try:
            return function(*arguments, **keywords)
        except UserError:
            raise
        except Exception as error:
            reason = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
            reason = "out of memory" if is_out_of_memory(error) else reason
            raise UserError(f"{options}: the first validation would fail ({reason}); change one of these") from error

    return named
