"""Charts of functions: curves and points on linear or logarithmic axes, pictures of large grids, and sliders.

A page with pictures or sliders has the script explore.js beside that of all charts.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from translator.report.charts import chart
from translator.report.html import Markup

MOST_ROWS = 60  # of the table below a chart; a curve with more points is thinned out


@dataclass(frozen=True)
class Curve:
    """`mode` is "line", "points", or "both", which is a line with dots."""

    name: str
    points: Sequence[Sequence[float]]  # (x, y)
    mode: str = "line"
    dashed: bool = False
    colour: int | None = None  # 0 … 5; by default the place among the curves of the chart

    def to_dict(self, digits: int = 5) -> dict[str, Any]:
        found: dict[str, Any] = {"name": self.name, "mode": self.mode, "dashed": self.dashed}
        found["points"] = [[significant(x, digits), significant(y, digits)] for x, y in self.points]
        return found if self.colour is None else {**found, "colour": self.colour}


def significant(value: float, digits: int) -> float:
    """Rounded to this many significant digits, which halves the size of the page."""
    return float(f"{value:.{digits}g}")


def curve_spec(
    title: str,
    curves: Sequence[Curve],
    *,
    x: str,
    y: str,
    digits: int = 2,
    x_digits: int = 0,
    log_x: bool = False,
    log_y: bool = False,
    x_range: tuple[float, float] | None = None,
    y_range: tuple[float, float] | None = None,
) -> dict[str, Any]:
    """What charts.js draws; also a panel of `frames_chart`. Values outside a fixed range are not drawn."""
    spec: dict[str, Any] = {"kind": "line", "title": title, "x": x, "y": y, "digits": digits, "xDigits": x_digits}
    spec |= {"xScale": "log"} if log_x else {}
    spec |= {"yScale": "log"} if log_y else {}
    spec |= {"xRange": list(x_range)} if x_range else {}
    spec |= {"yRange": list(y_range)} if y_range else {}
    return {**spec, "series": [curve.to_dict() for curve in curves]}


def curve_chart(title: str, curves: Sequence[Curve], *, x: str, y: str, **options: Any) -> Markup:
    """Curves and points, with all options of `curve_spec`."""
    spec = curve_spec(title, curves, x=x, y=y, **options)
    return chart("line", title, spec, (x, *(curve.name for curve in curves)), _rows(curves))


def _rows(curves: Sequence[Curve]) -> list[list[str]]:
    places = sorted({point[0] for curve in curves for point in curve.points})
    places = places[:: -(-len(places) // MOST_ROWS)]
    tables = [{point[0]: point[1] for point in curve.points} for curve in curves]
    return [[f"{x:.6g}", *(f"{table[x]:.4g}" if x in table else "" for table in tables)] for x in places]


def image_spec(
    title: str,
    values: "np.ndarray[Any, Any]",  # (rows, columns)
    *,
    x: str,
    y: str,
    digits: int = 2,
    low: float | None = None,
    high: float | None = None,
    row_names: Sequence[str] | None = None,
    column_names: Sequence[str] | None = None,
    height: int | None = None,
) -> dict[str, Any]:
    """A large grid as a picture; values below `low` or above `high` are clipped."""
    low = min(0.0, float(values.min())) if low is None else low
    high = float(values.max()) if high is None else high
    shares = (np.clip(values, low, high) - low) / ((high - low) or 1.0)
    spec: dict[str, Any] = {"kind": "image", "title": title, "x": x, "y": y, "digits": digits}
    spec |= {"shape": list(values.shape), "low": low, "high": high}
    spec["packed"] = base64.b64encode(np.round(shares * 65535).astype(">u2").tobytes()).decode()
    spec |= {"rowNames": list(row_names)} if row_names else {}
    spec |= {"columnNames": list(column_names)} if column_names else {}
    return spec | ({"height": height} if height else {})


def image_chart(title: str, values: "np.ndarray[Any, Any]", *, x: str, y: str, **options: Any) -> Markup:
    """With all options of `image_spec`."""
    return chart("image", title, image_spec(title, values, x=x, y=y, **options))


@dataclass(frozen=True)
class Frame:
    """What a position of the slider shows: for each panel, what is added to its common specification."""

    label: str
    panels: Sequence[dict[str, Any]]
    note: str = ""


def frames_chart(
    title: str,
    control: str,
    common: Sequence[dict[str, Any]],
    frames: Sequence[Frame],
    *,
    start: int = 0,
    headings: Sequence[str] = (),
    rows: Sequence[Sequence[str]] = (),
) -> Markup:
    """A slider between precomputed charts. The series of `common` are drawn in every frame."""
    spec = {
        "control": control,
        "common": list(common),
        "start": start,
        "frames": [{"label": one.label, "note": one.note, "panels": list(one.panels)} for one in frames],
    }
    return chart("frames", title, spec, headings, rows)
