"""Trains a model: python -m translator.train [model=lstm] [data=text data.train=…] …"""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import count as count_from
from pathlib import Path
from typing import Any

import torch

from translator import cli
from translator.build import PreparedData, build_loader, build_model, build_trainer, build_validator, prepare_data
from translator.command import EXIT_USER_ERROR, exit_code
from translator.config import Config, save_file, to_yaml
from translator.data.cleaning_report import CleaningReport
from translator.errors import UserError
from translator.files.atomic import write_json
from translator.kernels.allocator import keep_memory
from translator.models.base import Seq2Seq
from translator.runs.directory import RUNS, RunDirectory, versions
from translator.training.distributed import Ranks, connect, local_rank
from translator.training.monitor import Monitor, format_seconds, model_summary
from translator.training.precision import Execution, choose_execution
from translator.training.probe import probe
from translator.training.random_state import seed_everything
from translator.training.trainer import TrainingResult
from translator.training.validation import ValidationResult, Validator


@dataclass(frozen=True)
class RunOutcome:
    """What a table of several runs shows of one."""

    run_dir: Path
    model: str
    seed: int
    num_updates: int
    seconds: float
    valid_bleu: float | None
    test_bleu: float | None
    exit_code: int


def run(config: Config, *, num_held_out: int | None = None) -> RunOutcome:
    """Trains, evaluates and leaves everything in one folder.

    With `num_held_out`, validation is the loss of one batch and the translation of so many sentences, and there is no
    test.
    """
    keep_memory()
    if config.trainer.threads:
        torch.set_num_threads(config.trainer.threads)
    execution = choose_execution(config.trainer.device, config.trainer.precision, local_rank())
    with connect(execution.device.type) as ranks:
        logging.basicConfig(level=logging.INFO if ranks.is_main else logging.WARNING, format="%(message)s", force=True)
        if config.run_dir and not config.resume:
            RunDirectory(Path(config.run_dir)).check_free()
        data = _prepare_in_turn(config, ranks)
        seed_everything(config.seed)
        model = build_model(config.model, data.tokenizer.source_vocab_size, data.tokenizer.target_vocab_size)
        return _train(config, data, model.to(execution.device), execution, ranks, num_held_out)


def _train(
    config: Config,
    data: PreparedData,
    model: Seq2Seq,
    execution: Execution,
    ranks: Ranks,
    num_held_out: int | None,
) -> RunOutcome:
    loader = build_loader(config, data, ranks, pin_memory=execution.device.type == "cuda")
    validator = build_validator(config, data, model, execution, ranks)
    assert validator is not None
    if num_held_out is None:
        test_validator = build_validator(config, data, model, execution, ranks, split="test")
    else:
        validator, test_validator = validator.limited(num_held_out), None
    _probe(model, validator)
    if config.trainer.compile:
        model.compile()
    torch.manual_seed(config.seed + ranks.rank)  # each rank drops out other units
    directory = _claim(config, data, model, ranks)  # nothing is written before everything else was found right
    texts = {"model": model_summary(model), "configuration": to_yaml(config)}
    monitor = Monitor(directory.tensorboard, log_every=config.trainer.log_every, texts=texts, rank=ranks.rank)
    with loader, _closing(monitor):
        trainer = build_trainer(
            config,
            model=model,
            loader=loader,
            validator=validator,
            monitor=monitor,
            execution=execution,
            ranks=ranks,
            run=directory,
            work_after_fit=len(test_validator.sources) / len(validator.sources) if test_validator else 0.0,
        )
        if config.resume:
            trainer.resume()
            if ranks.is_main:  # only now is it certain that the run goes on with these options
                save_file(config, directory.config)
                directory.begin_again()
        result = trainer.fit()
        test = None
        if not result.signal:
            test = test_validator(model) if test_validator is not None else None
            if ranks.is_main:
                _report(config, directory, model, result, test, monitor)
    return _outcome(config, directory, result, test)


# ---- before training ----


def _prepare_in_turn(config: Config, ranks: Ranks) -> PreparedData:
    """The first rank makes the tokenizer and the tables, which may take hours; the others find them made."""
    data = prepare_data(config) if ranks.is_main else None
    ranks.wait_for_all()
    return data or prepare_data(config)


def _claim(config: Config, data: PreparedData, model: Seq2Seq, ranks: Ranks) -> RunDirectory:
    """Makes the folder of a new run, or checks that the one to be resumed is the same run still."""
    path = _claim_on_first_rank(config, data, model) if ranks.is_main else None
    return RunDirectory(Path(ranks.gather(str(path))[0]))


