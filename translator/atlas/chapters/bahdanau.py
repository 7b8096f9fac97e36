"""Chapter 3: the attention of Bahdanau et al."""

from typing import Any

from translator.atlas.chapters.parts import columns, look, made_by, missing, text, tiles
from translator.report.charts import heat_map
from translator.report.curves import Curve, curve_chart
from translator.report.html import Markup, join, tag
from translator.report.sections.parts import Section

NAME = "bahdanau"
ABOUT = "Attention enters translation: the decoder chooses for each word what to read in the source."
INTRODUCTION = (
    "Before attention, an encoder had to press a whole sentence into one vector, and the decoder wrote the translation "
    "from it. Bahdanau, Cho and Bengio (2015) kept a vector for every source word and let the decoder attend to them: "
    "its state is the query, the source vectors are keys and values, and the score is a small network. Nobody tells "
    "the model which words belong together. If attention is useful, it should find out by itself."
)


def write(figures: dict[str, Any]) -> Section:
    measurement = figures["bahdanau"]
    if measurement is None:
        command = "python -m translator.atlas --lstm-run RUN -o atlas.html"
        return _section(join(text(INTRODUCTION), missing("This chapter needs a trained LSTM:", command)))
    found = measurement["figures"]
    made = made_by(NAME, "bahdanau", measurement if measurement["provenance"] else None)
    return _section(join(text(INTRODUCTION), _maps(found), _training(found), made))


def _section(content: Markup) -> Section:
    return Section(NAME, "3 Bahdanau", "3 · Attention in translation", ABOUT, content)


def _maps(found: dict[str, Any]) -> Markup:
    pairs = []
    for one in found["maps"]:
        title = f"Attention of the LSTM, %: {one['num_right']} of {len(one['target'])} words look where they should"
        percent = [[round(100 * weight) for weight in row] for row in one["attention"]]
        pairs.append(
            columns(
                heat_map(title, one["target"], one["source"], percent, digits=0, maximum=100.0),
                heat_map("The true alignment", one["target"], one["source"], one["gold"], digits=0, maximum=1.0),
            )
        )
    return join(
        tag("h3", "Who belongs to whom"),
        text(
            "Rows are the words of the translation in the order in which they are written, columns the words of the "
            "source. On the left is where the trained LSTM looks, on the right the true alignment, which the demo "
            "corpus knows because a grammar generated it. Shown are the sentences of the sample whose word order "
            "differs most between the two languages. (Weights of the pieces of a word are put together.)"
        ),
        pairs,
        look(
            "the path is no diagonal. Where the languages order their words differently, the attention jumps ahead or "
            "back to fetch a word, such as the verb that German puts at the end. A row with two marks on the right is "
            "a word that translates two; two marks in one column are one word translated by two."
        ),
    )


def _training(found: dict[str, Any]) -> Markup:
    alignment, curve = found["alignment"], found["curve"]
    charts = [
        curve_chart(
            "Alignment error at the checkpoints",
            [Curve("alignment error", [(update, 100 * error) for update, error in curve], mode="both")],
            x="update",
            y="alignment error, %",
            digits=1,
        )
    ]
    if found["validation"]:
        charts.append(
            curve_chart(
                "BLEU on the validation set",
                [Curve("BLEU", found["validation"], mode="both", colour=1)],
                x="update",
                y="BLEU",
                digits=1,
            )
        )
    return join(
        tag("h3", "How it learns to align"),
        text(
            "Take for each word of the translation the source word it looks at most, and compare these links with the "
            "true ones. The alignment error is 0 if they are the same and 100 % if they have nothing in common (Och "
            f"and Ney 2003). It is measured on {found['num_sentences']} sentences of the {found['held_out']} set, "
            "while the decoder is led through the reference translations."
        ),
        tiles(
            [
                ("alignment error", f"{100 * alignment['error_rate']:.1f} %", "of the final model"),
                ("precision", f"{100 * alignment['precision']:.1f} %", f"of {alignment['num_pairs']:,} links found"),
                ("recall", f"{100 * alignment['recall']:.1f} %", f"of {alignment['num_sure']:,} true links"),
            ]
        ),
        columns(charts),
        look(
            "alignment and translation are learned together. The model is trained on translations only; the alignment "
            "is a by-product."
        ),
        text(
            "The error never reaches zero, and need not: each word gets exactly one link here, while some true words "
            "have two, and the LSTM's states already carry something of the neighbouring words, so it can read a word "
            "next door. Good attention is no proof of good translation either. This is one run on a small artificial "
            "language."
        ),
    )
