"""Command lines, exit codes and argument types shared by all commands."""

import argparse
import atexit
import gc
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

from translator.errors import UserError, nearest
from translator.files.destinations import STANDARD_STREAM, Destination, protect_inputs, writing

EXIT_USER_ERROR = 2
EXIT_INTERRUPTED = 130  # 128 + SIGINT
EXIT_BROKEN_PIPE = 141  # 128 + SIGPIPE


class Parser(argparse.ArgumentParser):
    """A command line whose mistakes get one line; the usage is shown by --help."""

    def print_help(self, file: Any = None) -> None:
        with writing(Destination("", STANDARD_STREAM)) as write:
            write(self.format_help())

    def error(self, message: str) -> NoReturn:
        """Under the same name as later errors, `compare` for `python -m translator.compare`, and in the same form."""
        message = re.sub(r"^(\S+): (\S+: must be )", r"\1 \2", message.removeprefix("argument "))
        if unknown := re.match(r"unrecognized arguments: (--[\w-]+)", message):
            near = nearest(unknown[1], self._option_string_actions)
            message += f"; did you mean {near}?" if near else "; --help shows all"
        self.exit(EXIT_USER_ERROR, f"{self.prog.rpartition('.')[2]}: {message}\n")


def exit_code(name: str, run: Callable[[], int | None]) -> int:
    """Runs a command and returns its exit code: 2 after a UserError, 130 after Ctrl-C, 141 after a broken pipe."""
    _open_standard_streams()
    atexit.register(gc.freeze)  # otherwise Python spends a second collecting garbage at exit
    try:
        code = run() or 0
    except UserError as error:
        say(f"{name}: {error}")
        code = EXIT_USER_ERROR
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    except BrokenPipeError:
        _discard_output()
        code = EXIT_BROKEN_PIPE
    except SystemExit as ending:  # of the argument parser
        raise SystemExit(_flushed(name, ending.code)) from None
    return int(_flushed(name, code) or 0)


def say(message: str) -> None:
    """A line for the user on the standard error; if it cannot be shown, the command continues."""
    with suppress(OSError):
        print(message, file=sys.stderr, flush=True)


def _open_standard_streams() -> None:
    """Opens closed standard streams on the null device, so that no other file gets their descriptors and output."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one
            assert opened == descriptor
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 (open until the process ends)


def _flushed(name: str, code: Any) -> Any:
    """The exit code once all output has been written."""
    if sys.stdout is None:
        return code
    try:
        sys.stdout.flush()
    except OSError as error:
        _discard_output()
        if isinstance(error, BrokenPipeError):
            return code or EXIT_BROKEN_PIPE
        if not code:
            say(f"{name}: standard output: cannot be written ({error.strerror or error})")
        return code or EXIT_USER_ERROR
    return code


def _discard_output() -> None:
    """Python flushes the standard output again at exit; that must not fail as well."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def open_outputs(inputs: Iterable[Path | None], **options: Path | None) -> Iterator[dict[str, Callable[[str], None]]]:
    """Functions that take a command's texts: "" for the standard output, and the name of each option that has a path.

    What cannot be written, or is one of the inputs, is refused before the block, and everything is written after it.
    """
    destinations = {name: Destination(f"--{name}", path) for name, path in options.items() if path is not None}
    if STANDARD_STREAM not in options.values():
        destinations = {"": Destination("", STANDARD_STREAM), **destinations}  # the first to be opened is written last
    protect_inputs(list(destinations.values()), [path for path in inputs if path is not None])
    with ExitStack() as stack:
        yield {name: stack.enter_context(writing(destination)) for name, destination in destinations.items()}


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


def add_direction(parser: argparse.ArgumentParser, default: str = "the run's data.target") -> None:
    parser.add_argument(
        "--to",
        metavar="LANGUAGE",
        help=f"the language to translate into, for runs with data.directions=both; default: {default}",
    )


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} must be at least 1")
    return number
