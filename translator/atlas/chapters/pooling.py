"""Chapter 1: attention pooling."""

from typing import Any

import numpy as np

from translator.atlas.chapters.parts import code, columns, look, made_by, text
from translator.atlas.formulas import formula
from translator.report.curves import Curve, Frame, curve_chart, curve_spec, frames_chart, image_spec
from translator.report.html import Markup, join, table, tag
from translator.report.sections.parts import Section

NAME, MODULE = "pooling", "pooling"


def write(figures: dict[str, Any]) -> Section:
    regressions, widths = figures["regressions"], figures["widths"]["widths"]
    content = join(
        text(
            "You have some measurements: at places x",
            tag("sub", "1"),
            ", x",
            tag("sub", "2"),
            ", … you saw values y",
            tag("sub", "1"),
            ", y",
            tag("sub", "2"),
            ", … What is the value at a new place? Attention answers with a weighted mean. The new place is the ",
            tag("em", "query"),
            ", the known places are the ",
            tag("em", "keys"),
            ", what was seen there are the ",
            tag("em", "values"),
            ", and the weights say how well each key fits the query:",
        ),
        formula(
            r"f(q) = \sum_{i} \alpha(q, k_i) v_i \quad \text{with} \quad \alpha(q, k_i) \ge 0, \quad \sum_{i} \alpha(q, k_i) = 1",
            "f of q is the sum over i of alpha of q and k i, times v i; the weights alpha are at least zero and sum to one",
        ),
        _ways(regressions),
        _width(regressions, widths),
    )
    about = "A weighted mean of what was seen, where the weights depend on the question: that is all attention is."
    return Section(NAME, "1 Pooling", "1 · Attention pooling", about, content)


def _ways(found: dict[str, Any]) -> Markup:
    rows = [(one["name"], f"{one['leave_one_out']:.3f}", f"{one['test_error']:.3f}") for one in found["methods"]]
    truth = Curve("truth", list(zip(found["queries"], found["truth"], strict=True)), dashed=True)
    return join(
        table(("weights", "leave-one-out loss", "error to the truth"), rows),
        made_by(NAME, MODULE),
        str(len(truth.points)),
    )


def _width(found: dict[str, Any], widths: list[dict[str, Any]]) -> Markup:
    data = Curve("examples", list(zip(found["x"], found["y"], strict=True)), mode="points", colour=4)
    truth = Curve("truth", list(zip(found["queries"], found["truth"], strict=True)), dashed=True, colour=2)
    common = [
        curve_spec("prediction", [data, truth], x="x", y="y", x_digits=1),
        {"kind": "image", "title": "weights"},
    ]
    frames = [
        Frame(
            f"{one['width']:.2f}",
            [
                {
                    "series": [
                        Curve(
                            "prediction", list(zip(found["queries"], one["predictions"], strict=True)), colour=0
                        ).to_dict(4)
                    ]
                },
                image_spec("weights of the examples", np.array(one["weights"]), x="example", y="query", height=200),
            ],
            note=f"error to the truth {one['test_error']:.3f}",
        )
        for one in widths
    ]
    return join(
        frames_chart("A kernel of any width", "width", common, frames, start=14),
        look("the slider."),
        columns(code("x")),
    )
