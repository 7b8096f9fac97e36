"""Chapter 6: self-attention, recurrence and convolution."""

from typing import Any

from translator.atlas.chapters.parts import columns, look, made_by, missing, paired, text, tiles
from translator.atlas.figures.complexity import KINDS, THEORY
from translator.atlas.formulas import inline
from translator.report.curves import Curve, curve_chart
from translator.report.html import Markup, join, table, tag
from translator.report.sections.parts import Section

NAME = "complexity"
COLOURS = {"attention": 0, "multihead": 3, "recurrence": 1, "convolution": 2}


def write(figures: dict[str, Any]) -> Section:
    content = join(
        _table_of_theory(),
        _measured(figures["measured"]),
        _now(figures["now"]),
        _sequential(figures["sequential"]),
        _gradients(figures["gradients"]),
    )
    about = "Three ways to relate the words of a sentence to each other, and what each of them costs."
    return Section(NAME, "6 Costs", "6 · Self-attention, recurrence and convolution", about, content)


def _table_of_theory() -> Markup:
    n, d = inline("n", "n"), inline("d", "d")
    rows = [
        (
            "self-attention",
            inline("O(n^2 d)", "order n squared d"),
            inline("O(1)", "order 1"),
            inline("O(1)", "order 1"),
        ),
        ("recurrence", inline("O(n d^2)", "order n d squared"), inline("O(n)", "order n"), inline("O(n)", "order n")),
        (
            "convolution",
            inline("O(k n d^2)", "order k n d squared"),
            inline("O(1)", "order 1"),
            inline("O(n / k)", "order n over k"),
        ),
    ]
    return join(
        text(
            "A sequence of ", n, " words, each a vector of ", d, " numbers, has to become a sequence in which every "
            "vector reflects its context. Self-attention compares every word with every other. A recurrence reads them "
            "one after the other. A convolution looks through a window of k words. The theory (Vaswani et al. 2017, "
            "table 1):",
        ),
        table(("layer", "operations", "sequential steps", "longest path between two words"), rows),
        text(
            "Operations are work, which can be done in parallel. Sequential steps cannot. The path is the number of "
            "layers or steps that a word’s influence has to travel through. For the convolution it is the number of "
            "layers that have to be stacked; with dilated windows it would grow only with the logarithm of n.",
        ),
    )  # fmt: skip


def _measured(measurement: dict[str, Any] | None) -> Markup:
    heading = tag("h3", "Time and memory, measured")
    if measurement is None:
        command = "python -m translator.atlas.measure complexity -o translator/atlas/data/complexity.json"
        return join(heading, missing("The long measurement is made by", command))
    found = measurement["figures"]
    width, length = found["width"], found["length"]
    charts = [
        _chart(f"Time by length, d = {width}", found["by_length"], "length", "seconds", theory=True),
        _chart(f"Time by width, n = {length}", found["by_width"], "width", "seconds", theory=True),
        _chart(f"Memory by length, d = {width}", found["by_length"], "length", "bytes"),
        _chart(f"Memory by width, n = {length}", found["by_width"], "width", "bytes"),
    ]
    made = made_by(NAME, "complexity", measurement)
    return join(
        heading,
        text(
            "Measured with the package’s own functions: attention pooling with the scaled dot (from the scores to the "
            "weighted mean, which is what the theory counts), complete multi-head attention with its projections, the "
            "LSTM layer, and torch’s Conv1d. Time is CPU time of one thread for the forward pass of one sequence, the "
            "best of several. Memory is what training has to keep for the backward pass, without the parameters. Both "
            "axes are logarithmic, so a power law is a straight line and its exponent is the slope; the dashed lines "
            "have the slopes of the theory and go through the last points.",
        ),
        columns(charts),
        made,
        _exponents(found["exponents"]),
        tiles(_crossing_tiles(found)),
        look(
            "as the length grows, self-attention is steeper than the others: twice the length is four times the work. "
            "As the width grows, it is the other way round. So self-attention is cheaper as long as sentences are "
            "short compared with the width, as they usually are. At small sizes all curves are flatter than the "
            "theory, which leaves out the fixed cost of calling an operation. In memory, attention keeps two tables of "
            "n × n weights and a few of n × d vectors, so its exponent comes near 2 only when n is much larger than d.",
        ),
    )


def _chart(title: str, rows: list[dict[str, Any]], axis: str, quantity: str, *, theory: bool = False) -> Markup:
    factor = 1e3 if quantity == "seconds" else 1 / 1024
    curves = []
    for kind, name in KINDS.items():
        points = [(row[axis], factor * row[kind][quantity]) for row in rows]
        curves.append(Curve(name, points, "points" if theory else "both", colour=COLOURS[kind]))
        if theory and kind in THEORY:
            power = THEORY[kind][0 if axis == "length" else 1]
            last = points[-1]
            drawn = [(x, last[1] * (x / last[0]) ** power) for x, _ in points]
            name = {"length": "n", "width": "d"}[axis] + {1: "", 2: "²"}[power]
            curves.append(Curve(f"∝ {name}", drawn, dashed=True, colour=COLOURS[kind]))
    y = "milliseconds" if quantity == "seconds" else "kilobytes"
    x = {"length": "length n", "width": "width d"}[axis]
    return curve_chart(title, curves, x=x, y=y, digits=3, log_x=True, log_y=True)


