"""The folder of a new run, or of the one that is resumed, and the choice between the two."""

import shlex
import sys
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

from translator.build.data import PreparedData
from translator.build.initial_weights import TakenOver
from translator.config import AUTO, Config, load_file, save_file, to_yaml
from translator.data.cleaning_report import CleaningReport
from translator.data.tokenizer import Tokenizer
from translator.errors import UserError
from translator.files.atomic import read_json
from translator.files.explain import (
    ANOTHER_FOLDER,
    WRITTEN_AGAIN,
    explain_damage,
    explain_write_errors,
    require_folder,
    require_writable,
)
from translator.models.base import Seq2Seq
from translator.runs.directory import RUNS, RunDirectory
from translator.runs.latest import point_latest, resolve_run
from translator.schema.data import DemoDataConfig, Directions, TextDataConfig
from translator.schema.decode import TUNED
from translator.training.distributed import Ranks, num_restarts

_UNUSED_WAYS = {"data.directions": str(Directions.forward), "data.reverse_target": False}  # not in identities
_NEW_OPTIONS = (("word_dropout", 0.0),)  # of models, with the values that change nothing: earlier runs do not have them


def decide_resume(config: Config, ranks: Ranks) -> Config:
    """Resolves `resume=auto`: the run to continue, or False for a new one. The first rank decides for all.

    Processes restarted by torchrun decide in the same way, so that nothing is lost or overwritten.
    """
    is_restarted = num_restarts() > 0 and config.resume is False
    if config.resume != AUTO and not is_restarted:
        return config
    found = _run_to_continue(config) if ranks.is_main else None
    where = ranks.gather(str(found) if found else None)[0]
    if where is None:
        return replace(config, resume=False)
    return replace(_with_tuned_search(config, RunDirectory(Path(where))), resume=where, run_dir=where)


def _with_tuned_search(config: Config, run: RunDirectory) -> Config:
    """The options as the command line gives them, without the search that `tune` has since chosen for the run."""
    if not run.tuning.exists():
        return config
    saved = load_file(run.config).decode
    return replace(config, decode=replace(config.decode, **{name: getattr(saved, name) for name in TUNED}))


def is_complete(config: Config) -> bool:
    """Whether the run to be resumed has finished, with nothing left out, and nothing about it has changed since."""
    run = RunDirectory(Path(str(config.run_dir)))
    if not (run.metrics.exists() and _has_configuration(run, config)):
        return False
    with explain_damage(run.metrics, remedy=WRITTEN_AGAIN):
        return not read_json(run.metrics).get("left_out")


def _run_to_continue(config: Config) -> Path | None:
    """The run in run_dir or, where none is named, the newest unfinished one with these options that is not running."""
    if config.run_dir:
        run = RunDirectory(resolve_run(Path(config.run_dir)))
        return run.path if run.manifest.exists() else None
    own = (path for path in RUNS.glob("*/manifest.json") if not (path.is_symlink() or path.parent.is_symlink()))
    runs = (RunDirectory(path.parent) for path in sorted(own, key=_time_of_change, reverse=True))
    candidates = (run for run in runs if run.is_unfinished and _has_configuration(run, _with_tuned_search(config, run)))
    return next((run.path for run in candidates if _is_idle(run)), None)


def _time_of_change(path: Path) -> float:
    with suppress(FileNotFoundError):
        return path.stat().st_mtime
    return 0.0  # removed meanwhile


def _is_idle(run: RunDirectory) -> bool:
    with suppress(UserError), run.locked():
        return True
    return False


def _has_configuration(run: RunDirectory, config: Config) -> bool:
    with suppress(UserError, OSError):  # damaged, or of another version
        return _without_place(load_file(run.config)) == _without_place(config)
    return False


def _without_place(config: Config) -> str:
    return to_yaml(replace(config, run_dir=None, resume=False))


