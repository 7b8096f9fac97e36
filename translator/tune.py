"""Tunes a run's search on its validation set: `python -m translator.tune --help`."""

import argparse
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from translator.command import Parser, exit_code, positive, say
from translator.schema.decode import LengthPenalty, SearchOptions, Stop

if TYPE_CHECKING:
    from translator.config import Config
    from translator.runs.directory import RunDirectory

TUNED = ("beam_size", "stop", "alpha")  # the options of the group `decode` that are chosen
RECORD = "tuning.json"
EPILOG = """
examples:
  python -m translator.tune runs/latest --dry-run
  python -m translator.tune runs/latest --beam 4 5 8 --alpha 0.6 1.0 1.4 --stop first exact

The best setting is written into the run's config.yaml, and all scores with the setting before into its tuning.json.
"""


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


def parser() -> argparse.ArgumentParser:
    result = Parser(
        prog="python -m translator.tune",
        description="Chooses beam size, length penalty and stopping rule of a run on its own validation set.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    result.add_argument("run", type=Path, metavar="RUN", help="directory of a training run")
    result.add_argument("--beam", type=positive, nargs="+", default=[1, 3, 5, 8], metavar="K", help="default: 1 3 5 8")
    result.add_argument(
        "--alpha",
        type=float,
        nargs="+",
        default=[0.0, 0.5, 1.0, 1.5],
        metavar="X",
        help="exponents of the length penalty; default: 0 0.5 1 1.5",
    )
    result.add_argument(
        "--stop", choices=[stop.value for stop in Stop], nargs="+", default=[Stop.first.value], help="default: first"
    )
    result.add_argument("--metric", default="bleu", help="what decides: bleu, chrf or chrf_pp; default: bleu")
    result.add_argument("--dry-run", action="store_true", help="show the scores and change nothing")
    result.add_argument("--device", default="auto", help="default: auto")
    result.add_argument("--threads", type=positive, metavar="N", help="processor threads; default: torch's choice")
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    return exit_code("tune", lambda: run(parser().parse_args(arguments)))


def run(options: argparse.Namespace) -> None:
    # Only now, so that --help and mistyped options are answered at once.
    from translator.config import load_file
    from translator.errors import UserError
    from translator.evaluation.metrics import quick_metrics
    from translator.runs.directory import RunDirectory, find_weights
    from translator.runs.latest import resolve_run
    from translator.schema.checks import did_you_mean

    if options.metric not in quick_metrics():
        raise UserError(f"--metric {options.metric}: not available; {did_you_mean(options.metric, quick_metrics())}")
    directory = RunDirectory(resolve_run(options.run))
    find_weights(directory.path)  # refuses what is not a run
    with _locked(directory):
        config = load_file(directory.config)
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
def _locked(directory: "RunDirectory") -> Iterator[None]:
    from translator.errors import UserError

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
        if setting["beam_size"] < current.num_hypotheses and not current.mbr:
            continue  # the run's n-best list needs a wider beam
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
    config: "Config", directory: "RunDirectory", settings: list[dict[str, Any]], options: argparse.Namespace
) -> Iterator[Trial]:
    import torch

    from translator.api import Translator
    from translator.evaluation.metrics import score_corpus
    from translator.kernels.allocator import keep_memory

    sources, references = validation_set(config, directory)
    if options.threads:
        torch.set_num_threads(options.threads)
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


def validation_set(config: "Config", directory: "RunDirectory") -> tuple[list[str], list[str]]:
    """Sources and references of the run's validation set, refused if they are not those it was trained with."""
    from translator.build.data import open_splits
    from translator.errors import UserError

    corpus = open_splits(config.data).valid
    recorded = directory.read_manifest().get("identity", {}).get("data", {}).get("valid")
    if recorded not in (None, corpus.fingerprint):
        raise UserError(f"{corpus.name}: the validation set has changed since {directory.path} was trained")
    sources, references = zip(*corpus, strict=True)
    return list(sources), list(references)


def best_of(trials: Sequence[Trial]) -> Trial:
    """The highest score; of equal ones the first, so that the run keeps its own setting unless another is better."""
    return max(trials, key=lambda trial: trial.score)


def write_result(
    directory: "RunDirectory", config: "Config", trials: Sequence[Trial], best: Trial, metric: str
) -> None:
    """Writes the best setting into the run; the record keeps the one with which it was trained."""
    from translator.config import save_file
    from translator.files.atomic import read_json, write_json
    from translator.files.explain import explain_damage, explain_write_errors

    path = directory.path / RECORD
    before = {name: getattr(config.decode, name) for name in TUNED}
    if path.exists():
        with explain_damage(path, remedy=f"remove it, and {RECORD} is written anew"):
            before = read_json(path)["before"]
    record = {"metric": metric, "before": before, "chosen": best.setting, "trials": [one.to_dict() for one in trials]}
    with explain_write_errors(directory.path):
        write_json(path, record)
        save_file(replace(config, decode=config.decode.changed(**best.setting)), directory.config)


if __name__ == "__main__":
    sys.exit(main())
