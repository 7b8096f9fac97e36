"""The one exception that a command shows to its user as a plain sentence, and what makes such sentences helpful."""

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(Exception):
    """Something the user can put right: the message names the option or file, its value and the remedy.

    Commands print the message without a traceback and end with a non-zero exit code; every other exception is a defect
    of ours and keeps its traceback.
    """


def require(condition: bool, option: str, value: object, remedy: str) -> None:
    """Refuses an option's value with a message that says what to do instead."""
    if not condition:
        raise UserError(f"{option}={value}: {remedy}")


def nearest(name: str, available: Iterable[str]) -> str | None:
    """The available name that was probably meant, if one is near enough."""
    return next(iter(get_close_matches(name, list(available), n=1)), None)
