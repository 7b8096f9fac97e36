"""The exit codes that all commands share."""

import argparse
import atexit
import gc
import sys

import pytest

from translator.command import Parser, exit_code, positive, whole_number
from translator.errors import UserError


def raising(error: BaseException) -> int:
    raise error


def test_the_code_of_the_command_is_kept_and_none_is_success() -> None:
    assert exit_code("name", lambda: 7) == 7
    assert exit_code("name", lambda: None) == 0


def test_python_does_not_collect_garbage_at_exit(monkeypatch: pytest.MonkeyPatch) -> None:
    registered: list[object] = []
    monkeypatch.setattr(atexit, "register", registered.append)
    exit_code("name", lambda: 0)
    assert registered == [gc.freeze]


def test_a_user_error_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("train", lambda: raising(UserError("seed=x: must be a number"))) == 2
    assert capsys.readouterr() == ("", "train: seed=x: must be a number\n")


def test_control_c_has_the_conventional_code_and_other_errors_are_not_hidden() -> None:
    assert exit_code("name", lambda: raising(KeyboardInterrupt())) == 130
    with pytest.raises(ZeroDivisionError):
        exit_code("name", lambda: 1 // 0)


def test_a_broken_pipe_is_reported_by_the_code_alone(capfd: pytest.CaptureFixture[str]) -> None:
    assert exit_code("name", lambda: raising(BrokenPipeError())) == 141
    print("nobody reads this", file=sys.stdout, flush=True)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("text", ["0", "-3"])
def test_positive_numbers_are_positive(text: str) -> None:
    assert positive("12") == 12
    with pytest.raises(argparse.ArgumentTypeError, match=f"{text} must be at least 1"):
        positive(text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--bootstrap", "-1"], "compare: --bootstrap -1: must be a whole number from 1 to 9\n"),
        (["--bootstrep", "3"], "compare: unrecognized arguments: --bootstrep 3; did you mean --bootstrap?\n"),
        (["--xyz"], "compare: unrecognized arguments: --xyz; --help shows all\n"),
        (["--bootstrap"], "compare: --bootstrap: expected one argument\n"),
    ],
)
def test_mistakes_of_a_command_line_have_the_form_of_all_others(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = Parser(prog="python -m translator.compare")
    parser.add_argument("--bootstrap", type=whole_number(1, 9))
    with pytest.raises(SystemExit) as ending:
        parser.parse_args(arguments)
    assert ending.value.code == 2
    assert capsys.readouterr().err == message
