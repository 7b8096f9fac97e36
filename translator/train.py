"""Trains a model: python -m translator.train [model=lstm] [data=text data.train=…] …"""

import logging
import sys
from contextlib import closing, nullcontext, suppress

import torch

from translator import cli
from translator.build.checks import check_config
from translator.build.data import PreparedData, build_loader, prepare_data
from translator.build.preflight import check_memory, rehearse_validation
from translator.build.run_directory import check_places, claim_run_directory, continue_run
from translator.build.training import build_trainer
from translator.build.validation import build_validator
from translator.command import EXIT_USER_ERROR, exit_code
from translator.config import Config, to_yaml
from translator.errors import UserError
from translator.kernels.allocator import keep_memory
from translator.models.base import Seq2Seq
from translator.runs.model import build_model
from translator.train_report import RunOutcome, outcome_of, report, sweep_table
from translator.training.distributed import Ranks, connect, local_rank
from translator.training.monitor import Monitor, model_summary
from translator.training.precision import Execution, choose_execution
from translator.training.probe import probe
from translator.training.random_state import seed_everything
from translator.training.validation import Validator


def run(config: Config, *, num_held_out: int | None = None) -> RunOutcome:
    """Trains, evaluates and leaves everything in one folder.

    With `num_held_out`, validation is the loss of one batch and the translation of so many sentences, and there is no
    test.
    """
    if config.trainer.threads:
        torch.set_num_threads(config.trainer.threads)
    execution = choose_execution(config.trainer.device, config.trainer.precision, local_rank())
    if execution.device.type == "cpu":
        keep_memory()
    with connect(execution.device.type) as ranks:
        logging.basicConfig(level=logging.INFO if ranks.is_main else logging.WARNING, format="%(message)s", force=True)
        check_places(config)
        data = _prepare_in_turn(config, ranks)
        seed_everything(config.seed)
        vocab_sizes = data.tokenizer.source_vocab_size, data.tokenizer.target_vocab_size
        check_memory(config, *vocab_sizes, execution.device)
        model = build_model(config.model, *vocab_sizes)
        return _train(config, data, model.to(execution.device), execution, ranks, num_held_out)


def _train(
    config: Config,
    data: PreparedData,
    model: Seq2Seq,
    execution: Execution,
    ranks: Ranks,
    num_held_out: int | None,
) -> RunOutcome:
    # Assemble. Nothing is written before everything else was found right.
    loader = build_loader(config, data, ranks, pin_memory=execution.device.type == "cuda")
    validator = build_validator(config, data, model, execution, ranks)
    assert validator is not None
    if num_held_out is None:
        test_validator = build_validator(config, data, model, execution, ranks, split="test")
    else:
        validator, test_validator = validator.limited(num_held_out), None
    _probe(model, validator)
    rehearse_validation(config, data, model, validator, execution)
    if config.trainer.compile:
        model.compile()
    torch.manual_seed(config.seed + ranks.rank)  # each rank drops out other units
    directory = claim_run_directory(config, data, model, ranks)
    texts = {"model": model_summary(model), "configuration": to_yaml(config)}
    monitor = Monitor(directory.tensorboard, log_every=config.trainer.log_every, texts=texts, rank=ranks.rank)
    with directory.locked() if ranks.is_main else nullcontext(), loader, closing(monitor):
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
            if ranks.is_main:  # only now is it certain that the run continues with these options
                continue_run(config, directory)

        # Fit.
        result = trainer.fit()

        # Report.
        test = test_validator(model) if test_validator is not None and not result.signal else None
        if ranks.is_main and not result.signal:
            report(config, directory, model, result, test, monitor)
    return outcome_of(config, directory, result, test)


def _prepare_in_turn(config: Config, ranks: Ranks) -> PreparedData:
    """The first rank makes the tokenizer and the tables, which may take hours; the others find them made."""
    data = prepare_data(config) if ranks.is_main else None
    ranks.wait_for_all()
    return data or prepare_data(config)


def _probe(model: Seq2Seq, validator: Validator) -> None:
    """Refuses a model whose outputs depend on padding or on the future."""
    batch = next(iter(validator.batches))
    # Reduced-precision matrix products (TF32) round more than float32 does.
    tolerance = None if model.output_weight.device.type == "cpu" else 0.01
    probe(model, batch.source, batch.source_mask, batch.target_in, batch.target_mask, tolerance).refuse()


class _Stopped(BaseException):
    """A signal has ended a run; Hydra must not start the next one."""


def run_all() -> int:
    """Every run that the command line asks for, and a table where they are several."""
    outcomes: list[RunOutcome] = []
    codes: list[int] = [0]

    def job(config: Config) -> None:
        try:
            outcomes.append(run(config))
        except UserError as error:  # shown at once; the other runs of a sweep go on
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
