"""Sentences of a run's test or validation set, for figures that need a trained model."""

import numpy as np

from translator.atlas.material import TrainedRun
from translator.data.tokenizer import Tokenizer
from translator.errors import UserError
from translator.ids import EOS
from translator.report.forced_pass import LONGEST
from translator.report.material import HeldOut


def tokenizer_of(run: TrainedRun) -> Tokenizer:
    tokenizer = run.translator.tokenizer
    assert isinstance(tokenizer, Tokenizer)
    return tokenizer


def sample(run: TrainedRun, num_sentences: int, option: str) -> tuple[HeldOut, list[int]]:
    """At most so many sentences of the run's set, spread over it, without blank and overlong ones; and their lines.

    `option` names the run in messages.
    """
    whole = run.held_out
    if whole is None:
        raise UserError(f"{option} {run.folder}: its test and validation sets are gone, and this chapter needs them")
    pairs = encoded_pairs(run, whole)
    usable = [
        number
        for number, (source, target) in enumerate(pairs)
        if min(len(source), len(target)) > 2 and max(len(source), len(target)) <= LONGEST
    ]
    if not usable:
        raise UserError(f"{option} {run.folder}: {whole.name} has no sentences of at least two pieces")
    places = np.linspace(0, len(usable) - 1, min(num_sentences, len(usable))).round().astype(int)
    chosen = [usable[place] for place in places]
    few = HeldOut(
        whole.name,
        [whole.sources[number] for number in chosen],
        [whole.references[number] for number in chosen],
        whole.source_language,
        whole.target_language,
        None if whole.gold is None else [whole.gold[number] for number in chosen],
    )
    return few, [number + 1 for number in chosen]


def encoded_pairs(run: TrainedRun, held_out: HeldOut) -> list[tuple[list[int], list[int]]]:
    """Ids of sources and references, each with EOS."""
    normalize, tokenizer = run.translator.normalize or (lambda text: text), tokenizer_of(run)
    sources = tokenizer.encode_source([normalize(text) for text in held_out.sources])
    targets = tokenizer.encode_target([normalize(text) for text in held_out.references])
    return [(source, [*target, EOS]) for source, target in zip(sources, targets, strict=True)]
