"""Sections that look into the model: calibration, attention and search."""

from typing import Any

from translator.report.charts import attention_maps, bar_chart, heat_map, number_text
from translator.report.html import Markup, join, table, tag
from translator.report.sections.parts import NO_MODEL, Figures, Section, by_run, labelled, left_out


def calibration(figures: Figures) -> Section:
    about = (
        "Is the model right as often as it is confident? The references are given piece by piece; the confidence is "
        "the probability of the piece that the model finds most likely, which is right if it is the reference's. The "
        "expected calibration error is the mean distance between confidence and accuracy over bins of confidence, "
        "weighted by their size (Guo et al. 2017; for translation, Wang et al. 2020). A bar below its mark means "
        "overconfidence, a bar above it underconfidence."
    )
    found = by_run(figures, "calibration")
    if not found:
        return Section("calibration", "Calibration", "Calibration", about, left_out(figures, NO_MODEL))
    tiles = [
        tag(
            "div",
            tag("div", labelled(figures, name, "expected calibration error"), class_="what"),
            tag("div", number_text(values["expected_calibration_error"], 1, percent=True), class_="big"),
            tag(
                "div",
                f"accuracy {number_text(values['accuracy'], 1, percent=True)}, confidence "
                f"{number_text(values['confidence'], 1, percent=True)}, {values['num_pieces']:,} pieces",
                class_="small",
            ),
            class_="tile",
        )
        for name, values in found.items()
    ]
    charts = [_reliability(labelled(figures, name, "Reliability diagram"), values) for name, values in found.items()]
    content = join(tag("div", tiles, class_="tiles"), tag("div", charts, class_="columns"))
    return Section("calibration", "Calibration", "Calibration", about, content)


def _reliability(title: str, values: dict[str, Any]) -> Markup:
    bins = values["bins"]
    middles = [(one["from"] + one["to"]) / 2 for one in bins]
    return bar_chart(
        title,
        [f"{100 * one['from']:.0f}–{100 * one['to']:.0f}" for one in bins],
        {"accuracy": [one["accuracy"] for one in bins]},
        x="confidence, %",
        y="accuracy",
        percent=True,
        expected=[
            one["confidence"] if one["confidence"] is not None else middle
            for one, middle in zip(bins, middles, strict=True)
        ],
        notes=[
            f"{one['num_pieces']:,} pieces, mean confidence {number_text(one['confidence'], 1, percent=True)}"
            for one in bins
        ],
        maximum=1.0,
    )


def attention(figures: Figures) -> Section:
    about = (
        "What the decoder looks at in the source while it is led through the references. Rows are target pieces, "
        "columns source pieces; ▁ marks the beginning of a word. Entropy says how spread out a head is: 0 bits = one "
        "piece, 3 bits = as if over eight. The alignment error compares each word's most attended source word with the "
        "gold alignment; 0 % is perfect (Och and Ney 2003)."
    )
    found = by_run(figures, "attention")
    if not found:
        why = NO_MODEL if figures["full_command"] else "The model has no attention to show."
        return Section("attention", "Attention", "Attention", about, left_out(figures, why))
    blocks = []
    for name, values in found.items():
        blocks.append(tag("h3", name) if len(found) > 1 else None)
        blocks.append(attention_maps("Attention maps", values["maps"]) if values["maps"] else None)
        blocks.append(tag("div", _heads(values), class_="columns"))
    return Section("attention", "Attention", "Attention", about, join(blocks))


def _heads(values: dict[str, Any]) -> list[Markup]:
    layers = [f"layer {number + 1}" for number in range(len(values["entropy"]))]
    heads = [f"h{number + 1}" for number in range(len(values["entropy"][0]))]
    result = [heat_map("Entropy of each head, in bits", layers, heads, values["entropy"])]
    gold = values["alignment"]
    if gold is None:
        result.append(tag("p", "There are no gold alignments to compare with.", class_="about"))
        return result
    chart = heat_map(
        "Alignment error of each head, %", layers, heads, _percent(gold["of_heads"]), digits=1, maximum=100.0
    )
    mean = gold["of_mean"]
    text = (
        f"Mean of all heads: alignment error {100 * mean['error_rate']:.1f} %, precision "
        f"{100 * mean['precision']:.1f} %, recall {100 * mean['recall']:.1f} %."
    )
    return [*result, join(chart, tag("p", text))]


def _percent(rows: list[list[float]]) -> list[list[float]]:
    return [[100 * value for value in row] for row in rows]


def search(figures: Figures) -> Section:
    about = (
        "What beam search gains over greedy search and what it costs, on sentences spread over the set. A search error "
        "is a sentence for which the model itself gives the reference or the greedy output a higher score than the "
        "output of the beam. Only these two are tried, so the true share is at least this high (Stahlberg and Byrne "
        "2019)."
    )
    found = by_run(figures, "search")
    if not found:
        return Section("search", "Search", "Search", about, left_out(figures, NO_MODEL))
    blocks = []
    for name, values in found.items():
        rows = [
            (
                label,
                f"{values[key]['bleu']:.1f}",
                f"{values[key]['chrf']:.1f}",
                f"{values[key]['sentences_per_second']:.1f}",
            )
            for label, key in ((f"beam of {values['beam_size']}", "beam"), ("greedy", "greedy"))
        ]
        shares = [
            ("beam and greedy differ", number_text(values["share_different"], 1, percent=True)),
            ("search errors", number_text(values["search_errors"], 1, percent=True)),
            ("… the greedy output has the higher score", number_text(values["greedy_better"], 1, percent=True)),
            ("… the reference has the higher score", number_text(values["reference_better"], 1, percent=True)),
        ]
        title = f"{name}, {values['num_sentences']:,} sentences" if len(found) > 1 else None
        measured = f"Measured on {values['num_sentences']:,} sentences, on the machine that made this page."
        blocks.append(tag("h3", title) if title else None)
        blocks.append(
            tag(
                "div",
                table(("search", "BLEU", "chrF", "sentences/s"), rows),
                table(("share of sentences", ""), shares),
                class_="columns",
            )
        )
        blocks.append(tag("p", measured, class_="about"))
    return Section("search", "Search", "Search", about, join(blocks))
