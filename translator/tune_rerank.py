"""What `python -m translator.tune RUN --rerank OTHER` does: finds weights for the runs that rerank."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from translator.command import say
from translator.config import Config, load_file
from translator.decoding.hypotheses import Hypothesis
from translator.decoding.interfaces import Translation
from translator.decoding.rerank import Features, Judge, Reranker
from translator.errors import UserError
from translator.evaluation.line_search import Tuned, best_weights, candidate_statistics
from translator.files.atomic import write_json
from translator.files.explain import explain_write_errors
from translator.runs.directory import RunDirectory
from translator.runs.reranking import as_stored, load_judge, require_candidates
from translator.schema.rerank import split_weight
from translator.tune_run import load_translator, locked_run, read_record, validation_set


def run(options: argparse.Namespace, directory: RunDirectory) -> None:
    for name in ("beam", "alpha", "stop"):
        if getattr(options, name) is not None:
            raise UserError(f"--{name}: reranking uses the run's own beam; tune that first, then add --rerank")
    for name in options.rerank:
        run, weight = split_weight(name)
        if run != name and not Path(name).exists():
            raise UserError(f"--rerank {name}: the weight is what is tuned; leave :{weight:g} out and give {run} alone")
    with locked_run(directory):
        config = load_file(directory.config)
        require_candidates(config.decode)
        before, tuned, judges = _tune(config, directory, options)
        for name, judge in zip(options.rerank, judges, strict=True):
            say(f"weight {judge.weight:8.4f}  {name}{' (from its translations to their sources)' * judge.is_reverse}")
        say(f"weight {tuned.weights[-1]:8.4f}  length")
        print(f"{options.metric} {before:.2f} before reranking, {tuned.score:.2f} after")
        if tuned.score <= before:
            print("Reranking does not help here; nothing was written.")
        elif not options.dry_run:
            scores = {"metric": options.metric, "before": round(before, 4), "after": round(tuned.score, 4)}
            stored = [
                asdict(as_stored(name, judge, directory.path))
                for name, judge in zip(options.rerank, judges, strict=True)
                if judge.weight > 0  # the others would be asked for nothing
            ]
            record = {"judges": stored, "length": float(tuned.weights[-1]), **scores}
            with explain_write_errors(directory.path):
                write_json(directory.tuning, {**read_record(directory, config), "rerank": record})


def _tune(config: Config, directory: RunDirectory, options: argparse.Namespace) -> tuple[float, Tuned, list[Judge]]:
    """The metric on the validation set without reranking and with the best weights, and the judges with theirs."""
    sources, references = validation_set(config, directory)
    translator = load_translator(directory, options)
    languages = (translator.direction.source, translator.direction.target)
    if translator.direction.reading.is_reversed:
        raise UserError(
            f"--to {options.to}: weights for reranking are those of the run's own direction, into "
            f"{config.data.target}; leave --to out"
        )
    judged = [directory.path]
    judges = [load_judge(languages, name, 1.0, translator.device, judged) for name in options.rerank]
    translator.options = translator.options.changed(num_hypotheses=translator.options.beam_size)
    found = translator.translate_fully(sources)
    features = _features(Reranker(judges), sources, found)
    texts = [[output.text for output in one.outputs] for one in found]
    statistics, score = candidate_statistics(texts, references, config.data.target, options.metric)
    before = score(np.sum([rows[0] for rows in statistics], axis=0))
    num_judges = len(judges)
    lowest = [0.0] * (num_judges + 1) + [-np.inf]  # a low probability never counts in favour of a translation
    starts = ([1.0] + [0.0] * num_judges + [0.0], [1.0] + [1.0] * num_judges + [0.0])
    results = [best_weights(features, statistics, score, start, lowest) for start in starts]
    best = max(results, key=lambda result: result.score)
    weighted = zip(judges, best.weights[1:-1], strict=True)
    return before, best, [replace(judge, weight=float(weight)) for judge, weight in weighted]


def _features(reranker: Reranker, sources: Sequence[str], found: Sequence[Translation]) -> list[Features]:
    rows = [(source, output) for source, one in zip(sources, found, strict=True) for output in one.outputs]
    hypotheses = [Hypothesis([0] * output.num_pieces, output.score, output.normalized_score) for _, output in rows]
    table = reranker.features([source for source, _ in rows], [output.text for _, output in rows], hypotheses)
    ends: Any = np.cumsum([len(one.outputs) for one in found])[:-1]
    return list(np.split(table, ends))
