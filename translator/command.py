"""Command lines, exit codes and argument types shared by all commands."""

import argparse
import os
import sys
from collections.abc import Callable
from typing import NoReturn

from translator.errors import UserError

EXIT_USER_ERROR = 2
EXIT_INTERRUPTED = 130  # 128 + SIGINT
EXIT_BROKEN_PIPE = 141  # 128 + SIGPIPE


class Parser(argparse.ArgumentParser):
    """A command line whose mistakes get one line; the usage is shown by --help."""

    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_USER_ERROR, f"{self.prog}: {message.removeprefix('argument ')}\n")


def exit_code(name: str, run: Callable[[], int | None]) -> int:
    """Runs a command and returns its exit code: 2 after a UserError, 130 after Ctrl-C, 141 after a broken pipe."""
    try:
        code = run() or 0
        sys.stdout.flush()
        return code
    except UserError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return EXIT_USER_ERROR
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # Python flushes stdout again at exit; that must not fail as well.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE


def whole_number(minimum: int, maximum: int) -> Callable[[str], int]:
    """The type of an argument that must lie within these bounds."""

    def convert(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = minimum - 1
        if not minimum <= number <= maximum:
            raise argparse.ArgumentTypeError(f"{text}: must be a whole number from {minimum} to {maximum}")
        return number

    return convert


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} must be at least 1")
    return number
