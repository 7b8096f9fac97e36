"""Validation from a configuration: loss, translations, their scores and pictures of attention."""

import gc
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from translator.build.data import PreparedData, tokenized
from translator.config import Config
from translator.data.examples import ReadTable, Table
from translator.data.loader import ordered_batches
from translator.decoding.line_translator import LineTranslator
from translator.errors import Interrupted
from translator.evaluation.diagnostics import diagnose
from translator.evaluation.metrics import score_corpus
from translator.models.base import Seq2Seq
from translator.plots.attention import attention_figure, figure_pixels
from translator.plots.fonts import warn_of_missing
from translator.progress_display import Watched, show_progress
from translator.runs.directions import Direction, directions_of
from translator.runs.translation import translation_options
from translator.schema.data import Directions
from translator.training.distributed import Ranks
from translator.training.objectives import build_loss
from translator.training.precision import Execution
from translator.training.two_way import AnyValidator, DirectionValidators
from translator.training.validation import Validator
from translator.training.validation_result import TextScores

# Pieces of a line that count in the loss. Training leaves longer lines out, but validation keeps every line; a whole
# chapter on one line would need more memory than any machine has. Translations are of the whole line, in parts.
LONGEST_SCORED = 2_048


def build_validator(
    config: Config,
    data: PreparedData,
    model: Seq2Seq,
    execution: Execution,
    ranks: Ranks,
    split: str = "valid",
    interrupted: Callable[[], bool] = lambda: False,
) -> AnyValidator | None:
    """Loss and scores on the validation or test set, in all directions; None if there is no such set.

    Raises `Interrupted` when `interrupted` returns True.
    """
    if getattr(data.raw, split) is None:
        return None
    build = partial(_build_one, config, data, model, execution, ranks, split, interrupted)
    validators = {str(direction): build(direction) for direction in directions_of(config, data.tokenizer)}
    return DirectionValidators(validators) if len(validators) > 1 else next(iter(validators.values()))


def _build_one(
    config: Config,
    data: PreparedData,
    model: Seq2Seq,
    execution: Execution,
    ranks: Ranks,
    split: str,
    interrupted: Callable[[], bool],
    direction: Direction,
) -> Validator:
    raw, cleaned, reading = getattr(data.raw, split), getattr(data.cleaned, split), direction.reading
    table: Table = tokenized(config, cleaned, data.tokenizer, max_pieces=0)
    table = table if reading.is_plain else ReadTable(table, reading)
    options = translation_options(config, data.tokenizer, direction)
    translator = LineTranslator(model, data.tokenizer, execution.device, **options, interrupted=interrupted)
    sources, references = zip(*(pair[::-1] if reading.is_reversed else pair for pair in raw), strict=True)
    longest = max(LONGEST_SCORED, config.data.max_pieces)
    batches = ordered_batches(table, config.trainer.batch_tokens, longest, reverse_target=config.data.reverse_target)
    stage = {"valid": "validation"}.get(split, split)
    if config.data.directions is Directions.both:
        stage = f"{stage} {direction}"
    return Validator(
        loss=build_loss(config.optim),
        batches=Watched(batches, f"{stage}: loss", len(batches), "batches"),
        execution=execution,
        ranks=ranks,
        sources=sources,
        references=references,
        translate_lines=_showing_progress(translator, stage),
        score=_scorer(direction.target),
        draw_attention=_drawing_attention(translator, stage),
        num_samples=config.trainer.num_samples if split == "valid" else 0,  # nobody is shown samples of the test set
        interrupted=interrupted,
    )


def _showing_progress(translator: LineTranslator, stage: str) -> Callable[[list[str]], list[str]]:
    def translate(lines: list[str]) -> list[str]:
        with show_progress(f"{stage}: translating", len(lines), "sentences") as advance:
            return translator.translate(lines, advance=advance)

    return translate


def _drawing_attention(translator: LineTranslator, stage: str) -> Callable[[list[str]], list[np.ndarray]]:
    def draw(lines: list[str]) -> list[np.ndarray]:
        return list(Watched(attention_images(translator, lines), f"{stage}: attention", len(lines), "sentences"))

    return draw


def _scorer(target_language: str) -> Callable[[list[str], list[str], list[str]], TextScores]:
    def score(hypotheses: list[str], references: list[str], sources: list[str]) -> TextScores:
        scores = score_corpus(hypotheses, references, target_language)
        found = diagnose(sources, hypotheses)
        rates = {"empty": found.empty, "copied": found.copied, "repeating": found.repeating}
        return TextScores(scores.values, scores.signatures, rates)

    return score


def attention_images(translator: LineTranslator, lines: list[str]) -> Iterator[np.ndarray]:
    for translation in translator.translate_fully(lines, need_attention=True):
        if translator.interrupted():
            raise Interrupted
        for part in (translation.outputs[0].attention or [])[:1]:
            warn_of_missing("".join([*part.source_pieces, *part.target_pieces]))
            yield figure_pixels(attention_figure(part.source_pieces, part.target_pieces, part.weights.numpy()))
    gc.collect()  # figures contain reference cycles; uncollected, they took 85 MB after a few validations
