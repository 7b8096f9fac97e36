"""Errors that can be detected from the configuration alone, before any data is read."""

import os

from translator.build.preflight import check_memory
from translator.config import AUTO, Config
from translator.devices import choose_device
from translator.errors import require
from translator.evaluation.metrics import quick_metrics
from translator.schema.checks import did_you_mean
from translator.schema.training import Consistency
from translator.training.distributed import local_rank
from translator.training.objectives import objective_names

MOST_PER_CORE = 16  # threads or processes; more of them may not even start
SMALLEST_VOCABULARY = 8  # pieces: until the tokenizer is trained, the actual number is unknown


def check_config(config: Config) -> None:
    """Refuses unknown names, more workers than the machine can run and models too large for it."""
    _check_names(config)
    _check_workers(config)
    _check_compilation(config)
    _check_consistency(config)
    device = choose_device(config.trainer.device, local_rank())
    check_memory(config, SMALLEST_VOCABULARY, SMALLEST_VOCABULARY, device)


def _check_names(config: Config) -> None:
    """Refuses names that are not registered and suggests the most similar one."""
    for option, name, known in (
        ("trainer.best_metric", config.trainer.best_metric, ["loss", *quick_metrics()]),
        ("optim.loss", config.optim.loss, objective_names()),
    ):
        require(name in known, option, name, f"not available; {did_you_mean(name, known)}")


def _check_workers(config: Config) -> None:
    num_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for option, number in (
        ("trainer.threads", config.trainer.threads),
        ("data.num_processes", config.data.num_processes),
    ):
        remedy = f"this machine has {num_cores} cores; give 0 for one for each core"
        require(number <= MOST_PER_CORE * num_cores, option, number, remedy)


def _check_compilation(config: Config) -> None:
    require(
        not config.trainer.compile or config.model.kind != "lstm",
        "trainer.compile",
        "true",
        "a recurrence is compiled again for every sentence length, which takes longer than it saves; leave it out "
        "with model.kind=lstm",
    )


def _check_consistency(config: Config) -> None:
    options = config.optim.consistency
    rates = [value for name, value in vars(config.model).items() if name.endswith("dropout")]
    if config.optim.loss == "consistency":
        remedy = "without dropout both passes are the same; set model.dropout or optim.consistency.cutoff above 0"
        require(options.cutoff > 0 or any(rate > 0 for rate in rates), "optim.loss", "consistency", remedy)
    if config.resume not in (False, AUTO):
        return  # what follows used to be accepted, and a run goes on as it began
    defaults = vars(Consistency())
    for name, value in vars(options).items():
        remedy = f"is only used with optim.loss=consistency; set that, or optim.consistency.{name}={defaults[name]}"
        is_used = config.optim.loss == "consistency" or value == defaults[name]
        require(is_used, f"optim.consistency.{name}", value, remedy)
    remaining = 1 - options.start
    remedy = f"from start={options.start:g} on, the full weight would never be reached; give at most {remaining:g}"
    require(options.ramp <= remaining + 1e-6, "optim.consistency.ramp", options.ramp, remedy)
