"""What chapters have in common."""

from collections.abc import Sequence
from typing import Any

from translator.atlas.shipped import provenance_text
from translator.report.html import Child, Markup, join, tag


def text(*children: Child) -> Markup:
    """A paragraph."""
    return tag("p", *children, class_="text")


def code(words: str) -> Markup:
    return tag("code", words)


def look(*children: Child) -> Markup:
    """What to look at in the figure above."""
    return tag("p", tag("strong", "Look: "), *children, class_="look")


def made_by(chapter: str, module: str, measurement: dict[str, Any] | None = None) -> Markup:
    """The command that makes the figures of a chapter, and the module that computes these."""
    if measurement is not None:
        command, where = measurement["provenance"]["command"], f", {provenance_text(measurement)}."
        return tag("p", "Made by ", code(command), where, class_="made")
    command = f"python -m translator.atlas --only {chapter} --json -"
    end = join(", computed in ", code(f"translator/atlas/figures/{module}.py"), ".")
    return tag("p", "Made by ", code(command), end, class_="made")


def missing(what: str, command: str) -> Markup:
    """Shown instead of a figure that lacks its material: the command that provides it."""
    return tag("p", what, " ", code(command), class_="note")


def columns(*children: Child) -> Markup:
    return tag("div", *children, class_="columns")


def paired(xs: Sequence[float], ys: Sequence[float]) -> list[tuple[float, float]]:
    """Points of a curve."""
    return list(zip(xs, ys, strict=True))


def tiles(values: Sequence[tuple[str, str, str]]) -> Markup:
    """Large numbers, each with what it is and a remark."""
    return tag(
        "div",
        [
            tag(
                "div",
                tag("div", what, class_="what"),
                tag("div", number, class_="big"),
                tag("div", remark, class_="small"),
                class_="tile",
            )
            for what, number, remark in values
        ],
        class_="tiles",
    )
