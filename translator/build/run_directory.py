"""The folder of a new run, or of the one that is resumed."""

import sys
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from itertools import count
from pathlib import Path

from translator.build.data import PreparedData
from translator.config import Config, save_file
from translator.data.cleaning_report import CleaningReport
from translator.models.base import Seq2Seq
from translator.runs.directory import RUNS, RunDirectory
from translator.training.distributed import Ranks


def claim_run_directory(config: Config, data: PreparedData, model: Seq2Seq, ranks: Ranks) -> RunDirectory:
    """Makes the folder of a new run, or checks that the run to be resumed is still the same."""
    path = _claim_on_first_rank(config, data, model) if ranks.is_main else None
    return RunDirectory(Path(ranks.gather(str(path))[0]))


def _claim_on_first_rank(config: Config, data: PreparedData, model: Seq2Seq) -> Path:
    identity = {
        "data": data.fingerprints(),
        "model": {name: str(value) for name, value in asdict(config.model).items()},
        "best_metric": config.trainer.best_metric,
    }
    path = Path(config.run_dir) if config.run_dir else _new_folder(config)
    directory = RunDirectory(path)
    if config.resume:
        directory.check_resumable(identity)
    else:
        reports = data.reports()
        for report in reports:
            print(CleaningReport.from_dict(report), file=sys.stderr)
        path.mkdir(parents=True, exist_ok=True)
        data.tokenizer.save(directory.tokenizer)
        save_file(config, directory.config)
        directory.create(identity=identity, details={"seed": config.seed, "files": data.files(), "cleaning": reports})
    directory.point_latest()
    num_parameters = sum(parameter.numel() for parameter in model.parameters())
    print(f"{path}: {config.model.kind} with {num_parameters:,} parameters", file=sys.stderr)
    return path


def _new_folder(config: Config) -> Path:
    """A folder under runs/ that nobody else has, named by time, model and languages."""
    name = f"{datetime.now():%Y-%m-%d_%H-%M-%S}_{config.model.kind}_{config.data.source}-{config.data.target}"
    RUNS.mkdir(exist_ok=True)
    for number in count(1):
        path = RUNS / (name if number == 1 else f"{name}_{number}")
        with suppress(FileExistsError):
            path.mkdir()
            return path
    raise AssertionError("numbers do not end")
