"""What `python -m translator.tune` does once its options are known."""

import argparse
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import torch

from translator.api import Translator
from translator.build.data import open_splits
from translator.command import say
from translator.config import Config, load_file, save_file
from translator.data.tokenizer import Tokenizer
from translator.errors import UserError
from translator.evaluation.metrics import quick_metrics, score_corpus
from translator.files.atomic import read_json, write_json
from translator.files.explain import explain_damage, explain_write_errors
from translator.runs.directions import directions_of
from translator.runs.directory import RunDirectory, find_weights
from translator.runs.latest import resolve_run
from translator.schema.checks import did_you_mean
from translator.schema.decode import TUNED, LengthPenalty, SearchOptions, Stop
from translator.schema.flags import naming_flags
from translator.schema.rerank import NONE

BEAMS, ALPHAS = [1, 3, 5, 8], [0.0, 0.5, 1.0, 1.5]


@dataclass(frozen=True)
class Trial:
    """One setting of the search and how good its translations are."""

    setting: dict[str, Any]
    score: float  # the mean of the directions
    seconds: float
    by_direction: dict[str, float] = field(default_factory=dict)  # scores, where there are several

    def to_dict(self) -> dict[str, Any]:
        figures = {**self.setting, "score": round(self.score, 4), "seconds": round(self.seconds, 2)}
        by_direction = {name: round(score, 4) for name, score in self.by_direction.items()}
        return figures | ({"directions": by_direction} if by_direction else {})

    def __str__(self) -> str:
        beam, stop, alpha = (self.setting[name] for name in TUNED)
        parts = "".join(f"  {name} {score:.2f}" for name, score in self.by_direction.items())
        return f"beam {beam:>3}  stop {stop:5}  alpha {alpha:<5g}  {self.score:7.2f}  {self.seconds:7.1f} s{parts}"


def run(options: argparse.Namespace) -> None:
    if options.metric not in quick_metrics():
        raise UserError(f"--metric {options.metric}: not available; {did_you_mean(options.metric, quick_metrics())}")
    directory = RunDirectory(resolve_run(options.run))
    find_weights(directory.path)  # refuses what is not a run
    if options.rerank:
        from translator import tune_rerank

        tune_rerank.run(options, directory)
        return
    with locked_run(directory):
        config = load_file(directory.config)
        with naming_flags(SearchOptions):
            wanted = (options.beam or BEAMS, options.stop or [config.decode.stop], options.alpha or ALPHAS)
            settings = list(grid(config.decode, *wanted))
        _note_other_search(directory, config.decode)
        trials = []
        for trial in _trials(config, directory, settings, options):
            say(str(trial))
            trials.append(trial)
        best = best_of(trials)
        print(f"best by {options.metric}: {best}")
        if not options.dry_run:
            write_result(directory, config, trials, best, options.metric)


def _note_other_search(directory: RunDirectory, search: SearchOptions) -> None:
    """What is tuned is the beam by itself, which is not how every run translates."""
    other = [f"decode.mbr={search.mbr}"] * (search.mbr > 0) + ["decode.sample=true"] * search.sample
    if other:
        say(f"note: {directory.path} translates with {' and '.join(other)}; the settings are compared without")


@contextmanager
def locked_run(directory: RunDirectory) -> Iterator[None]:
    with ExitStack() as stack:
        try:
            stack.enter_context(directory.locked())
        except UserError:
            raise UserError(
                f"{directory.path}: another process is training or tuning this run; wait for it, or stop it"
            ) from None
        yield


