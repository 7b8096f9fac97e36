"""Charts for pages: a figure with its data, which assets/charts.js draws, and a table of the same numbers."""

import base64
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

import numpy as np

from translator.report.html import Markup, fold, json_script, table, tag

Rows = Sequence[Sequence[str]]


def asset(name: str) -> str:
    return (resources.files("translator.report") / "assets" / name).read_text(encoding="utf-8")


def chart(kind: str, title: str, spec: dict[str, Any], headings: Sequence[str] = (), rows: Rows = ()) -> Markup:
    """A figure. What it shows can also be read as a table, by people and by programs that read aloud."""
    return tag(
        "figure",
        tag("figcaption", title),
        tag("div", class_="plot"),
        json_script({"kind": kind, "title": title, **spec}),
        fold("Show the numbers", table(headings, rows)) if rows else None,
        class_="chart",
        data_kind=kind,
    )


def line_chart(
    title: str, series: Mapping[str, Sequence[tuple[float, float]]], *, x: str, y: str, digits: int = 2
) -> Markup:
    """Curves over a common axis: {name: [(x, y), …]}."""
    spec = {
        "x": x,
        "y": y,
        "digits": digits,
        "series": [{"name": name, "points": [list(point) for point in points]} for name, points in series.items()],
    }
    last = [(name, *points[-1]) for name, points in series.items() if points]
    rows = [
        (name, f"{value:.{digits}f}" if abs(value) >= 0.01 else f"{value:.3g}", f"{at:,g}") for name, at, value in last
    ]
    return chart("line", title, spec, ("curve", f"last {y}", f"at {x}"), rows)


def bar_chart(
    title: str,
    categories: Sequence[str],
    series: Mapping[str, Sequence[float | None]],
    *,
    x: str,
    y: str,
    digits: int = 1,
    percent: bool = False,
    notes: Sequence[str] = (),
    expected: Sequence[float] | None = None,
    maximum: float | None = None,
) -> Markup:
    """Groups of bars; a missing value has none. `expected` are marks where each bar should end."""
    spec = {
        "x": x,
        "y": y,
        "digits": digits,
        "percent": percent,
        "categories": list(categories),
        "notes": list(notes),
        "expected": None if expected is None else list(expected),
        "maximum": maximum,
        "series": [{"name": name, "values": list(values)} for name, values in series.items()],
    }
    rows = []
    for number, category in enumerate(categories):
        values = [values[number] for values in series.values()]
        shown = [number_text(value, digits, percent=percent) for value in values]
        rows.append([category, *shown, *([notes[number]] if notes else [])])
    return chart("bars", title, spec, (x, *series, *(["note"] if notes else [])), rows)


def heat_map(
    title: str,
    row_names: Sequence[str],
    column_names: Sequence[str],
    values: Sequence[Sequence[float]],
    *,
    digits: int = 2,
    percent: bool = False,
    maximum: float | None = None,
) -> Markup:
    """A grid of numbers, the darker the larger."""
    spec = {
        "rows": list(row_names),
        "columns": list(column_names),
        "values": [list(row) for row in values],
        "digits": digits,
        "percent": percent,
        "maximum": maximum,
    }
    rows = [
        [name, *(number_text(value, digits, percent=percent) for value in row)]
        for name, row in zip(row_names, values, strict=True)
    ]
    return chart("heatmap", title, spec, ("", *column_names), rows)


def attention_maps(title: str, maps: Sequence[dict[str, Any]]) -> Markup:
    """Sentences with the attention of every layer and head: {source, target, weights (L, H, T, S)}."""
    packed = []
    for one in maps:
        weights = np.array(one["weights"], dtype=np.float64)  # (L, H, T, S)
        packed.append(
            {
                "line": one["line"],
                "source": one["source"],
                "target": one["target"],
                "layers": weights.shape[0],
                "heads": weights.shape[1],
                "packed": packed_weights(weights),
            }
        )
    return chart("heads", title, {"maps": packed})


def packed_weights(weights: np.ndarray) -> str:
    """Weights between 0 and 1 as text with a byte for each, which assets/charts.js unpacks."""
    bytes_ = np.clip(np.round(weights * 255), 0, 255).astype(np.uint8).tobytes()
    return base64.b64encode(bytes_).decode()


def number_text(value: float | None, digits: int, *, percent: bool = False) -> str:
    if value is None:
        return "–"
    return f"{100 * value:.{digits}f} %" if percent else f"{value:,.{digits}f}"
