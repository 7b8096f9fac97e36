"""Charts of functions: what the script is given, and the tables below the charts."""

import base64
import json
import re
from typing import Any

import numpy as np

from translator.report.curves import Curve, Frame, curve_chart, frames_chart, image_chart, image_spec, significant


def spec_of(markup: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json">(.*?)</script>', markup)
    assert found
    result: dict[str, Any] = json.loads(found[1])
    return result


def test_curves_and_their_table() -> None:
    first = Curve("first", [(1, 2.0), (2, 1 / 3)], "points", colour=4)
    second = Curve("second", [(1, 5.0)], dashed=True)
    markup = curve_chart("title", [first, second], x="n", y="seconds", log_x=True, y_range=(0.0, 1.0))
    spec = spec_of(markup)
    assert (spec["xScale"], spec.get("yScale"), spec["yRange"]) == ("log", None, [0, 1])
    assert spec["series"][0] == {
        "name": "first", "mode": "points", "dashed": False, "points": [[1, 2], [2, 0.33333]], "colour": 4,
    }  # fmt: skip
    assert spec["series"][1]["dashed"]
    assert re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", markup) == [
        "n",
        "first",
        "second",
        "1",
        "2",
        "5",
        "2",
        "0.3333",
        "",
    ]


def test_a_long_curve_has_a_short_table() -> None:
    markup = curve_chart("long", [Curve("one", [(n, n) for n in range(1_000)])], x="x", y="y")
    assert 40 < markup.count("<tr>") <= 61


def test_images_are_packed_with_sixteen_bits() -> None:
    values = np.array([[-1.0, 0.0, 0.25], [0.5, 1.0, 2.0]])
    spec = image_spec("grid", values, x="x", y="y", high=1.0, row_names=["a", "b"], height=100)
    shares = np.frombuffer(base64.b64decode(spec["packed"]), dtype=">u2").reshape(spec["shape"])
    read = spec["low"] + shares / 65535 * (spec["high"] - spec["low"])
    np.testing.assert_allclose(read, np.clip(values, -1, 1), atol=2e-5)
    assert (spec["low"], spec["high"], spec["rowNames"], spec["height"]) == (-1, 1, ["a", "b"], 100)
    assert 'data-kind="image"' in image_chart("flat", np.zeros((2, 2)), x="x", y="y")


def test_frames() -> None:
    frames = [Frame("one", [{"series": []}], "a note"), Frame("two", [{"series": []}])]
    markup = frames_chart("title", "width", [{"kind": "line"}], frames, start=1, headings=("a",), rows=[["1"]])
    spec = spec_of(markup)
    assert [frame["label"] for frame in spec["frames"]] == ["one", "two"]
    assert (spec["control"], spec["start"], spec["frames"][0]["note"]) == ("width", 1, "a note")
    assert "<td" not in markup.split("<tbody>")[0]


def test_significant_digits() -> None:
    assert [significant(value, 3) for value in (0.0, 123456.0, -0.00123456)] == [0, 123000, -0.00123]
