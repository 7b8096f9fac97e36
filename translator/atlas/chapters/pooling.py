"""Chapter 1: attention pooling."""

from typing import Any

import numpy as np

from translator.atlas.chapters.parts import columns, look, made_by, paired, text
from translator.atlas.formulas import formula, inline
from translator.report.curves import Curve, Frame, curve_chart, curve_spec, frames_chart, image_chart, image_spec
from translator.report.html import Markup, join, table, tag
from translator.report.sections.parts import Section

NAME = "pooling"
MADE = made_by(NAME, "pooling")


def write(figures: dict[str, Any]) -> Section:
    content = join(
        text(
            "You have made some measurements: at the places ",
            inline("k_1, k_2, \\dots", "k 1, k 2 and so on"),
            " you saw the values ",
            inline("v_1, v_2, \\dots", "v 1, v 2 and so on"),
            ". What is the value at a new place ",
            inline("q", "q"),
            "? Attention answers with a weighted mean. The new place is called the ",
            tag("em", "query"),
            ", the known places are the ",
            tag("em", "keys"),
            ", and the weights say how well each key matches the query:",
        ),
        formula(
            r"f(q) = \sum_{i} \alpha(q, k_i) v_i \quad \text{with} \quad \alpha \ge 0 \text{ and } "
            r"\sum_{i} \alpha(q, k_i) = 1",
            "f of q is the sum over i of alpha of q and k i, times v i; the weights alpha are not negative and sum to "
            "1",
        ),
        _ways(figures["regressions"]),
        _widths(figures["regressions"], figures["widths"]["widths"]),
        _learned(figures["regressions"], figures["widths"]["widths"], figures["descent"]),
        _kernels(figures["regressions"], figures["kernels"]["kernels"]),
    )
    about = "A weighted mean of known values, with weights that depend on the query: everything else builds on it."
    return Section(NAME, "1 Pooling", "1 · Attention pooling", about, content)


def _ways(found: dict[str, Any]) -> Markup:
    rows = [(one["name"], f"{one['leave_one_out']:.3f}", f"{one['test_error']:.3f}") for one in found["methods"]]
    predictions = [
        Curve(one["name"], paired(found["queries"], one["predictions"]), colour=colour)
        for one, colour in zip(found["methods"], (1, 3, 5, 0), strict=True)
    ]
    curves = [_examples(found), _truth(found), *predictions]
    maps = [
        image_chart(one["name"], np.array(one["weights"]), x="example", y="query", digits=3, height=150)
        for one in found["methods"]
    ]
    average, nearest, wide, learned = found["methods"]
    return join(
        tag("h3", "Four ways to choose the weights"),
        text(
            f"The {len(found['x'])} examples are samples of a smooth function with noise of standard deviation "
            f"{found['noise']:g}. The plain average gives every example the same weight and ignores the query. The "
            "nearest neighbour gives all the weight to one example, noise included. In 1964 Nadaraya and Watson "
            "proposed something in between: the nearer the key, the larger its weight, given by a Gaussian kernel of "
            "width ",
            inline(r"\sigma", "sigma"),
            ". That is a softmax of scores, the form that attention still has today:",
        ),
        formula(
            r"\alpha(q, k_i) = \softmax_i ( - \frac{(q - k_i)^2}{2 \sigma^2} ) = "
            r"\frac{\exp ( - (q - k_i)^2 / 2 \sigma^2 )}{\sum_{j} \exp ( - (q - k_j)^2 / 2 \sigma^2 )}",
            "alpha of q and k i is the softmax over i of minus the square of q minus k i, divided by 2 sigma squared",
        ),
        curve_chart("Four regressions of the same examples", curves, x="x", y="y", x_digits=1),
        MADE,
        table(("weights", "leave-one-out loss", "error against the truth"), rows),
        look(
            f"the average is a flat line (error {average['test_error']:.2f}), the nearest neighbour a staircase that "
            f"jumps to every noisy example ({nearest['test_error']:.2f}). A Gaussian of width 1 smooths too much "
            f"({wide['test_error']:.2f}); with the learned width {found['width']:.2f} the error is "
            f"{learned['test_error']:.3f}. The error against the truth is the mean squared distance to the noiseless "
            "function; the leave-one-out loss predicts each example from all the others, so it can be computed without "
            f"knowing the truth, but includes the noise ({found['noise'] ** 2:.2f}).",
        ),
        tag("h4", "The weights themselves"),
        columns(maps),
        MADE,
        look(
            "each row is a query, each column an example, both in order of x, so the examples nearest to a query are "
            "on the diagonal. The darkest blue is the largest weight in each map: 1/80 for the average, 1 for the "
            "nearest neighbour."
        ),
    )


def _widths(found: dict[str, Any], widths: list[dict[str, Any]]) -> Markup:
    common = [
        curve_spec("prediction", [_examples(found), _truth(found)], x="x", y="y", x_digits=1),
        {"kind": "image", "title": "weights of the examples"},
    ]
    frames = []
    for one in widths:
        prediction = Curve("prediction", paired(found["queries"], one["predictions"]), colour=0)
        weights = np.array(one["weights"])
        image = image_spec("weights of the examples", weights, x="example", y="query", digits=3, height=200)
        note = (
            f"leave-one-out loss {one['leave_one_out']:.3f}, error against the truth {one['test_error']:.3f}; a "
            f"prediction is based on about {one['effective_examples']:.0f} examples"
        )
        frames.append(Frame(f"{one['width']:.2f}", [{"series": [prediction.to_dict(4)]}, image], note))
    rows = [
        [f"{one[key]:.3f}" for key in ("width", "leave_one_out", "test_error", "effective_examples")] for one in widths
    ]
    headings = ("width", "leave-one-out loss", "error against the truth", "examples that count")
    wide = next(n for n, one in enumerate(widths) if one["width"] >= 1)
    return join(
        tag("h3", "The width is what matters"),
        frames_chart(
            "Move the slider: a Gaussian kernel of any width", "width", common, frames,
            start=wide, headings=headings, rows=rows,
        ),
        MADE,
        look(
            "on the left the kernel is narrow: the curve follows the noise, and the band of weights is thin. On the "
            "right it is wide: the curve flattens towards the average, and the weights become equal. The number of "
            "examples that a prediction is based on is ",
            inline(r"1 / \sum_{i} \alpha_i^2", "one over the sum of the squared weights"),
            ".",
        ),
    )  # fmt: skip


