"""The commands as they are run by the cases.

Hydra reads the configuration three times before training starts, and the pictures and the report of a one-second run
take longer than all of its updates. Most cases therefore go straight to what `train` does with a configuration, without
them. Runs that ask for the report, and new processes, do everything.
"""

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import torch

from translator import cli, train, translate
from translator.build import views
from translator.build.checks import check_config
from translator.build.data import prepare_data
from translator.command import exit_code
from translator.config import Config
from translator.process_start import process_started

WITH_REPORT, WITHOUT_REPORT = "trainer.report=true", "trainer.report=false"


def train_command(arguments: Sequence[str]) -> Callable[[], int]:
    if WITH_REPORT in arguments:
        return whole_train_command(arguments)

    def work() -> int:
        torch.set_num_threads(1)
        without_pictures()
        return composed(arguments, lambda config: train.run(config, started=process_started()).exit_code)()

    return work


def whole_train_command(arguments: Sequence[str]) -> Callable[[], int]:
    """Everything that `python -m translator.train` does."""

    def work() -> int:
        torch.set_num_threads(1)
        sys.argv = ["train", *arguments]
        return train.main()

    return work


def without_pictures() -> None:
    """For the rest of this process: what is drawn is one black pixel."""
    setattr(views, "figure_pixels", lambda figure: np.zeros((1, 1, 3), np.uint8))  # noqa: B010


def prepare_command(arguments: Sequence[str]) -> Callable[[], int]:
    """The preparation of the data alone, with the messages and exit codes of `train`."""

    def prepare(config: Config) -> int:
        prepare_data(config)
        return 0

    return composed(arguments, prepare)


def translate_command(arguments: Sequence[str]) -> Callable[[], int]:
    def work() -> int:
        torch.set_num_threads(1)
        return translate.main(list(arguments))

    return work


class _IsOverError(BaseException):
    """The work is done and Hydra is not needed any more; nothing may catch it but this module."""


def composed(arguments: Sequence[str], use: Callable[[Config], int | None]) -> Callable[[], int]:
    """Does something with the configuration, once `train` has found nothing wrong with it; returns the exit code."""

    def run() -> int:
        codes: list[Any] = [0]

        def check(config: Config) -> None:
            check_config(config)
            codes.append(use(config) or 0)
            raise _IsOverError

        with suppress(_IsOverError):
            cli.main(lambda config: None, arguments, check=check)
        return int(codes[-1])

    def work() -> int:
        sys.argv = ["train", *arguments]
        return exit_code("train", run)

    return work