def _claim_on_first_rank(config: Config, data: PreparedData, model: Seq2Seq) -> Path:
    identity = {
        "data": data.fingerprints(),
        "model": {name: str(value) for name, value in asdict(config.model).items()},
        "best_metric": str(config.trainer.best_metric),
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
    count = sum(parameter.numel() for parameter in model.parameters())
    print(f"{path}: {config.model.kind} with {count:,} parameters", file=sys.stderr)
    return path


def _new_folder(config: Config) -> Path:
    """A folder under runs/ that nobody else has, named by time, model and languages."""
    name = f"{datetime.now():%Y-%m-%d_%H-%M-%S}_{config.model.kind}_{config.data.source}-{config.data.target}"
    RUNS.mkdir(exist_ok=True)
    for number in count_from(1):
        path = RUNS / (name if number == 1 else f"{name}_{number}")
        with suppress(FileExistsError):
            path.mkdir()
            return path
    raise AssertionError("numbers do not end")


def _probe(model: Seq2Seq, validator: Validator) -> None:
    """Refuses a model whose outputs depend on padding or on the future."""
    batch = next(iter(validator.batches))
    # Reduced-precision matrix products (TF32) round more than float32 does.
    tolerance = None if model.output_weight.device.type == "cpu" else 0.01
    probe(model, batch.source, batch.source_mask, batch.target_in, batch.target_mask, tolerance).refuse()


# ---- after training ----


def _report(
    config: Config,
    directory: RunDirectory,
    model: Seq2Seq,
    result: TrainingResult,
    test: ValidationResult | None,
    monitor: Monitor,
) -> None:
    """metrics.json, hyper-parameters in TensorBoard, and the summary with the commands that come next."""
    figures = {
        "validation": result.final,
        "test": test.figures() if test is not None else None,
        "final_weights": result.final_weights,
        "stopped_by": result.stopped_by,
        "num_updates": result.update,
        "num_epochs": result.epoch,
        "num_target_tokens": result.num_tokens,
        "num_skipped": result.num_skipped,
        "num_parameters": sum(parameter.numel() for parameter in model.parameters()),
        "seconds": result.seconds,
        "seed": config.seed,
        "versions": versions(),
        "history": result.history,
    }
    write_json(directory.metrics, figures)
    source, target = config.data.source, config.data.target
    table = {
        "model": f"{config.model.kind}, {figures['num_parameters']:,} parameters, {result.final_weights}",
        "training": f"{result.update:,} updates, {result.epoch} epochs, {format_seconds(result.seconds)}",
        "validation": _scores(result.final),
        "test": _scores(test.figures()) if test is not None else "none (data.test is not given)",
        "signature": result.final["signatures"]["bleu"],
        "all figures": str(directory.metrics),
        "translate": f"{_program('translate')} --model {directory.path} input.{source} -o output.{target}",
        "look": f"{_program('tensorboard')} --logdir {directory.path.parent}",
    }
    metrics = {"final/validation_bleu": result.final["bleu"], "final/validation_loss": result.final["loss"]}
    if test is not None and test.scores is not None:
        metrics["final/test_bleu"] = test.scores.bleu
    monitor.finish(_flat(asdict(config)), metrics, table)


def _program(name: str) -> str:
    """How to call a program of this environment: by name, or by its path where the environment is not activated."""
    folder = Path(sys.executable).parent
    is_on_path = str(folder) in os.environ.get("PATH", "").split(os.pathsep)
    return name if is_on_path or not (folder / name).exists() else os.path.relpath(folder / name)


def _scores(figures: dict[str, Any]) -> str:
    return (
        f"BLEU {figures['bleu']:.2f}  chrF {figures['chrf']:.2f}  loss {figures['loss']:.3f}"
        f"  perplexity {figures['perplexity']:.2f}"
    )


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested options under dotted names."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return flat


def _outcome(
    config: Config, directory: RunDirectory, result: TrainingResult, test: ValidationResult | None
) -> RunOutcome:
    return RunOutcome(
        run_dir=directory.path,
        model=config.model.kind,
        seed=config.seed,
        num_updates=result.update,
        seconds=result.seconds,
        valid_bleu=result.final.get("bleu"),
        test_bleu=test.scores.bleu if test is not None and test.scores is not None else None,
        exit_code=result.exit_code,
    )


def sweep_table(outcomes: list[RunOutcome]) -> str:
    """One line for each run of a sweep."""
    rows = [["run", "model", "seed", "updates", "time", "valid BLEU", "test BLEU"]]
    for o in outcomes:
        scores = ["-" if bleu is None else f"{bleu:.2f}" for bleu in (o.valid_bleu, o.test_bleu)]
        rows.append([str(o.run_dir), o.model, str(o.seed), f"{o.num_updates:,}", format_seconds(o.seconds), *scores])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


@contextmanager
def _closing(monitor: Monitor) -> Iterator[None]:
    try:
        yield
    finally:
        monitor.close()


def main() -> int:
    return exit_code("train", run_all)


class _Stopped(BaseException):
    """A signal has ended a run; Hydra must not start the next one."""


def run_all() -> int:
    """Every run that the command line asks for, and a table where they are several."""
    outcomes: list[RunOutcome] = []
    codes: list[int] = [0]

    def job(config: Config) -> None:
        try:
            outcomes.append(run(config))
        except UserError as error:  # said at once; the other runs of a sweep go on
            print(f"train: {error}", file=sys.stderr)
            codes.append(EXIT_USER_ERROR)
            return
        codes.append(outcomes[-1].exit_code)
        if codes[-1]:
            raise _Stopped

    with suppress(_Stopped):
        cli.main(job)
    if len(outcomes) > 1:
        print(sweep_table(outcomes))
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
