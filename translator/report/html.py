"""HTML from Python: every text is escaped, unless it is markup already."""

import html
import json
from collections.abc import Iterable
from typing import Any

VOID = {"br", "hr", "input", "meta"}


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = Markup | str | int | None | Iterable[Any]


def tag(name: str, /, *children: Child, **attributes: str | int | bool | None) -> Markup:
    """An element. `class_` is written class, `data_kind` data-kind; True is an attribute without a value."""
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{join(*children)}</{name}>")


def join(*children: Child) -> Markup:
    """Children one after the other; nested lists are flattened, None is nothing."""
    return Markup("".join(_child(child) for child in children))


def _child(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return child
    if isinstance(child, str | int):
        return html.escape(str(child))
    return join(*child)


def _attribute(key: str, value: str | int | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{html.escape(str(value))}"'


def json_script(value: Any, **attributes: str) -> Markup:
    """Data for scripts."""
    return tag("script", json_text(value), type="application/json", **attributes)


def json_text(value: Any) -> Markup:
    """JSON in which no text can end the element, since every "<" is written as an escape."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def table(headings: Iterable[str], rows: Iterable[Iterable[Child]], *, class_: str = "") -> Markup:
    """A table whose first column names the rows. Cells that begin with a digit or a sign are aligned as numbers."""
    head = tag("tr", [tag("th", heading, scope="col") for heading in headings])
    body = [
        tag("tr", [tag("th" if n == 0 else "td", cell, **_cell(n, cell)) for n, cell in enumerate(row)]) for row in rows
    ]
    return tag("div", tag("table", tag("thead", head), tag("tbody", body), class_=class_ or None), class_="scroll")


def _cell(number: int, cell: Child) -> dict[str, str]:
    if number == 0:
        return {"scope": "row"}
    is_number = isinstance(cell, int) or (isinstance(cell, str) and cell[:1] in set("0123456789+−–-"))
    return {"class_": "number"} if is_number else {}


def fold(summary: str, *children: Child) -> Markup:
    """Something that is shown when its heading is clicked."""
    return tag("details", tag("summary", summary), *children)
