"""NAME=VALUE arguments as Hydra understands them, and refusals of those that it does not.

Hydra's grammar knows neither letters beyond ASCII nor brackets within a value, so that paths and expressions such as
train[:50%] would have to be quoted, inside quotes for the shell. They are quoted here.
"""

import re
from pathlib import Path

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import OverrideParseException

from translator.errors import UserError
from translator.schema.checks import did_you_mean

_LINE_BREAKS = "\n\r"
_SHOWN_CHARACTERS = 60  # of a value that has thousands
_ALREADY_STRUCTURED = ("'", '"', "{")  # quoted, or a dictionary: left as it is


def quoted(argument: str) -> str:
    """The argument with quotes around the values, or list elements, that Hydra could not parse without them."""
    name, equals, value = argument.partition("=")
    if equals and set(value) & set(_LINE_BREAKS):
        raise UserError(f"{name}={value.splitlines()[0]}…: no option takes a line break; give one line")
    if argument.startswith("-") or not equals or value.startswith(_ALREADY_STRUCTURED) or _is_readable(argument):
        return argument
    start, end = ("[", "]") if value.startswith("[") and value.endswith("]") else ("", "")
    elements = value.removeprefix(start).removesuffix(end).split(",")
    readable = [element if _is_readable(f"{name}={element}") else _quote(element) for element in elements]
    return f"{name}={start}{','.join(readable)}{end}"


def parse_overrides(arguments: list[str], groups: dict[str, list[str]]) -> list[Override]:
    """The parsed arguments; `groups` are the groups of configurations with their choices."""
    overrides = []
    for argument in arguments:
        try:
            overrides += OverridesParser.create().parse_overrides([argument])
        except OverrideParseException as error:
            raise UserError(
                f"{argument}: not understood; write NAME=VALUE; quotes and brackets must come in pairs"
            ) from error
    for override in overrides:
        _check(override, groups)
    return overrides


def group_choices(folder: Path, groups: tuple[str, ...]) -> dict[str, list[str]]:
    """The configurations of each group: the files in its folder."""
    return {group: sorted(file.stem for file in (folder / group).glob("*.yaml")) for group in groups}


def _check(override: Override, groups: dict[str, list[str]]) -> None:
    name, line = override.key_or_group, override.input_line
    if not name:
        raise UserError(f"{line}: the name of the option is missing; write NAME=VALUE")
    if override.is_delete():
        raise UserError(f"{line}: an option cannot be removed; give it another value as NAME=VALUE")
    if override.is_sweep_override():
        return
    value = override.value()
    if "???" in (value if isinstance(value, list) else [value]):
        raise UserError(f"{line}: ??? stands for a value that is missing; give one")
    if name in groups and not isinstance(value, str):
        raise UserError(f"{line}: names one configuration; {did_you_mean(str(value), groups[name])}")


def _is_readable(argument: str) -> bool:
    try:
        OverridesParser.create().parse_overrides([argument])
    except OverrideParseException:
        return False
    except ValueError as error:  # thousands of digits
        raise UserError(f"{argument[:_SHOWN_CHARACTERS]}…: too large a number") from error
    return True


def _quote(value: str) -> str:
    """In single quotes, where a backslash is special only before a quote and must be doubled there."""
    escaped = re.sub(r"(\\*)('|$)", lambda found: 2 * found[1] + (r"\'" if found[2] else ""), value)
    return f"'{escaped}'"
