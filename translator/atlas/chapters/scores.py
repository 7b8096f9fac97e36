"""Chapter 2: scores, the softmax over them, and masks."""

from collections.abc import Sequence
from typing import Any

from translator.atlas.chapters import masks
from translator.atlas.chapters.parts import columns, look, made_by, text, tiles
from translator.atlas.formulas import formula, inline
from translator.report.curves import Curve, Frame, curve_chart, curve_spec, frames_chart
from translator.report.html import Markup, join, table, tag
from translator.report.sections.parts import Section

NAME = "scores"
MADE = made_by(NAME, "scores")
TITLES = {"additive": "additive", "dot": "dot", "scaled_dot": "scaled dot", "cosine": "cosine", "gaussian": "Gaussian"}
FORMULAS = {
    "additive": (r"w^\top \tanh(W_q q + W_k k)", "w transposed times tanh of W q times q plus W k times k"),
    "dot": (r"q^\top k", "q transposed times k"),
    "scaled_dot": (r"q^\top k / \sqrt{d}", "q transposed times k divided by the square root of d"),
    "cosine": (r"\beta \cdot q^\top k / |q| |k|", "beta times q transposed times k divided by the lengths of q and k"),
    "gaussian": (r"- |(q - k) \odot w|^2 / 2", "minus half the squared length of q minus k, times w in each dimension"),
}
ORIGINS = {
    "additive": "Bahdanau et al. 2015; compares vectors of different sizes",
    "dot": "Luong et al. 2015; nothing to learn, one matrix product",
    "scaled_dot": "Vaswani et al. 2017; the dot product, scaled so that its spread does not depend on d",
    "cosine": "Graves et al. 2014; only the directions count, β is learned",
    "gaussian": "Nadaraya 1964, Watson 1964; the distance counts, the inverse widths w are learned",
}


def write(figures: dict[str, Any]) -> Section:
    content = join(
        text(
            "In chapter 1 queries and keys were numbers, and the score was their distance. In a translation model they "
            "are vectors of d numbers, and a ",
            tag("em", "score function"),
            " says how well two of them match. The weights are the softmax of the scores:",
        ),
        formula(
            r"\alpha_i = \softmax_i ( \score(q, k_i) ) = \frac{\exp ( \score(q, k_i) )}{\sum_{j} \exp ( \score(q, k_j) "
            r")}",
            "alpha i is the exponential of the score of q and k i, divided by the sum of the exponentials of all "
            "scores",
        ),
        _plane(figures["plane"]),
        _saturation(figures["saturation"]),
        masks.write(figures),
    )
    about = "How well does a key match a query? Five answers, why one is divided by √d, and what must be hidden."
    return Section(NAME, "2 Scores and masks", "2 · Scores, softmax and masks", about, content)


def _plane(found: dict[str, Any]) -> Markup:
    rows = [
        [
            TITLES[name],
            inline(*FORMULAS[name]),
            ORIGINS[name],
            f"{found['num_parameters'][name]}",
        ]
        for name in FORMULAS
    ]
    keys = [f"({x:g}, {y:g})" for x, y in found["keys"]]
    common = [
        curve_spec(
            "keys and query",
            [Curve("keys", found["keys"], "points", colour=4)],
            x="first dimension", y="second dimension", digits=1, x_digits=1, x_range=(-2.4, 2.4), y_range=(-2.4, 2.4),
        ),
        {
            "kind": "heatmap",
            "title": "weights of the keys, %",
            "rows": [TITLES[name] for name in found["scores"]],
            "columns": keys,
            "digits": 0,
            "maximum": 60,
        },
    ]  # fmt: skip
    frames = []
    for number, (query, degrees) in enumerate(zip(found["queries"], found["degrees"], strict=True)):
        arrow = Curve("query", [(0.0, 0.0), query], "both", colour=5)
        weights = [[100 * value for value in one["weights"][number]] for one in found["scores"].values()]
        frames.append(Frame(f"{degrees}°", [{"series": [arrow.to_dict()]}, {"values": weights}]))
    start = found["degrees"].index(0)
    dot, cosine, gaussian = (found["scores"][name]["weights"][start] for name in ("dot", "cosine", "gaussian"))
    return join(
        tag("h3", "Five scores, the same queries and keys"),
        table(("score", "formula", "where it comes from", "parameters here"), rows, class_="origins"),
        frames_chart("Turn the query: who gets the weight?", "direction", common, frames, start=start),
        MADE,
        look(
            f"at 0° the query is (1.5, 0). The dot product gives the longer key (2, 0) {100 * dot[1]:.0f} % and (1, 0) "
            f"only {100 * dot[0]:.0f} %, since long vectors have large dot products. The cosine sees no difference "
            f"between them ({100 * cosine[0]:.0f} % each), and to the Gaussian both are equally near "
            f"({100 * gaussian[0]:.0f} % each). The scaled dot product has the same preferences, with flatter weights. "
            "The additive score is a small neural network, here with random weights: before training, its preferences "
            "mean nothing.",
        ),
    )