def check_places(config: Config) -> None:
    """Refuses folders that cannot be used, before hours are spent on the data. Creates none of them."""
    path = Path(config.run_dir) if config.run_dir else RUNS
    directory = RunDirectory(path)
    # Even checking whether it exists fails if the name is too long.
    with explain_write_errors(f"run_dir={path}", ANOTHER_FOLDER):
        if config.resume:
            directory.check_is_run()
        elif config.run_dir:
            directory.check_free()
    require_writable("run_dir", path)
    # These need not be writable if they already contain everything.
    require_folder("data.cache_dir", Path(config.data.cache_dir))
    if isinstance(config.data, DemoDataConfig):
        require_folder("data.folder", Path(config.data.folder))


def continue_run(config: Config, directory: RunDirectory) -> None:
    """Records in the folder of a resumed run that it is training again, with these options."""
    with explain_write_errors(f"run_dir={directory.path}", ANOTHER_FOLDER):
        save_file(config, directory.config)
        directory.begin_again()


def claim_run_directory(
    config: Config, data: PreparedData, model: Seq2Seq, ranks: Ranks, initial: TakenOver | None = None
) -> RunDirectory:
    """Creates the folder of a new run, or checks that the run to be resumed is still the same."""
    path = _claim_on_first_rank(config, data, model, initial) if ranks.is_main else None
    return RunDirectory(Path(ranks.gather(str(path))[0]))


def _claim_on_first_rank(config: Config, data: PreparedData, model: Seq2Seq, initial: TakenOver | None) -> Path:
    identity = {
        "data": data.fingerprints(),
        "model": {
            name: str(value) for name, value in asdict(config.model).items() if (name, value) not in _NEW_OPTIONS
        },
        "best_metric": config.trainer.best_metric,
        **_ways_of_training(config),
    }
    path = Path(config.run_dir) if config.run_dir else _new_folder(config)
    directory = RunDirectory(path)
    if config.resume:
        directory.check_resumable(identity, _UNUSED_WAYS)
        Tokenizer.load(directory.tokenizer)  # not needed for training, but needed to use the run
    else:
        reports = data.reports()
        for report in reports:
            print(CleaningReport.from_dict(report), file=sys.stderr)
        directory.check_free()
        with explain_write_errors(f"run_dir={path}", ANOTHER_FOLDER):
            path.mkdir(parents=True, exist_ok=True)
            with directory.locked():  # another process may want the same folder
                directory.check_free()
                data.tokenizer.save(directory.tokenizer)
                save_file(config, directory.config)
                details = {"seed": config.seed, "files": data.files(), "cleaning": reports, "command": _command()}
                details |= {"init_from": initial.to_dict()} if initial is not None else {}
                directory.create(identity=identity, details=details)
    point_latest(directory)
    num_parameters = sum(parameter.numel() for parameter in model.parameters())
    print(f"{path}: {config.model.kind} with {num_parameters:,} parameters", file=sys.stderr)
    return path


def _ways_of_training(config: Config) -> dict[str, Any]:
    """Of the options that earlier versions did not have, those that are used; they must not change."""
    tags = config.data.train_tags if isinstance(config.data, TextDataConfig) else None
    options: dict[str, Any] = {"init_from": config.init_from, "data.train_tags": tags}
    if config.data.directions is not Directions.forward:
        options["data.directions"] = str(config.data.directions)
    if config.data.reverse_target:
        options["data.reverse_target"] = True
    return {name: value for name, value in options.items() if value is not None}


def _command() -> str:
    """How this process was started, without the folder of Python itself."""
    return shlex.join([Path(sys.orig_argv[0]).name, *sys.orig_argv[1:]])


def _new_folder(config: Config) -> Path:
    """A new, unused folder under runs/, named after time, model and languages."""
    name = f"{datetime.now():%Y-%m-%d_%H-%M-%S}_{config.model.kind}_{config.data.source}-{config.data.target}"
    with explain_write_errors(f"run_dir={RUNS}", ANOTHER_FOLDER):
        RUNS.mkdir(exist_ok=True)
        for number in count(1):
            path = RUNS / (name if number == 1 else f"{name}_{number}")
            with suppress(FileExistsError):
                path.mkdir()
                return path
    raise AssertionError("numbers do not end")
