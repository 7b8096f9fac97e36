"""Chapter 5: positions."""

from typing import Any

import numpy as np

from translator.atlas.chapters import extrapolation
from translator.atlas.chapters.parts import columns, look, made_by, missing, paired, text
from translator.atlas.formulas import formula, inline
from translator.report.curves import Curve, Frame, curve_chart, curve_spec, frames_chart, image_chart
from translator.report.html import Markup, join, tag
from translator.report.sections.parts import Section

NAME = "positions"
MADE = made_by(NAME, "positions")


def write(figures: dict[str, Any]) -> Section:
    content = join(
        text(
            "Attention is a weighted mean, and a mean does not care about order: shuffle the keys together with their "
            "values, and nothing changes. “Dog bites man” and “man bites dog” would be the same. So a Transformer has "
            "to be told where each word is. This package has four ways, chosen with ",
            tag("code", "model.positions"),
            ".",
        ),
        _sinusoids(figures["sinusoids"]),
        _rotary(figures["rotary"]),
        _relative(figures["relative"]),
        _trained(figures["trained"], figures["shipped"]),
        extrapolation.write(figures["extrapolation"]),
    )
    about = "Attention alone knows nothing of the order of words. Waves, rotations, learned vectors or biases add it."
    return Section(NAME, "5 Positions", "5 · Positions", about, content)


def _sinusoids(found: dict[str, Any]) -> Markup:
    table = np.array(found["table"])  # (P, D)
    waves = [
        Curve(f"dimension {dimension}, wavelength {wavelength:,.0f}", list(enumerate(table[:, dimension].tolist())))
        for dimension, wavelength in zip(found["dimensions"], found["wavelengths"], strict=True)
    ]
    products = [
        Curve(f"position {one['position']}", paired(found["offsets"], one["values"]), colour=n)
        for n, one in enumerate(found["products"])
    ]
    theory = Curve("theory", paired(found["offsets"], found["theory"]), dashed=True, colour=4)
    farthest = max(
        abs(value - expected)
        for one in found["products"]
        for value, expected in zip(one["values"], found["theory"], strict=True)
    )
    zero = found["offsets"].index(0)
    return join(
        tag("h3", "Waves: sinusoidal positions"),
        text(
            "Position p gets a vector of sines and cosines, which is added to the embedding of the word. It works like "
            "the hands of a clock: the first dimensions turn quickly and tell neighbours apart, the last ones turn so "
            "slowly that they tell the beginning of a text from its end.",
        ),
        formula(
            r"PE(p, 2i) = \sin(\omega_i p), \quad PE(p, 2i + 1) = \cos(\omega_i p), \quad \omega_i = 10000^{-2i/d}",
            "P E of p and 2 i is the sine of omega i times p, P E of p and 2 i plus 1 the cosine of it; omega i is "
            "10000 to the power of minus 2 i over d",
        ),
        columns(
            curve_chart("Some dimensions", waves, x="position", y="value"),
            image_chart(
                "All dimensions", table, x="dimension", y="position", low=-1.0, high=1.0, height=250
            ),
        ),
        MADE,
        look(
            "in the picture every row is the vector of one position; blue is positive, orange negative. On the left "
            "the stripes are narrow (fast waves); on the right the waves are so slow that sines are still near 0 "
            "(white) and cosines near 1 (blue) at the last position shown.",
        ),
        text(
            "Why waves? Because the dot product of two such vectors depends only on how far apart they are: ",
            inline(
                r"PE(p)^\top PE(p + \Delta) = \sum_{i} \cos(\omega_i \Delta)",
                "the dot product of the vectors of p and p plus delta is the sum of the cosines of omega i times delta",
            ),
            ".",
        ),
        curve_chart(
            f"Dot product of two positions by their distance, d = {found['size']}", [*products, theory],
            x="distance", y="dot product", digits=3,
        ),
        MADE,
        look(
            "the curves of three positions lie on top of each other and on the theory (largest difference "
            f"{farthest:.0e}). Near positions have similar vectors: the product is {found['theory'][zero]:.0f} at "
            f"distance 0, {found['theory'][zero + 1]:.1f} at 1, {found['theory'][zero + 10]:.1f} at 10. The product "
            "does not say which of the two comes first; the projections to queries and keys have to learn that.",
        ),
    )  # fmt: skip


