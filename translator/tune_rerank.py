"""What `python -m translator.tune RUN --rerank OTHER` does: finds weights for the runs that rerank."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from translator.command import say
from translator.config import Config, load_file
from translator.decoding.hypotheses import Hypothesis
from translator.decoding.interfaces import Translation
from translator.decoding.rerank import Features, Reranker
from translator.errors import UserError
from translator.evaluation.line_search import Tuned, best_weights, candidate_statistics
from translator.files.atomic import write_json
from translator.files.explain import explain_write_errors
from translator.runs.directory import RunDirectory
from translator.runs.latest import resolve_run
from translator.runs.reranking import load_judge, require_candidates
from translator.tune_run import load_translator, locked_run, read_record, validation_set


def run(options: argparse.Namespace, directory: RunDirectory) -> None:
    for name in ("beam", "alpha", "stop"):
        if getattr(options, name) is not None:
            raise UserError(f"--{name}: reranking uses the run's own beam; tune that first, then add --rerank")
    names = [str(resolve_run(Path(name)).resolve()) for name in options.rerank]
    if str(directory.path.resolve()) in names:
        raise UserError(f"--rerank {directory.path}: is the run itself, whose score is always used; give another run")
    with locked_run(directory):
        config = load_file(directory.config)
        require_candidates(config.decode)
        before, tuned = _tune(config, directory, names, options)
        judges = [
            {"run": name, "weight": float(weight)} for name, weight in zip(names, tuned.weights[1:-1], strict=True)
        ]
        for judge in judges:
            say(f"weight {judge['weight']:8.4f}  {judge['run']}")
        say(f"weight {tuned.weights[-1]:8.4f}  length")
        print(f"{options.metric} {before:.2f} before reranking, {tuned.score:.2f} after")
        if tuned.score <= before:
            print("Reranking does not help here; nothing was written.")
        elif not options.dry_run:
            scores = {"metric": options.metric, "before": round(before, 4), "after": round(tuned.score, 4)}
            record = {"judges": judges, "length": float(tuned.weights[-1]), **scores}
            with explain_write_errors(directory.path):
                write_json(directory.tuning, {**read_record(directory, config), "rerank": record})


def _tune(
    config: Config, directory: RunDirectory, names: Sequence[str], options: argparse.Namespace
) -> tuple[float, Tuned]:
    """The metric on the validation set without reranking, and with the best weights."""
    sources, references = validation_set(config, directory)
    translator = load_translator(directory, options)
    languages = (translator.direction.source, translator.direction.target)
    if translator.direction.reading.is_reversed:
        raise UserError(
            f"--to {options.to}: weights for reranking are those of the run's own direction, into "
            f"{config.data.target}; leave --to out"
        )
    reranker = Reranker([load_judge(languages, name, 1.0, translator.device) for name in names])
    translator.options = translator.options.changed(num_hypotheses=translator.options.beam_size)
    found = translator.translate_fully(sources)
    features = _features(reranker, sources, found)
    texts = [[output.text for output in one.outputs] for one in found]
    statistics, score = candidate_statistics(texts, references, config.data.target, options.metric)
    before = score(np.sum([rows[0] for rows in statistics], axis=0))
    num_judges = len(names)
    lowest = [0.0] * (num_judges + 1) + [-np.inf]  # a low probability never counts in favour of a translation
    starts = ([1.0] + [0.0] * num_judges + [0.0], [1.0] + [1.0] * num_judges + [0.0])
    results = [best_weights(features, statistics, score, start, lowest) for start in starts]
    return before, max(results, key=lambda result: result.score)


def _features(reranker: Reranker, sources: Sequence[str], found: Sequence[Translation]) -> list[Features]:
    rows = [(source, output) for source, one in zip(sources, found, strict=True) for output in one.outputs]
    hypotheses = [Hypothesis([0] * output.num_pieces, output.score, output.normalized_score) for _, output in rows]
    table = reranker.features([source for source, _ in rows], [output.text for _, output in rows], hypotheses)
    ends: Any = np.cumsum([len(one.outputs) for one in found])[:-1]
    return list(np.split(table, ends))
