"""The exit codes that all commands share."""

import argparse
import atexit
import gc
import sys

import pytest

from translator.command import exit_code, positive
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
