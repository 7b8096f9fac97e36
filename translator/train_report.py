"""What a run reports when it has ended: metrics.json, the summary on the terminal, and the table of a sweep."""

import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from translator.config import Config
from translator.evaluation.metrics import METRICS, describe_scores
from translator.files.atomic import read_json, write_json
from translator.files.explain import ANOTHER_FOLDER, WRITTEN_AGAIN, explain_damage, explain_write_errors
from translator.models.base import Seq2Seq
from translator.runs.directory import RunDirectory, versions
from translator.training.board import FINAL
from translator.training.deadline import TEST
from translator.training.monitor import Monitor, format_seconds
from translator.training.trainer import TrainingResult
from translator.training.validation_result import ValidationResult


def report(
    config: Config,
    directory: RunDirectory,
    model: Seq2Seq,
    result: TrainingResult,
    test: ValidationResult | None,
    monitor: Monitor,
    left_out: Sequence[str] = (),
) -> None:
    """Writes metrics.json, the hyper-parameters in TensorBoard, and the summary with the commands that come next.

    `left_out` names what there was no time for.
    """
    progress, test_figures = result.progress, test.figures() if test is not None else None
    num_parameters = sum(parameter.numel() for parameter in model.parameters())
    with explain_write_errors(f"run_dir={directory.path}", ANOTHER_FOLDER):  # resuming then ends at once and writes it
        write_json(directory.metrics, _metrics(result, test_figures, left_out, num_parameters, config.seed))
    source, target = config.data.source, config.data.target
    summary = {
        "model": f"{config.model.kind}, {num_parameters:,} parameters, {result.final_weights}",
        "training": f"{progress.update:,} updates, {progress.epoch} epochs, {format_seconds(progress.seconds)}",
        "validation": _describe(result.final) if result.final else "none (max_time was up)",
        "test": _describe(test_figures) if test_figures else _why_no_test(left_out),
        "signature": _signature(result.final or test_figures),
        "all figures": str(directory.metrics),
        "translate": f"{_program('translate')} --model {directory.path} input.{source} -o output.{target}",
        "look": f"{_program('tensorboard')} --logdir {directory.path.parent}",
    }
    final = {f"{FINAL}/validation_{name}": value for name, value in _scores(result.final).items()}
    if result.final:
        final[f"{FINAL}/validation_loss"] = result.final["loss"]
    final |= {f"{FINAL}/test_{name}": value for name, value in _scores(test_figures or {}).items()}
    for split, found in (("validation", result.final), ("test", test_figures or {})):
        for direction, part in found.get("directions", {}).items():
            final |= {f"{FINAL}/{split}_{direction}_{name}": value for name, value in _scores(part).items()}
    monitor.finish(_flat(asdict(config)), final, {name: text for name, text in summary.items() if text})
    if left_out:
        monitor.notify(
            f"trainer.max_time={config.trainer.max_time} left no time for {_listed(left_out)};"
            f" resume={directory.path} makes up for it, and trains longer if trainer.max_time is raised"
        )


def _metrics(
    result: TrainingResult,
    test_figures: dict[str, Any] | None,
    left_out: Sequence[str],
    num_parameters: int,
    seed: int,
) -> dict[str, Any]:
    """The contents of metrics.json."""
    progress = result.progress
    return {
        "validation": result.final or None,
        "test": test_figures,
        "left_out": list(left_out),
        "final_weights": result.final_weights,
        "stopped_by": result.stopped_by,
        "num_updates": progress.update,
        "num_epochs": progress.epoch,
        "num_target_tokens": progress.num_tokens,
        "num_skipped": progress.num_skipped,
        "num_parameters": num_parameters,
        "seconds": progress.seconds,
        "seed": seed,
        "versions": versions(),
        "history": progress.history,
    }


def _listed(names: Sequence[str]) -> str:
    """One, two and three."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _why_no_test(left_out: Sequence[str]) -> str:
    return "not scored (max_time was up)" if TEST in left_out else "none (data.test is not given)"


def _signature(figures: dict[str, Any] | None) -> str:
    return str(figures["signatures"]["bleu"]) if figures else ""


def _scores(figures: dict[str, Any]) -> dict[str, float]:
    """The metrics among the results of a validation."""
    return {name: figures[name] for name in METRICS if name in figures}


def _describe(figures: dict[str, Any]) -> str:
    """One line, or three where there are two directions."""
    line = f"{describe_scores(_scores(figures))}  loss {figures['loss']:.3f}  perplexity {figures['perplexity']:.2f}"
    if "directions" not in figures:
        return line
    return "\n".join([f"{line}  (mean)", *(f"{_describe(one)}  {name}" for name, one in figures["directions"].items())])


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested options under dotted names."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return flat


def _program(name: str) -> str:
    """How to call a program of this environment: by name, or by its path where the environment is not activated."""
    folder = Path(sys.executable).parent
    is_on_path = str(folder) in os.environ.get("PATH", "").split(os.pathsep)
    return name if is_on_path or not (folder / name).exists() else os.path.relpath(folder / name)


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


def outcome_of(
    config: Config, directory: RunDirectory, result: TrainingResult, test: ValidationResult | None
) -> RunOutcome:
    return RunOutcome(
        run_dir=directory.path,
        model=config.model.kind,
        seed=config.seed,
        num_updates=result.progress.update,
        seconds=result.progress.seconds,
        valid_bleu=result.final.get("bleu"),
        test_bleu=test.figures().get("bleu") if test is not None else None,
        exit_code=result.exit_code,
    )


def finished_outcome(config: Config) -> RunOutcome:
    """The row of a run that was already complete, from its metrics.json."""
    run = RunDirectory(Path(str(config.run_dir)))
    with explain_damage(run.metrics, remedy=WRITTEN_AGAIN):
        figures = read_json(run.metrics)
        return RunOutcome(
            run_dir=run.path,
            model=config.model.kind,
            seed=config.seed,
            num_updates=figures["num_updates"],
            seconds=figures["seconds"],
            valid_bleu=(figures["validation"] or {}).get("bleu"),
            test_bleu=(figures["test"] or {}).get("bleu"),
            exit_code=0,
        )


def sweep_table(outcomes: Sequence[RunOutcome]) -> str:
    """One line for each run of a sweep."""
    rows = [["run", "model", "seed", "updates", "time", "valid BLEU", "test BLEU"]]
    for o in outcomes:
        scores = ["-" if bleu is None else f"{bleu:.2f}" for bleu in (o.valid_bleu, o.test_bleu)]
        rows.append([str(o.run_dir), o.model, str(o.seed), f"{o.num_updates:,}", format_seconds(o.seconds), *scores])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
