"""Trains a model: python -m translator.train [model=lstm] [data=text data.train=…] …"""

import logging
import sys
import time
from collections.abc import Callable
from contextlib import closing, nullcontext, suppress
from dataclasses import replace
from functools import partial
from itertools import chain, repeat

import torch

from translator import cli
from translator.build.agreement import check_same_data, check_same_options
from translator.build.checks import check_config
from translator.build.data import PreparedData, build_loader, prepare_data
from translator.build.end_report import EndReport, KeptTranslations, core_seconds, reserved_seconds
from translator.build.initial_weights import TakenOver, take_over_weights, with_initial_tokenizer
from translator.build.preflight import check_memory, rehearse_validation
from translator.build.run_directory import (
    check_places,
    claim_run_directory,
    continue_run,
    decide_resume,
    is_complete,
)
from translator.build.training import build_trainer
from translator.build.validation import build_validator
from translator.build.views import RunViews
from translator.command import EXIT_USER_ERROR, exit_code
from translator.config import Config, to_yaml
from translator.errors import Interrupted, UserError
from translator.files.atomic import remove_abandoned_files
from translator.kernels.allocator import keep_memory
from translator.models.base import Seq2Seq
from translator.process_start import process_started
from translator.runs.directory import RunDirectory
from translator.runs.model import build_model, spare_tags
from translator.train_report import RunOutcome, finished_outcome, outcome_of, report, sweep_table
from translator.training.distributed import Ranks, connect, local_rank
from translator.training.monitor import Monitor, format_seconds, model_summary
from translator.training.precision import Execution, choose_execution
from translator.training.probe import probe
from translator.training.random_state import seed_everything
from translator.training.signals import Interruption, StopSignals, stop_message
from translator.training.trainer import Trainer, TrainingResult
from translator.training.two_way import AnyValidator


def run(config: Config, *, started: float | None = None, num_held_out: int | None = None) -> RunOutcome:
    """Trains, evaluates and leaves everything in one folder.

    `started` is when its time began, on the clock of `time.monotonic`; by default it begins now. With `num_held_out`,
    validation is the loss of one batch and the translation of that many sentences, and there is no test.
    """
    started = time.monotonic() if started is None else started
    if config.trainer.threads:
        torch.set_num_threads(config.trainer.threads)
    execution = choose_execution(config.trainer.device, config.trainer.precision, local_rank())
    if execution.device.type == "cpu":
        keep_memory()
    with connect(execution.device.type) as ranks:
        logging.basicConfig(level=logging.INFO if ranks.is_main else logging.WARNING, format="%(message)s", force=True)
        config = decide_resume(with_initial_tokenizer(config), ranks)
        check_same_options(config, ranks)
        check_places(config)
        finished = _finished(config, ranks)
        if finished is not None:
            return finished
        data = _prepare_in_turn(config, ranks)
        check_same_data(data, ranks)
        seed_everything(config.seed)
        vocab_sizes = data.tokenizer.source_vocab_size, data.tokenizer.target_vocab_size
        check_memory(config, *vocab_sizes, execution.device)
        model = build_model(config.model, *vocab_sizes)
        spare_tags(model, data.tokenizer)
        initial = take_over_weights(config, model)
        return _train(config, data, model.to(execution.device), execution, ranks, started, num_held_out, initial)


def _train(
    config: Config,
    data: PreparedData,
    model: Seq2Seq,
    execution: Execution,
    ranks: Ranks,
    started: float,
    num_held_out: int | None,
    initial: TakenOver | None,
) -> RunOutcome:
    # Assemble. Nothing is written before everything else has been checked.
    loader = build_loader(config, data, ranks, pin_memory=execution.device.type == "cuda")
    signals = StopSignals()
    interruption = Interruption(signals, ranks)
    build = partial(build_validator, config, data, model, execution, ranks, interrupted=interruption.requested)
    kept = KeptTranslations()
    validator, test_validator = _validators(build, kept, num_held_out)
    _probe(model, validator)
    rehearse_validation(config, data, model, validator, execution)
    if config.trainer.compile:
        model.compile()
    torch.manual_seed(config.seed + ranks.rank)  # each rank uses different dropout masks
    directory = claim_run_directory(config, data, model, ranks, initial)
    monitor = _open_monitor(config, data, model, directory, ranks)
    with signals, directory.locked() if ranks.is_main else nullcontext(), loader, closing(monitor):
        trainer = build_trainer(
            config,
            model=model,
            loader=loader,
            validator=validator,
            monitor=monitor,
            execution=execution,
            ranks=ranks,
            run=directory,
            interruption=interruption,
            work_after_fit=test_validator.size / validator.size if test_validator else 0.0,
            reserved_seconds=0.0 if num_held_out else reserved_seconds(config, kept.num_sentences),
            started=started,
        )
        if config.resume:
            trainer.resume()
            if ranks.is_main:  # only now is it certain that the run continues with these options
                continue_run(config, directory)

        # Fit.
        result = trainer.fit()

        # Test and report.
        test = None
        if not result.signal:
            with suppress(Interrupted):
                if test_validator is not None:
                    test = trainer.deadline.test(partial(test_validator, model))
                if ranks.is_main:
                    split, held_out, figures = "valid", validator, result.final
                    if test_validator is not None:
                        split, held_out, figures = "test", test_validator, test.figures() if test else {}
                    hypotheses = kept.with_scores(figures)
                    is_late = _lateness(config, trainer, kept.num_sentences)
                    page = EndReport(config, data, directory, monitor.notify, is_late)
                    if num_held_out is None:  # before metrics.json, which marks a complete run
                        page.keep(split, held_out, hypotheses)
                    report(config, directory, model, result, test, monitor, trainer.deadline.left_out)
                    if num_held_out is None:
                        page.write(split, held_out, hypotheses)
            result = _stopped_late(result, directory, interruption.agreed(), monitor if ranks.is_main else None)
    return outcome_of(config, directory, result, test)