def grid(
    current: SearchOptions, beams: Iterable[int], stops: Iterable[str], alphas: Iterable[float]
) -> Iterator[dict[str, Any]]:
    """The settings to try, the quickest first, the run's own among them. Those that give the same results are one."""
    own = {name: getattr(current, name) for name in TUNED}
    wanted = [dict(zip(TUNED, values, strict=True)) for values in product(sorted(beams), map(Stop, stops), alphas)]
    seen = set()
    for setting in [own, *wanted]:
        if setting["beam_size"] == 1 and current.terms:
            continue  # greedy search cannot enforce the run's terms
        options = current.changed(**setting, num_hypotheses=1, sample=False, mbr=0)
        if setting["beam_size"] < current.num_hypotheses and not (current.mbr or current.sample):
            continue  # the run's n-best list, unless it is of samples, needs a wider beam
        # Greedy search compares no lengths, and without a penalty both rules of stopping find the same.
        compares_lengths = options.length_penalty is not LengthPenalty.none and setting["alpha"] > 0
        is_greedy = setting["beam_size"] == 1
        key = (
            setting["beam_size"],
            None if is_greedy or not compares_lengths else setting["stop"],
            0 if is_greedy or not compares_lengths else setting["alpha"],
        )
        if key not in seen:
            seen.add(key)
            yield setting


def _trials(
    config: Config, directory: RunDirectory, settings: list[dict[str, Any]], options: argparse.Namespace
) -> Iterator[Trial]:
    sources, references = validation_set(config, directory)
    translator = load_translator(directory, options)
    assert isinstance(translator.tokenizer, Tokenizer)
    directions = [translator.direction] if options.to else directions_of(config, translator.tokenizer)
    for setting in settings:
        scores, seconds = {}, 0.0
        for direction in directions:
            directed = translator.towards(direction)
            directed.options = directed.options.changed(**setting, num_hypotheses=1, sample=False, mbr=0)
            texts = (references, sources) if direction.reading.is_reversed else (sources, references)
            started = time.perf_counter()
            hypotheses = directed.translate(texts[0])
            seconds += time.perf_counter() - started
            found = score_corpus(hypotheses, texts[1], direction.target, metrics=(options.metric,))
            scores[str(direction)] = found[options.metric]
        yield Trial(setting, sum(scores.values()) / len(scores), seconds, scores if len(scores) > 1 else {})


def load_translator(directory: RunDirectory, options: argparse.Namespace) -> Translator:
    """The run by itself, without reranking."""
    if options.threads:
        torch.set_num_threads(options.threads)
    with naming_flags(SearchOptions, "device", "to"):
        translator = Translator.load(directory.path, options.device, to=options.to, rerank=[NONE])
    translator.keep_memory()
    return translator


def validation_set(config: Config, directory: RunDirectory) -> tuple[list[str], list[str]]:
    """Sources and references of the run's validation set, refused if they are not those it was trained with."""
    corpus = open_splits(config.data).valid
    recorded = directory.read_manifest().get("identity", {}).get("data", {}).get("valid")
    if recorded not in (None, corpus.fingerprint):
        raise UserError(f"{corpus.name}: the validation set has changed since {directory.path} was trained")
    sources, references = zip(*corpus, strict=True)
    return list(sources), list(references)


def best_of(trials: Sequence[Trial]) -> Trial:
    """The highest score; of equal ones the first, so that the run keeps its own setting unless another is better."""
    return max(trials, key=lambda trial: trial.score)


def read_record(directory: RunDirectory, config: Config) -> dict[str, Any]:
    """The record of earlier tuning: at least the search options before it."""
    path = directory.tuning
    if not path.exists():
        return {"before": {name: getattr(config.decode, name) for name in TUNED}}
    with explain_damage(path, remedy=f"remove it, and {path.name} will be written again"):
        record: dict[str, Any] = read_json(path)
        return {**record, "before": record["before"]}


def write_result(directory: RunDirectory, config: Config, trials: Sequence[Trial], best: Trial, metric: str) -> None:
    """Writes the best setting into the run; the record keeps the one with which it was trained."""
    known = read_record(directory, config)
    if known.pop("rerank", None):
        say("Note: the weights for reranking belong to the search as it was; tune them again with --rerank.")
    record = {**known, "metric": metric, "chosen": best.setting, "trials": [one.to_dict() for one in trials]}
    with explain_write_errors(directory.path):
        write_json(directory.tuning, record)
        save_file(replace(config, decode=config.decode.changed(**best.setting)), directory.config)
