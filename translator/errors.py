"""The exception for errors that the user can fix, with helpers for its messages, and the one for work given up."""

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(Exception):
    """An error that the user can fix: the message names the option or file, its value and the remedy.

    Commands print the message without a traceback and exit with a non-zero code; any other exception is a bug and keeps
    its traceback.
    """


class Interrupted(Exception):  # noqa: N818 - a request, not an error
    """Work was given up because the process was asked to stop; raised by code that polls, never by a signal handler."""


class OptionError(UserError):
    """An option with a value that it cannot have. A command may name the option as its user does."""

    def __init__(self, option: str, value: object, remedy: str) -> None:
        super().__init__(option, value, remedy)
        self.option, self.value, self.remedy = option, value, remedy

    def __str__(self) -> str:
        return f"{self.option}={self.value}: {self.remedy}"


def require(condition: bool, option: str, value: object, remedy: str) -> None:
    """Raises a UserError that says what to do instead, unless the condition holds."""
    if not condition:
        raise OptionError(option, value, remedy)


def nearest(name: str, available: Iterable[str]) -> str | None:
    """The available name that was probably meant, if one is similar enough."""
    return next(iter(get_close_matches(name, list(available), n=1)), None)