def _validators(
    build: Callable[..., AnyValidator | None], kept: KeptTranslations, num_held_out: int | None
) -> tuple[AnyValidator, AnyValidator | None]:
    """The validator and, if there is a test set, its own; `kept` keeps the translations that the report shows."""
    validator = build()
    assert validator is not None
    if num_held_out is not None:
        return kept.watch(validator.limited(slice(num_held_out))), None
    test_validator = build(split="test")
    if test_validator is None:
        return kept.watch(validator), None
    return validator, kept.watch(test_validator)


def _open_monitor(config: Config, data: PreparedData, model: Seq2Seq, directory: RunDirectory, ranks: Ranks) -> Monitor:
    texts = {"model": model_summary(model), "configuration": to_yaml(config)}
    views = RunViews(model, data)
    return Monitor(directory.tensorboard, log_every=config.trainer.log_every, texts=texts, views=views, rank=ranks.rank)


def _lateness(config: Config, trainer: Trainer, num_sentences: int) -> Callable[[], bool]:
    """Tells whether to skip the rest of the report, because the user wants to stop or the time is up.

    On a busy machine the report takes longer, in proportion to the share of a core that this process has had so far.
    It is not started unless all of it fits, and sections are skipped once half of it would no longer fit.
    """
    limit = config.trainer.max_seconds
    if limit is None or not trainer.deadline.is_binding:
        return trainer.interruption.requested
    share_of_core = min(1.0, time.process_time() / max(1e-9, time.monotonic() - process_started()))
    needed = core_seconds(num_sentences) / max(share_of_core, 1e-3)
    end = limit - trainer.time.exit_seconds
    is_too_late = trainer.time.seconds + needed > end

    def is_late() -> bool:
        return is_too_late or trainer.interruption.requested() or trainer.time.seconds + needed / 2 > end

    return is_late


def _stopped_late(
    result: TrainingResult, directory: RunDirectory, signal_number: int, monitor: Monitor | None
) -> TrainingResult:
    """The result after the test set and the report: the same, unless a signal came meanwhile."""
    if not signal_number:
        return result
    if monitor is not None:
        is_complete = directory.metrics.exists()
        moment = "when everything was done" if is_complete else "after training, before the test set was scored"
        monitor.notify(stop_message(signal_number, moment, directory.path))
    return replace(result, stopped_by="signal", signal=signal_number)


def _finished(config: Config, ranks: Ranks) -> RunOutcome | None:
    """The outcome of the run to be resumed if there is nothing left to do; the first rank decides."""
    outcome = finished_outcome(config) if ranks.is_main and config.resume and is_complete(config) else None
    if outcome is not None:
        remove_abandoned_files(outcome.run_dir)
        seconds = config.trainer.max_seconds
        limit = f"max_time={format_seconds(2 * seconds)}" if seconds else f"max_updates={2 * outcome.num_updates}"
        more = f"resume={outcome.run_dir} trainer.{limit}"
        print(
            f"{outcome.run_dir}: complete, after {outcome.num_updates:,} updates; to train longer, give {more}",
            file=sys.stderr,
        )
    result: RunOutcome | None = ranks.gather(outcome)[0]
    return result


def _prepare_in_turn(config: Config, ranks: Ranks) -> PreparedData:
    """The first rank makes the tokenizer and the tables, which may take hours; the others reuse them."""
    data = prepare_data(config) if ranks.is_main else None
    ranks.wait_for_all()
    return data or prepare_data(config)


def _probe(model: Seq2Seq, validator: AnyValidator) -> None:
    """Refuses a model whose outputs depend on padding or on the future."""
    batch = next(iter(validator.batches))
    # Reduced-precision matrix products (TF32) round more than float32 does.
    tolerance = None if model.output_weight.device.type == "cpu" else 0.01
    probe(model, batch.source, batch.source_mask, batch.target_in, batch.target_mask, tolerance).refuse()


class _Stopped(BaseException):
    """A signal has ended a run; Hydra must not start the next one."""


def run_all() -> int:
    """Every run that the command line asks for, and a table if there are several."""
    outcomes: list[RunOutcome] = []
    codes: list[int] = [0]
    starts = chain([process_started()], repeat(None))  # the time of a later run of a sweep begins with that run

    def job(config: Config) -> None:
        try:
            outcomes.append(run(config, started=next(starts)))
        except UserError as error:  # shown at once; the other runs of a sweep continue
            print(f"train: {error}", file=sys.stderr)
            codes.append(EXIT_USER_ERROR)
            return
        codes.append(outcomes[-1].exit_code)
        if codes[-1]:
            raise _Stopped

    with suppress(_Stopped):
        cli.main(job, check=check_config)
    if len(outcomes) > 1:
        print(sweep_table(outcomes))
    return max(codes)


def main() -> int:
    return exit_code("train", run_all)


if __name__ == "__main__":
    sys.exit(main())