def _measured_and_theory(sizes: Sequence[dict[str, Any]], key: str) -> list[Curve]:
    result = []
    for name, title, colour in (("dot", "dot", 1), ("scaled_dot", "scaled dot", 0)):
        measured = [(one["size"], one[name][key]) for one in sizes]
        theory = [(one["size"], one[name]["theory"][key]) for one in sizes]
        result += [
            Curve(f"{title}, measured", measured, "points", colour=colour),
            Curve(f"{title}, theory", theory, dashed=True, colour=colour),
        ]
    return result


def _sorted_weights(found: dict[str, Any]) -> Markup:
    """The weights of the keys by rank, with a slider for the dimension."""
    common = [curve_spec("", [], x="rank of the key", y="weight", digits=3, y_range=(0.0, 1.0))]
    frames = [
        Frame(
            f"d = {one['size']}",
            [
                {
                    "title": f"weights, sorted, at d = {one['size']}",
                    "series": [
                        Curve(title, list(enumerate(one[name]["sorted"], 1)), colour=colour).to_dict()
                        for name, title, colour in (("dot", "dot", 1), ("scaled_dot", "scaled dot", 0))
                    ],
                }
            ],
            f"the largest of {found['num_keys']} weights is on average {one['dot']['largest']:.2f} for the dot and "
            f"{one['scaled_dot']['largest']:.2f} for the scaled dot",
        )
        for one in found["sizes"]
    ]
    return frames_chart("Move the slider: the weights in dimension d", "dimension", common, frames, start=9)


def _saturation(found: dict[str, Any]) -> Markup:
    sizes = found["sizes"]
    last = next(one for one in sizes if one["size"] == 512)
    lost = last["scaled_dot"]["gradient"] / last["dot"]["gradient"]
    return join(
        tag("h3", "Why the dot product is divided by √d"),
        text(
            "If the components of q and k are independent with mean 0 and variance 1, the dot product is a sum of d "
            "products, and its variance is d. The wider the scores are spread, the more of the weight goes to the "
            "largest one. The softmax saturates: one weight is nearly 1, the others are nearly 0, and since they "
            "hardly change when the scores do, hardly any gradient flows back to learn from. Dividing by √d keeps the "
            "variance at 1:",
        ),
        formula(
            r"\text{Var}(q^\top k) = d, \quad \text{Var}(q^\top k / \sqrt{d}) = 1",
            "the variance of q transposed k is d, that of q transposed k divided by the square root of d is 1",
        ),
        text(
            f"Measured on {found['num_queries']} random queries with {found['num_keys']} random keys each. The theory "
            "(dashed) assumes exactly normal scores with variance d or 1; it was computed separately, in double "
            "precision and without the package’s functions.",
        ),
        columns(
            curve_chart(
                "Standard deviation of the scores",
                _measured_and_theory(sizes, "deviation"),
                x="dimension d",
                y="deviation",
                log_x=True,
                log_y=True,
            ),
            curve_chart(
                "Entropy of the weights",
                _measured_and_theory(sizes, "entropy"),
                x="dimension d",
                y="entropy, bits",
                log_x=True,
            ),
            curve_chart(
                "Size of the gradient through the softmax",
                _measured_and_theory(sizes, "gradient"),
                x="dimension d",
                y="norm of ∂α/∂score",
                digits=3,
                log_x=True,
            ),
            _sorted_weights(found),
        ),
        MADE,
        tiles(
            [
                ("entropy at d = 512, dot", f"{last['dot']['entropy']:.2f} bits", "almost everything on one key"),
                ("… scaled dot", f"{last['scaled_dot']['entropy']:.2f} bits", f"of at most {_most(found):.0f}"),
                ("largest weight, dot", f"{last['dot']['largest']:.2f}", f"scaled {last['scaled_dot']['largest']:.2f}"),
                ("gradient, scaled over plain dot", f"{lost:.1f} ×", "at d = 512, mean over queries"),
            ]
        ),
        look(
            "with the plain dot product, the entropy falls as the dimension grows; with the scaled one it stays where "
            "it is. Only for the smallest d do the points deviate from the theory, because a sum of a few products is "
            "not yet normal. The gradient of the plain dot product first rises and then falls: perfectly equal weights "
            "are not the best to learn from, but saturated ones are the worst.",
        ),
    )


def _most(found: dict[str, Any]) -> float:
    """The entropy of equal weights, in bits."""
    return float(found["num_keys"].bit_length() - 1)