def _learned(found: dict[str, Any], widths: list[dict[str, Any]], descent: dict[str, Any]) -> Markup:
    loss = Curve("leave-one-out loss", [(one["width"], one["leave_one_out"]) for one in widths], "both")
    error = Curve("error against the truth", [(one["width"], one["test_error"]) for one in widths], "both", dashed=True)
    path = Curve("gradient descent", [(one["width"], one["leave_one_out"]) for one in descent["steps"]], "points")
    steps = Curve("width", [(one["step"], one["width"]) for one in descent["steps"]])
    goal = Curve("best width", [(0, found["width"]), (len(descent["steps"]) - 1, found["width"])], dashed=True)
    best = min(widths, key=lambda one: float(one["test_error"]))
    return join(
        tag("h3", "The width is learned"),
        text(
            "The width is the first learned parameter on this page. The leave-one-out loss is a differentiable "
            "function of it, so gradient descent finds it, exactly as training finds the millions of weights of a "
            "Transformer. The mask that hides an example from itself matters: without it, the best kernel would be "
            "infinitely narrow, since every example predicts itself perfectly.",
        ),
        columns(
            curve_chart(
                "Errors by width", [loss, error, path], x="width", y="mean squared error", x_digits=2, log_x=True
            ),
            curve_chart("Gradient descent", [steps, goal], x="step", y="width", y_range=(0.0, 1.05)),
        ),
        MADE,
        look(
            f"the dots roll down the loss from width {descent['steps'][0]['width']:g} to "
            f"{descent['steps'][-1]['width']:.2f}, where the loss has its minimum. The error against the truth, which "
            f"training never sees, has its minimum at about {best['width']:.2f}: close, but not the same, because "
            f"{len(found['x'])} noisy examples do not determine it exactly.",
        ),
    )  # fmt: skip


def _kernels(found: dict[str, Any], kernels: list[dict[str, Any]]) -> Markup:
    rows = [
        (one["name"], *(f"{one[key]:.3f}" for key in ("width", "leave_one_out", "test_error", "mean_neighbours")))
        for one in kernels
    ]
    predictions = [
        Curve(one["name"], paired(found["queries"], one["predictions"]), colour=colour)
        for one, colour in zip(kernels, (0, 1, 3), strict=True)
    ]
    losses = [
        Curve(one["name"], one["losses"], "both", colour=colour) for one, colour in zip(kernels, (0, 1, 3), strict=True)
    ]
    highest = max(max(map(max, one["weights"])) for one in kernels)
    common = [
        curve_spec("examples and prediction", [_examples(found), _truth(found)], x="x", y="y", x_digits=1),
        curve_spec("weights of the examples", [], x="x", y="weight", x_digits=1, digits=3, y_range=(0.0, highest)),
    ]
    frames = []
    for number, place in enumerate(found["queries"]):
        answers = [
            Curve(one["name"], [(place, one["predictions"][number])], "points", colour=colour).to_dict()
            for one, colour in zip(kernels, (0, 1, 3), strict=True)
        ]
        weights = [
            Curve(one["name"], paired(found["x"], one["weights"][number]), "points", colour=colour).to_dict(4)
            for one, colour in zip(kernels, (0, 1, 3), strict=True)
        ]
        frames.append(Frame(f"x = {place:.1f}", [{"series": answers}, {"series": weights}]))
    return join(
        tag("h3", "Other kernels"),
        text(
            "Any kernel K is a score, because the softmax of its logarithm is the normalised kernel; where K is zero, "
            "the mask excludes the key. The boxcar takes the mean of all examples within the width; Epanechnikov’s "
            "kernel ",
            inline("K(u) = 1 - u^2", "K of u is one minus u squared"),
            " fades out towards the edge; the Gaussian never reaches zero.",
        ),
        frames_chart("Move the slider: what one query attends to", "query", common, frames, start=len(frames) // 2),
        columns(
            curve_chart("Predictions", [_truth(found), *predictions], x="x", y="y", x_digits=1),
            curve_chart("Leave-one-out loss by width", losses, x="width", y="loss", x_digits=2, log_x=True),
        ),
        MADE,
        table(("kernel", "best width", "leave-one-out loss", "error against the truth", "examples with weight"), rows),
        look(
            "with its best width, every kernel does about equally well: the choice of the kernel matters less than its "
            "width. The loss curves differ on the left, where a narrow boxcar or Epanechnikov kernel may have no "
            "example within reach. The masked softmax then gives no weight at all, and the prediction is 0.",
        ),
    )


def _examples(found: dict[str, Any]) -> Curve:
    return Curve("examples", paired(found["x"], found["y"]), mode="points", colour=4)


def _truth(found: dict[str, Any]) -> Curve:
    return Curve("truth", paired(found["queries"], found["truth"]), dashed=True, colour=2)
