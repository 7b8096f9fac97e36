"""What `python -m translator.tune` does once its options are known."""

import argparse
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import torch

from translator.api import Translator
from translator.build.data import open_splits
from translator.command import say
from translator.config import Config, load_file, save_file
from translator.errors import UserError
from translator.evaluation.metrics import quick_metrics, score_corpus
from translator.files.atomic import read_json, write_json
from translator.files.explain import explain_damage, explain_write_errors
from translator.kernels.allocator import keep_memory
from translator.runs.directory import RunDirectory, find_weights
from translator.runs.latest import resolve_run
from translator.schema.checks import did_you_mean
from translator.schema.decode import TUNED, LengthPenalty, SearchOptions, Stop
from translator.schema.flags import naming_flags


@dataclass(frozen=True)
class Trial:
    """One setting of the search and how good its translations are."""

    setting: dict[str, Any]
    score: float
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        return {**self.setting, "score": round(self.score, 4), "seconds": round(self.seconds, 2)}

    def __str__(self) -> str:
        beam, stop, alpha = (self.setting[name] for name in TUNED)
        return f"beam {beam:>3}  stop {stop:5}  alpha {alpha:<5g}  {self.score:7.2f}  {self.seconds:7.1f} s"


def run(options: argparse.Namespace) -> None:
    if options.metric not in quick_metrics():
        raise UserError(f"--metric {options.metric}: not available; {did_you_mean(options.metric, quick_metrics())}")
    directory = RunDirectory(resolve_run(options.run))
    find_weights(directory.path)  # refuses what is not a run
    with _locked(directory):
        config = load_file(directory.config)
        with naming_flags(SearchOptions):
            settings = list(grid(config.decode, options.beam, options.stop, options.alpha))
        trials = []
        for trial in _trials(config, directory, settings, options):
            say(str(trial))
            trials.append(trial)
        best = best_of(trials)
        print(f"best by {options.metric}: {best}")
        if not options.dry_run:
            write_result(directory, config, trials, best, options.metric)


@contextmanager
def _locked(directory: RunDirectory) -> Iterator[None]:
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
    if options.threads:
        torch.set_num_threads(options.threads)
    with naming_flags(SearchOptions, "device"):
        translator = Translator.load(directory.path, options.device)
    if translator.device.type == "cpu":
        keep_memory()
    base = translator.options
    for setting in settings:
        translator.options = base.changed(**setting, num_hypotheses=1, sample=False, mbr=0)
        started = time.perf_counter()
        hypotheses = translator.translate(sources)
        seconds = time.perf_counter() - started
        scores = score_corpus(hypotheses, references, config.data.target, metrics=(options.metric,))
        yield Trial(setting, scores[options.metric], seconds)


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


def write_result(directory: RunDirectory, config: Config, trials: Sequence[Trial], best: Trial, metric: str) -> None:
    """Writes the best setting into the run; the record keeps the one with which it was trained."""
    path = directory.tuning
    before = {name: getattr(config.decode, name) for name in TUNED}
    if path.exists():
        with explain_damage(path, remedy=f"remove it, and {path.name} is written anew"):
            before = read_json(path)["before"]
    record = {"metric": metric, "before": before, "chosen": best.setting, "trials": [one.to_dict() for one in trials]}
    with explain_write_errors(directory.path):
        write_json(path, record)
        save_file(replace(config, decode=config.decode.changed(**best.setting)), directory.config)
