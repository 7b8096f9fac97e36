"""How an option is declared: a dataclass field with its type, default, help text and range.

Everything else follows from the field. `Options` checks every value when an instance is created, wherever it comes
from; `translator.schema.flags` turns the fields into flags of a command line.
"""

import math
from collections.abc import Callable
from dataclasses import Field, dataclass, field, fields, replace
from enum import Enum
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, ClassVar, Self, Union, get_args, get_origin, get_type_hints

from translator.errors import OptionError, UserError, nearest
from translator.schema.checks import did_you_mean

LARGEST = 2**31 - 1  # for whole numbers without an explicit maximum; anything larger is a typo
LARGEST_SEED = 2**63 - 1
LARGEST_SIZE = 65_536  # of a vector inside a model
MOST_LAYERS = 1_000
MOST_TOKENS = 10_000_000  # in a batch

TYPE_NAMES = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
_TYPES: dict[type, type] = {int: Integral, float: Real, bool: bool, str: str}


@dataclass(frozen=True)
class Declaration:
    """What a field says about its option besides type and default. The range of a list applies to its elements."""

    help: str
    minimum: float | None = None
    above: float | None = None
    maximum: float | None = None
    below: float | None = None
    flag: str | None = None  # default: the field's name with hyphens
    metavar: str | None = None

    def checked(self, value: Any, hint: Any) -> Any:
        """The value converted to the type `hint`; raises a ValueError that says what the value must be."""
        if get_origin(hint) in (Union, UnionType):
            if value is None:
                return None
            hint = next(alternative for alternative in get_args(hint) if alternative is not NoneType)
        if get_origin(hint) is list:
            if not isinstance(value, list | tuple):
                raise ValueError("must be a list")
            (element,) = get_args(hint)
            return [self.checked(item, element) for item in value]
        if not has_type(value, hint):
            raise ValueError(expected(hint, value))
        if hint in (int, float):
            return self._in_range(value, hint)
        return hint(value) if is_enum(hint) else value

    def _in_range(self, value: Any, kind: Callable[[Any], float]) -> float:
        try:
            number = kind(value)
        except OverflowError:  # a whole number too large for a float
            number = math.inf
        if kind is float and not math.isfinite(number):
            raise ValueError("must be a finite number")
        maximum = LARGEST if kind is int and self.maximum is None and self.below is None else self.maximum
        for is_wrong, remedy in (
            (self.minimum is not None and number < self.minimum, f"must be at least {self.minimum}"),
            (self.above is not None and number <= self.above, f"must be greater than {self.above}"),
            (maximum is not None and number > maximum, f"must be at most {maximum}"),
            (self.below is not None and number >= self.below, f"must be less than {self.below}"),
        ):
            if is_wrong:
                raise ValueError(remedy)
        return number


def option(default: Any, help: str, **declared: Any) -> Any:
    """A field of an `Options` class; the other arguments are those of `Declaration`.

    A list as the default is copied for every instance, and a class is the default of a group within a group.
    """
    metadata = {"declaration": Declaration(help, **declared)}
    if isinstance(default, list):
        return field(default_factory=default.copy, metadata=metadata)
    if isinstance(default, type):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


def declaration(option_field: "Field[Any]") -> Declaration:
    result: Declaration = option_field.metadata["declaration"]
    return result


@dataclass
class Options:
    """The base of all groups of options: every value is checked when an instance is created."""

    group: ClassVar[str] = ""  # the prefix of the options' names, as on the command line of `train`

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        for one in fields(self):
            if "declaration" not in one.metadata:
                continue
            value = getattr(self, one.name)
            try:
                setattr(self, one.name, declaration(one).checked(value, hints[one.name]))
            except ValueError as error:
                raise OptionError(self.full_name(one.name), value, str(error)) from None

    def full_name(self, name: str) -> str:
        return f"{self.group}.{name}" if self.group else name

    def require(self, condition: bool, name: str, remedy: str) -> None:
        """Refuses the value of one of the options unless the condition holds."""
        if not condition:
            raise OptionError(self.full_name(name), getattr(self, name), remedy)

    def changed(self, **changes: Any) -> Self:
        """A copy with some options changed; invalid values are refused under the names used here."""
        names = [one.name for one in fields(self)]
        for name in changes:
            if name not in names:
                raise UserError(f"{name}: unknown option; {did_you_mean(name, names)}")
        try:
            return replace(self, **changes)
        except OptionError as error:
            raise OptionError(error.option.removeprefix(f"{self.group}."), error.value, error.remedy) from None


def is_enum(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Enum)


def has_type(value: Any, hint: Any) -> bool:
    """Whether a value is valid for the type `hint`; a member of an enumeration is given by its name."""
    if is_enum(hint):
        return value in [member.value for member in hint]
    if hint not in _TYPES:
        return True
    return isinstance(value, _TYPES[hint]) and (hint is bool or not isinstance(value, bool))


def expected(hint: Any, value: object) -> str | None:
    """What is expected instead of a value of the wrong type."""
    if is_enum(hint):
        choices = [member.value for member in hint]
        near = nearest(str(value), choices)
        return f"must be one of {', '.join(choices)}" + (f"; did you mean {near}?" if near else "")
    return f"must be {TYPE_NAMES[hint]}" if hint in TYPE_NAMES else None
