"""The runs that rerank another run's translations: given by the user, or stored by `translator.tune`."""

from pathlib import Path
from typing import Any

import torch

from translator.decoding.line_translator import LineTranslator
from translator.decoding.rerank import Judge, Reranker
from translator.errors import UserError
from translator.files.atomic import read_json
from translator.files.explain import explain_damage
from translator.runs.directions import directions_of
from translator.runs.directory import RunDirectory
from translator.runs.latest import resolve_run
from translator.runs.loading import load_run
from translator.runs.translation import translation_options
from translator.schema.decode import SearchOptions
from translator.schema.rerank import RerankOptions

Languages = tuple[str, str]  # of a source and of its translation


def load_reranker(languages: Languages, options: RerankOptions, device: torch.device) -> Reranker | None:
    """The judges that the options name, for translations from the first language into the second."""
    if not options.judges():
        return None
    judges = [load_judge(languages, name, weight, device) for name, weight in options.judges()]
    return Reranker(judges, options.rerank_length)


def load_judge(languages: Languages, name: str, weight: float, device: torch.device) -> Judge:
    folder = resolve_run(Path(name))
    try:
        run = load_run(folder, device)
    except UserError as error:
        raise UserError(f"--rerank {name}: {str(error).removeprefix(f'{folder}: ')}") from error
    directions = {(one.source, one.target): one for one in directions_of(run.config, run.tokenizer)}
    direction = directions.get(languages) or directions.get(languages[::-1])
    if direction is None:
        raise UserError(
            f"--rerank {name}: it translates from {run.config.data.source} to {run.config.data.target}; a run from "
            f"{languages[0]} to {languages[1]} can be reranked by runs of the same or the opposite direction"
        )
    scorer = LineTranslator(
        run.model, run.tokenizer, device, **translation_options(run.config, run.tokenizer, direction)
    )
    is_reverse = languages not in directions
    return Judge(scorer, is_reverse=is_reverse, weight=weight, checksum=run.weights_checksum)


def tuned_options(folder: Path) -> RerankOptions:
    """The judges that `translator.tune` has stored in the run, if any."""
    path = RunDirectory(folder).tuning
    if not path.exists():
        return RerankOptions()
    with explain_damage(path, remedy="remove it, and tune the run again"):
        record: dict[str, Any] | None = read_json(path).get("rerank")
        if record is None:
            return RerankOptions()
        judges = [f"{judge['run']}:{float(judge['weight'])!r}" for judge in record["judges"]]
        return RerankOptions(rerank=judges, rerank_length=record["length"])


def require_candidates(options: SearchOptions) -> None:
    """Refuses options that leave nothing to choose from."""
    if options.mbr:
        raise UserError("--rerank: minimum Bayes risk makes its own choice; use one or the other")
    if options.beam_size == 1 and not options.sample:
        raise UserError("--rerank: greedy search finds only one translation; add --beam 8")
