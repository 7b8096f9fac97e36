"""The options of a group as flags of a command line."""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, Field, fields
from typing import Any, get_args, get_origin, get_type_hints

from translator.errors import OptionError, UserError
from translator.schema.options import Options, declaration, is_enum


def add_arguments(group: "argparse._ArgumentGroup", schema: type[Options], *, show_defaults: bool = False) -> None:
    """Adds a flag for every option. Flags not given are left out of the namespace, so they have no default here.

    `show_defaults` is for options whose defaults are those of the schema, rather than of a run's configuration.
    """
    for one in fields(schema):
        hint = get_type_hints(schema)[one.name]
        text = declaration(one).help.replace("%", "%%")
        if show_defaults and one.default not in (MISSING, ""):
            text += f"; default: {one.default}"
        common: dict[str, Any] = {"dest": one.name, "help": text, "default": argparse.SUPPRESS}
        if hint is bool:
            group.add_argument(flag(one), action=argparse.BooleanOptionalAction, **common)
        else:
            group.add_argument(flag(one), action=_Checked, option=one, hint=hint, metavar=_metavar(one, hint), **common)


def given(namespace: argparse.Namespace, schema: type[Options]) -> dict[str, Any]:
    """The options that the user gave."""
    return {one.name: getattr(namespace, one.name) for one in fields(schema) if hasattr(namespace, one.name)}


@contextmanager
def naming_flags(schema: type[Options], *others: str) -> Iterator[None]:
    """An error about an option of the schema, or one of the others, names its flag, which is what the user typed."""
    flags = {one.name: flag(one) for one in fields(schema)} | {name: f"--{name}" for name in others}
    try:
        yield
    except OptionError as error:
        if error.option not in flags:
            raise
        given_as = flags[error.option] if error.value is True else f"{flags[error.option]} {error.value}"
        raise UserError(f"{given_as}: {error.remedy}") from error


def flag(option: "Field[Any]") -> str:
    return declaration(option).flag or "--" + option.name.replace("_", "-")


class _Checked(argparse.Action):
    """Stores a value in its type and within its range. A list takes one element each time the flag is given."""

    def __init__(self, *arguments: Any, option: "Field[Any]", hint: Any, **others: Any) -> None:
        super().__init__(*arguments, **others)
        self.declaration = declaration(option)
        self.is_list = get_origin(hint) is list
        self.hint = get_args(hint)[0] if self.is_list else hint

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        try:
            value = self.declaration.checked(_converted(str(values), self.hint), self.hint)
        except ValueError as error:
            parser.error(f"{option_string} {values}: {error}")
        setattr(namespace, self.dest, [*getattr(namespace, self.dest, []), value] if self.is_list else value)


def _converted(text: str, hint: Any) -> Any:
    """The number that the text stands for; anything else is returned unchanged, to be refused by the check."""
    kind = next((one for one in (int, float) if hint is one or one in get_args(hint)), str)  # also `float | None`
    try:
        return kind(text)
    except ValueError:
        return text


def _metavar(option: "Field[Any]", hint: Any) -> str:
    if is_enum(hint):
        return "{" + ",".join(member.value for member in hint) + "}"
    return declaration(option).metavar or ("N" if hint is int else "X" if hint is float else "TEXT")