def _rotary(found: dict[str, Any]) -> Markup:
    common = [curve_spec("", [], x="distance", y="score", digits=3, y_range=(-0.6, 1.05))]
    frames = []
    for one in found["sizes"]:
        mean, deviation = np.array(one["mean"]), np.array(one["deviation"])
        curves = [
            Curve(f"one vector, from position {curve['start']}", paired(found["distances"], curve["values"]), colour=n)
            for n, curve in enumerate(one["scores"])
        ]
        curves += [
            Curve(f"mean of {found['num_pairs']} vectors", paired(found["distances"], one["mean"]), colour=3),
            Curve(
                "… plus the deviation", paired(found["distances"], (mean + deviation).tolist()), dashed=True, colour=4
            ),
            Curve(
                "… minus the deviation", paired(found["distances"], (mean - deviation).tolist()), dashed=True, colour=4
            ),
        ]
        series = {"title": f"head size {one['size']}", "series": [curve.to_dict(4) for curve in curves]}
        note = f"largest difference between the three starting positions: {one['largest_difference']:.1e}"
        frames.append(Frame(f"d = {one['size']}", [series], note))
    return join(
        tag("h3", "Rotations: rotary positions"),
        text(
            "Instead of adding a vector, rotary positions rotate the query and the key. Each pair of dimensions is a "
            "plane, and position p rotates it by the angle ",
            inline(r"\omega_i p", "omega i times p"),
            ". Once both are rotated, only the difference of the angles is left in their product, so the score depends "
            "on the distance and not on the positions themselves:",
        ),
        formula(
            r"(R_m q)^\top (R_n k) = q^\top R_{n - m} k",
            "R m q, transposed, times R n k equals q transposed times R of n minus m times k",
        ),
        frames_chart(
            "Move the slider: score of a vector with itself, by distance", "head size", common, frames, start=3
        ),
        MADE,
        look(
            "the three curves of one vector, starting at positions 0, 40 and 400, coincide: absolute positions do not "
            "matter. On average the score falls with the distance, and the larger the head, the less a single vector "
            "strays from that: a built-in preference for near words, which training can use or undo.",
        ),
    )


def _relative(found: dict[str, Any]) -> Markup:
    curves = [
        Curve("encoder, both directions", paired(found["offsets"], found["buckets"]["encoder"]), colour=0),
        Curve("decoder, only backwards", paired(found["offsets"], found["buckets"]["decoder"])[:161], "line", True, 1),
    ]
    encoder = dict(zip(found["offsets"], found["buckets"]["encoder"], strict=True))
    exact = sum(1 for offset in range(161) if list(encoder.values()).count(encoder[-offset]) == 1)
    far = min(offset for offset in range(161) if encoder[-offset] == encoder[-160])
    return join(
        tag("h3", "Biases: relative positions"),
        text(
            "The most direct way: a learned number for every distance, added to the score. With one number for each of "
            "hundreds of distances, most would rarely be trained, so distances are grouped into ranges that share a "
            "number and become wider with the distance, as in T5. There are 32 ranges.",
        ),
        formula(
            r"\score(q_m, k_n) = \frac{q_m^\top k_n}{\sqrt{d}} + b_{\text{range}(n - m)}",
            "the score of q m and k n is their scaled dot product plus b of the range that n minus m falls into",
        ),
        curve_chart(
            "Which range a distance falls into", curves, x="position of the key − position of the query", y="range"
        ),
        MADE,
        look(
            f"in the encoder every distance up to {exact - 1} has a number of its own in each direction. Farther out "
            f"the steps become wider, and from {far} on all distances share the last one. The decoder, which looks "
            "back only, has twice as many ranges for that direction.",
        ),
    )


def _trained(found: dict[str, Any] | None, measured: dict[str, Any] | None) -> Markup:
    heading = tag("h3", "What is learned in training")
    blocks = [_learned_parts(found, f"the run {found['run']}", MADE)] if found else []
    for one in measured["figures"]["runs"] if measured else []:
        assert measured is not None
        blocks.append(_learned_parts(one, f"{one['what']}", made_by(NAME, "positions", measured)))
    if not blocks:
        return join(
            heading,
            missing(
                "Learned vectors and relative biases after training need runs that have them, model.positions=learned "
                "or relative:",
                "python -m translator.atlas --run RUN --only positions -o atlas.html",
            ),
        )
    return join(heading, blocks)


def _learned_parts(found: dict[str, Any], what: str, made: Markup) -> Markup:
    blocks: list[Markup] = []
    maps = [
        image_chart(
            f"Cosine of learned {side} positions", np.array(found[f"learned_{side}"]),
            x="position", y="position", low=-1.0, high=1.0, height=300,
        )
        for side in ("source", "target")
        if f"learned_{side}" in found
    ]  # fmt: skip
    if maps:
        blocks += [
            columns(maps),
            made,
            look(
                f"({what}) training starts with random vectors, whose cosines are near 0. What it has learned shows "
                "along the diagonal: neighbours have become similar, where sentences are long enough to train them. "
                "Positions beyond the longest sentences are still random.",
            ),
        ]
    charts = []
    for side in ("encoder", "decoder"):
        if f"relative_{side}" in found:
            biases = found[f"relative_{side}"]
            curves = [
                Curve(f"head {number + 1}", paired(biases["offsets"], head), colour=number)
                for number, head in enumerate(biases["heads"])
            ]
            charts.append(
                curve_chart(f"Relative biases of the {side}", curves, x="position of the key − of the query", y="bias")
            )
    if charts:
        blocks += [
            columns(charts),
            made,
            look(
                f"({what}) each head has its own preference: a head that is high near 0 and low elsewhere looks at "
                "neighbours, a flat one looks everywhere, a lopsided one prefers what comes before or after.",
            ),
        ]
    return join(blocks)