def _exponents(found: dict[str, Any]) -> Markup:
    rows = []
    for kind, name in KINDS.items():
        powers = THEORY.get(kind)
        row = [name]
        for index, axis in enumerate(("length", "width")):
            row.append(str(powers[index]) if powers else "1 to 2")
            row += [_number(found[axis][kind][quantity]) for quantity in ("seconds", "bytes")]
        rows.append(row)
    ranges = [f"{found[axis]['range'][0]}–{found[axis]['range'][1]}" if found[axis]["range"] else "–" for axis in found]
    headings = (
        "fitted exponents",
        f"theory of time, n in {ranges[0]}",
        "time",
        "memory",
        f"theory of time, d in {ranges[1]}",
        "time",
        "memory",
    )
    return table(headings, rows)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _crossing_tiles(found: dict[str, Any]) -> list[tuple[str, str, str]]:
    crossing, width = found["crossing"], found["width"]
    if crossing is None:
        return [("self-attention overtakes the LSTM", "not seen", f"at the lengths measured, d = {width}")]
    return [
        (
            "self-attention costs more than the LSTM from",
            f"n ≈ {crossing:,.0f}",
            f"at d = {width}: {crossing / width:.1f} times the width",
        )
    ]


def _now(measurement: dict[str, Any]) -> Markup:
    found = measurement["figures"]
    return join(
        tag("h3", "The same on the machine that made this page"),
        text("A short version of the measurement, with fewer sizes and repetitions, made together with the page."),
        _exponents(found["exponents"]),
        tiles(_crossing_tiles(found)),
        made_by(NAME, "complexity", measurement),
    )


def _sequential(found: dict[str, Any]) -> Markup:
    rows = found["rows"]
    names = {
        "attention": "multi-head attention",
        "recurrence": "LSTM, step by step",
        "convolution": f"{found['num_convolutions']} convolutions",
    }
    curves = [
        Curve(name, [(row["length"], row[kind]) for row in rows], "both", colour=COLOURS[kind])
        for kind, name in names.items()
    ]
    last, first = rows[-1], rows[0]
    per_step = (last["recurrence"] - first["recurrence"]) / (last["length"] - first["length"])
    return join(
        tag("h3", "What cannot be done in parallel"),
        text(
            "How many operations have to be computed one after the other? The graph that torch records for the "
            "gradient shows it: this is its longest chain, counting every operation, even trivial ones.",
        ),
        curve_chart(
            "Longest chain of operations", curves, x="length n", y="operations", digits=0, log_x=True, log_y=True
        ),
        made_by(NAME, "paths"),
        look(
            f"attention needs {last['attention']} operations in a row, whatever the length. The LSTM needs "
            f"{per_step:.0f} for every word: {last['recurrence']:,} at n = {last['length']}. However many processors "
            "there are, they have to wait for each other. This is one reason why Transformers make better use of GPUs.",
        ),
    )  # fmt: skip


def _gradients(found: dict[str, Any]) -> Markup:
    reach, values = found["reach"], found["gradients"]
    curves = [
        Curve("multi-head attention", paired(found["distances"], values["attention"]), colour=COLOURS["attention"]),
        Curve("LSTM", paired(found["distances"], values["recurrence"]), colour=COLOURS["recurrence"]),
        Curve(
            f"{found['num_convolutions']} convolutions",
            [(x, y) for x, y in zip(found["distances"], values["convolution"], strict=True) if y > 0],
            colour=COLOURS["convolution"],
        ),
    ]
    half = found["length"] // 2
    return join(
        tag("h3", "How far the influence of a word reaches"),
        text(
            "The path between two words shows in the gradient: how strongly does the last output depend on the input Δ "
            f"positions before it? Untrained modules of width {found['width']} with the initialisation of the package, "
            "relative to Δ = 0.",
        ),
        curve_chart(
            "Size of the gradient by distance", curves, x="distance Δ", y="relative gradient", digits=3, log_y=True,
            y_range=(1e-12, 3.0),
        ),
        made_by(NAME, "paths"),
        look(
            f"with attention the gradient of the word {half} positions away is {values['attention'][half]:.2f}, much "
            f"like that of the neighbour ({values['attention'][1]:.2f}): the path is one step long for all of them. In "
            f"the LSTM the gradient shrinks with every step, to {values['recurrence'][half]:.0e} at distance {half}; "
            "training can slow that down, but each step is one more chance to forget. Convolutions see exactly "
            f"{reach} words to the left ({found['num_convolutions']} layers, one more word each), and beyond that "
            "nothing at all: the curve ends.",
        ),
    )  # fmt: skip
