"""Chapter 7: what makes deep stacks of attention trainable."""

from typing import Any

from translator.atlas.chapters.parts import code, columns, look, made_by, missing, text
from translator.atlas.formulas import formula
from translator.report.curves import Curve, curve_chart
from translator.report.html import Markup, join, table, tag
from translator.report.sections.parts import Section

NAME = "norms"
ORDERS = {"pre": "pre-norm", "post": "post-norm"}
STARTS = {"plain": "plain initialisation", "scaled": "scaled initialisation"}
ABOUT = "The place of the normalisation decides whether the first layers of a deep model get a useful gradient."


def write(figures: dict[str, Any]) -> Section:
    content = join(
        text(
            "A layer of a Transformer adds something to its input: attention, or a small network. Sums of many layers "
            "grow, so they are normalised, and there are two places for it. The first Transformer normalised the sum "
            "(post-norm); most later ones normalise only what enters the branch, and leave the sum alone (pre-norm):"
        ),
        formula(
            r"\text{post-norm: } \text{norm}(x + f(x)) \quad \text{pre-norm: } x + f(\text{norm}(x))",
            "post-norm is the norm of x plus f of x; pre-norm is x plus f of the norm of x",
        ),
        _gradients(figures["gradients"]),
        _curves(figures["trainings"]),
    )
    return Section(NAME, "7 Depth", "7 · Deep stacks: pre-norm and post-norm", ABOUT, content)


def _gradients(found: dict[str, Any]) -> Markup:
    deepest = found["depths"][-1]
    by_layer, by_depth = [], []
    for one in found["variants"]:
        name = f"{ORDERS[one['norm_order']]}, {STARTS[one['initialisation']]}"
        dashed = one["initialisation"] == "scaled"
        norms = one["layers"][str(deepest)]
        by_layer.append(Curve(name, list(enumerate(norms, start=1)), dashed=dashed))
        ratios = [(depth, one["layers"][str(depth)][0] / one["layers"][str(depth)][-1]) for depth in found["depths"]]
        by_depth.append(Curve(name, ratios, mode="both", dashed=dashed))
    plain = next(one for one in found["variants"] if one["norm_order"] == "post" and one["initialisation"] == "plain")[
        "layers"
    ][str(deepest)]
    runs = "one initialisation" if found["seeds"] == 1 else f"the mean of {found['seeds']} initialisations"
    return join(
        tag("h3", "Gradients before the first update"),
        text(
            "Even before training, one backward pass shows how large a gradient each layer gets. The models here have "
            f"as many encoder layers as decoder layers, vectors of {found['model_size']} numbers and random weights; "
            f"they read {found['num_sentences']} random sentences of {found['length']} pieces. The charts show the "
            f"norm of the gradient of each decoder layer, {runs}."
        ),
        columns(
            curve_chart(
                f"Gradient of each decoder layer, {deepest} layers",
                by_layer,
                x="decoder layer (1 = farthest from the output)",
                y="gradient norm",
                digits=3,
                log_y=True,
            ),
            curve_chart(
                "First layer compared with the last",
                by_depth,
                x="decoder layers",
                y="gradient of the first ÷ last layer",
                digits=3,
                log_y=True,
            ),
        ),
        made_by(NAME, "norm_gradients"),
        look(
            f"with post-norm and plain initialisation, the first of {deepest} layers gets a gradient "
            f"{plain[-1] / plain[0]:.0f} times smaller than the last; every normalisation on the way back can shrink "
            "it. With pre-norm the sum is a direct way back, and no layer is cut off."
        ),
        text(
            "“Plain” gives every matrix Xavier's variance, as in the first Transformer. “Scaled” is how this package "
            "initialises its models: matrices at the end of a branch start out smaller, by the number of branches "
            "(pre-norm) or by the number of the layer (post-norm). That repairs most of the post-norm problem before "
            "training begins. The charts show only the state before the first update, and Adam divides each gradient "
            "by its own size, so a small gradient does not by itself mean slow learning; the curves below show what "
            "happens in training."
        ),
    )


def _curves(measurement: dict[str, Any] | None) -> Markup:
    heading = tag("h3", "The same in training")
    if measurement is None:
        command = "python -m translator.atlas.measure trainings --work DIR -o FILE"
        return join(heading, missing("The learning curves are not shipped with this copy. They are made by", command))
    found = measurement["figures"]
    return join(
        heading,
        text(
            "Pre-norm and post-norm in models of 8 + 8 layers with vectors of 64 numbers, with scaled initialisation, "
            "trained for 300 updates on the demo corpus, once with a learning rate that grows over the first 75 "
            "updates (warm-up) and once with the full rate from the start."
        ),
        _training_chart("Training loss: pre-norm and post-norm", found["norms"]),
        _end_table("model", found["norms"]),
        look(
            "post-norm without warm-up stops learning after its first steps, which are made at the full rate. With "
            "warm-up it learns, but stays behind. Pre-norm also learns without it, though not as far."
        ),
        made_by(NAME, "trainings", measurement),
        tag("h3", "Five scores in training"),
        text(
            "The scores of chapter 2 in a Transformer of 2 + 2 layers with a single head of 64 dimensions. Everything "
            "else is the same, so the curves differ only in how queries and keys are compared."
        ),
        _training_chart("Training loss with each score", found["scores"]),
        _end_table("score", found["scores"]),
        look(
            "the scaled dot, cosine and Gaussian scores, which are initialised to be equally large, stay together; the "
            "plain dot product, whose scores start out eight (√64) times as large, falls a little behind, and so does "
            "the additive score."
        ),
        made_by(NAME, "trainings", measurement),
        text(
            "One run for each curve, one seed, one learning rate, and far too short for good models: the charts show "
            "how training begins, not which model is the best. Differences of a few hundredths of the loss may be "
            "chance. The loss is the cross-entropy with label smoothing, so it cannot reach zero."
        ),
        _commands(found),
    )


def _training_chart(title: str, runs: list[dict[str, Any]]) -> Markup:
    curves = [Curve(one["name"].replace("_", " "), one["train"]) for one in runs]
    return curve_chart(title, curves, x="update", y="training loss")


def _end_table(kind: str, runs: list[dict[str, Any]]) -> Markup:
    rows = [
        (one["name"].replace("_", " "), f"{one['train'][-1][1]:.3f}", f"{one['validation'][1]:.3f}") for one in runs
    ]
    return table((kind, "training loss at the end", "validation loss"), rows)


def _commands(found: dict[str, Any]) -> Markup:
    lines = [tag("p", code(one["command"]), class_="made") for one in (*found["norms"], *found["scores"])]
    return tag("details", tag("summary", "The commands of these runs"), lines)
