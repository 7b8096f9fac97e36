"""The part of chapter 2 about masks."""

from typing import Any

from translator.atlas.chapters.parts import code, columns, look, made_by, missing, text
from translator.report.charts import heat_map
from translator.report.curves import Curve, curve_chart
from translator.report.html import Markup, join, table, tag

MADE = made_by("scores", "masks")


def write(figures: dict[str, Any]) -> Markup:
    return join(
        tag("h3", "Masks: what must not be seen"),
        text(
            "The sentences of a batch differ in length, so the shorter ones are filled up with padding. Padding is not "
            "a word, but a softmax gives some weight to everything. A mask is a table of True (may be attended to) and "
            "False; the softmax then runs over the True entries only. In a decoder, which learns to predict the next "
            "word, the words that are still to come must be hidden as well.",
        ),
        _padding(figures["padding"]),
        _padding_of_run(figures["padding_of_run"]),
        _future(figures["future"]),
        _empty(figures["empty_rows"]),
    )


def _padding(found: dict[str, Any]) -> Markup:
    rows = found["rows"]
    leaked = [
        Curve("without a mask", [(one["padding"], one["unmasked"]["leaked"]) for one in rows], "both", colour=1),
        Curve("equal weights", [(one["padding"], one["uniform"]) for one in rows], dashed=True, colour=2),
        Curve("with the mask", [(one["padding"], one["masked"]["leaked"]) for one in rows], "both", colour=0),
    ]
    change = [
        Curve("without a mask", [(one["padding"], one["unmasked"]["change"]) for one in rows], "both", colour=1),
        Curve("with the mask", [(one["padding"], one["masked"]["change"]) for one in rows], "both", colour=0),
    ]
    last = rows[-1]
    return join(
        tag("h4", "Padding"),
        columns(
            curve_chart("Attention that goes to padding", leaked, x="columns of padding", y="share of the weight"),
            curve_chart("Change in the outputs of the sentence", change, x="columns of padding", y="relative change"),
        ),
        MADE,
        look(
            f"a sentence of {found['length']} positions in an untrained layer of multi-head attention (size "
            f"{found['model_size']}, {found['num_heads']} heads). With {last['padding']} columns of padding and no "
            f"mask, {100 * last['unmasked']['leaked']:.0f} % of the attention goes to padding, and the outputs of the "
            f"sentence change by {100 * last['unmasked']['change']:.0f} % of their norm. So the result for a sentence "
            "would depend on how long the other sentences of its batch happen to be. With the mask the share is "
            f"exactly {last['masked']['leaked']:g}, and what remains ({last['masked']['change']:.0e}) is rounding.",
        ),
    )


def _padding_of_run(found: dict[str, Any] | None) -> Markup:
    if found is None:
        return missing(
            "The same with a trained model, and what it costs in perplexity:",
            "python -m translator.atlas --run RUN --only scores -o atlas.html",
        )
    rows = [(f"{one['padding']}", f"{one['masked']:.3f}", f"{one['unmasked']:.3f}") for one in found["rows"]]
    last = found["rows"][-1]
    return join(
        tag("h4", "The same in a trained model"),
        table(("columns of padding", "perplexity with the mask", "perplexity without"), rows),
        MADE,
        look(
            f"the run {found['run']} on {found['num_sentences']} sentences of its held-out set, with padding after "
            f"each source. With the mask, padding changes nothing. Without it, {last['padding']} columns raise the "
            f"perplexity of the reference from {last['masked']:.2f} to {last['unmasked']:.2f}: the model has never "
            "seen padding and does not know that it means nothing.",
        ),
    )


def _future(found: dict[str, Any]) -> Markup:
    names = [str(place + 1) for place in range(found["length"])]
    rows = [
        (name, *(f"{100 * found[kind]['changes'][place]:.1f} %" for kind in ("unmasked", "masked")))
        for place, name in enumerate(names)
    ]
    maps = [
        heat_map(title, names, names, found[kind]["weights"], maximum=0.5)
        for kind, title in (("unmasked", "Weights without a mask"), ("masked", "Weights with the causal mask"))
    ]
    return join(
        tag("h4", "The future"),
        columns(maps),
        tag("p", f"The last of {found['length']} words is replaced by another one. How much does each output change?"),
        table(("output at position", "without a mask", "with the causal mask"), rows),
        MADE,
        look(
            f"without a mask {100 * found['unmasked']['leaked']:.0f} % of the attention goes to later positions (equal "
            f"weights would give {100 * found['uniform']:.0f} %), and every output depends on the last word. A decoder "
            "trained like that can copy the answer: its training loss looks wonderful, but it cannot translate. With "
            "the causal mask the earlier outputs do not change at all. Before every training run ",
            code("translator/training/probe.py"),
            " checks both on the real model and data.",
        ),
    )


def _empty(found: dict[str, Any]) -> Markup:
    return join(
        tag("h4", "When everything is hidden"),
        table(
            ("a row whose mask is all False", "weights", "gradient of the values"),
            [
                (title, ", ".join(found[name]["weights"]), ", ".join(found[name]["gradient"]))
                for name, title in (("softmax", "softmax of −∞"), ("masked_softmax", "masked_softmax"))
            ],
        ),
        MADE,
        look(
            "a softmax over nothing divides zero by zero, and one such NaN spreads through the whole model. The masked "
            "softmax of ",
            code("translator/attention/softmax.py"),
            " gives zeros, with a gradient of zero.",
        ),
    )
