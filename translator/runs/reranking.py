"""The runs that rerank another run's translations: given by the user, or stored by `translator.tune`."""

import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from translator.decoding.line_translator import LineTranslator
from translator.decoding.rerank import Judge, Reranker
from translator.errors import UserError
from translator.files.atomic import read_json
from translator.files.explain import explain_damage
from translator.runs.directions import Direction, directions_of
from translator.runs.directory import RunDirectory
from translator.runs.latest import resolve_run
from translator.runs.loading import LoadedRun, load_run
from translator.runs.translation import translation_options
from translator.schema.decode import SearchOptions
from translator.schema.rerank import RerankOptions

Languages = tuple[str, str]  # of a source and of its translation
TUNE_AGAIN = "put it back, tune again with --rerank, or go on with --rerank none"


@dataclass(frozen=True)
class TunedJudge:
    """What `translator.tune` remembers of a run that reranks."""

    run: str  # its folder, as seen from the folder of the run that it judges; or an absolute path
    weight: float
    weights_sha256: str | None  # None in the records of earlier versions


def load_reranker(
    languages: Languages, options: RerankOptions, device: torch.device, judged: Collection[Path] = ()
) -> Reranker | None:
    """The judges that the options name, for translations from the first language into the second by the runs judged."""
    if not options.judges():
        return None
    judges = [load_judge(languages, name, weight, device, judged) for name, weight in options.judges()]
    return Reranker(judges, options.rerank_length)


def load_judge(
    languages: Languages, name: str, weight: float, device: torch.device, judged: Collection[Path] = ()
) -> Judge:
    """A run judges in the direction of the translations if it can, else in the opposite one; itself only in that."""
    folder = resolve_run(Path(name))
    try:
        run = load_run(folder, device)
    except UserError as error:
        raise UserError(f"--rerank {name}: {str(error).removeprefix(f'{folder}: ')}") from error
    is_itself = folder.resolve() in {path.resolve() for path in judged}
    direction = _direction(run, languages, name, is_itself=is_itself)
    scorer = LineTranslator(
        run.model, run.tokenizer, device, **translation_options(run.config, run.tokenizer, direction)
    )
    is_reverse = (direction.source, direction.target) != languages
    return Judge(scorer, is_reverse=is_reverse, weight=weight, checksum=run.weights_checksum)


def _direction(run: LoadedRun, languages: Languages, name: str, *, is_itself: bool) -> Direction:
    directions = {(one.source, one.target): one for one in directions_of(run.config, run.tokenizer)}
    opposite = directions.get(languages[::-1])
    if is_itself and opposite is None:
        raise UserError(f"--rerank {name}: is the run itself, whose score is always used; give another run")
    direction = opposite if is_itself else directions.get(languages) or opposite
    if direction is None:
        raise UserError(
            f"--rerank {name}: it translates from {run.config.data.source} to {run.config.data.target}; a run from "
            f"{languages[0]} to {languages[1]} can be reranked by runs of the same or the opposite direction"
        )
    return direction


def tuned_judges(folder: Path) -> tuple[list[TunedJudge], float]:
    """The judges that `translator.tune` has stored in the run, if any, and the weight of the length."""
    path = RunDirectory(folder).tuning
    if not path.exists():
        return [], 0.0
    with explain_damage(path, remedy="remove it, and tune the run again"):
        record: dict[str, Any] | None = read_json(path).get("rerank")
        if record is None:
            return [], 0.0
        judges = [
            TunedJudge(str(one["run"]), float(one["weight"]), one.get("weights_sha256")) for one in record["judges"]
        ]
        return judges, float(record["length"])


def load_tuned_reranker(languages: Languages, folder: Path, device: torch.device) -> Reranker | None:
    """The judges that `translator.tune` has stored in the run, refused if they are not what they were then."""
    judges, length_weight = tuned_judges(folder)
    if not judges and length_weight == 0:
        return None
    return Reranker([_as_tuned(one, languages, folder, device) for one in judges], length_weight)


def _as_tuned(tuned: TunedJudge, languages: Languages, folder: Path, device: torch.device) -> Judge:
    judge_folder = (folder / tuned.run).resolve()
    stored = f"{RunDirectory(folder).tuning}: reranks with {judge_folder}"
    try:
        judge = load_judge(languages, str(judge_folder), tuned.weight, device, [folder])
    except UserError as error:
        why = str(error).removeprefix(f"--rerank {judge_folder}: ").partition("; ")[0]
        raise UserError(f"{stored}: {why}; {TUNE_AGAIN}") from error
    if tuned.weights_sha256 not in (None, judge.checksum):
        raise UserError(f"{stored}: its weights are no longer those that it was tuned with; {TUNE_AGAIN}")
    return judge


def as_stored(name: str, judge: Judge, folder: Path) -> TunedJudge:
    """What the run in `folder` remembers of its judge, so that both can be moved together."""
    judge_folder = resolve_run(Path(name)).resolve()
    try:
        run = Path(os.path.relpath(judge_folder, folder.resolve())).as_posix()
    except ValueError:  # on another drive
        run = str(judge_folder)
    return TunedJudge(run, judge.weight, judge.checksum)


def has_candidates(options: SearchOptions) -> bool:
    """Whether a search finds several translations of a line, among which judges can choose."""
    return not options.mbr and (options.num_hypotheses if options.sample else options.beam_size) > 1


def require_candidates(options: SearchOptions) -> None:
    """Refuses options that leave nothing to choose from."""
    if options.mbr:
        raise UserError("--rerank: minimum Bayes risk makes its own choice; use one or the other")
    if not has_candidates(options):
        search, more = ("sampling", "--nbest 8") if options.sample else ("greedy search", "--beam 8")
        raise UserError(f"--rerank: {search} finds only one translation; add {more}")
