"""Sections about the translations as a whole: verdict, curves, lengths, words, n-grams."""

from typing import Any

from translator.evaluation.metrics import METRICS
from translator.report.charts import bar_chart, line_chart, number_text
from translator.report.html import Markup, fold, join, table, tag
from translator.report.sections.parts import (
    NO_TRAINING_TEXT,
    NO_TRANSLATIONS,
    Figures,
    Section,
    by_run,
    counted_text,
    counted_texts,
    labelled,
    left_out,
)

SIGNIFICANT = 0.05


def verdict(figures: Figures) -> Section:
    held_out, scores = figures["held_out"], by_run(figures, "scores")
    about = (
        f"{held_out['source_language']} → {held_out['target_language']}, {held_out['num_sentences']:,} sentences of "
        f"{held_out['name']}. The interval holds 95 % of the scores of resampled test sets (bootstrap)."
    )
    if not scores:
        return Section("verdict", "Verdict", "Verdict", about, left_out(figures, NO_TRANSLATIONS))
    tiles = [_tile(name, metric, values[metric]) for name, values in scores.items() for metric in ("bleu", "chrf")]
    warnings = {values["warning"] for values in scores.values() if "warning" in values}
    signatures = [
        tag("li", tag("b", METRICS[metric].label), " ", tag("code", values[metric]["signature"]))
        for values in list(scores.values())[:1]
        for metric in ("bleu", "chrf")
    ]
    content = join(
        tag("p", tag("b", verdict_line(figures))),
        tag("div", tiles, class_="tiles"),
        [tag("p", f"Warning: {warning}.", class_="note") for warning in sorted(warnings)],
        fold("Signatures of sacreBLEU", tag("ul", signatures)),
    )
    return Section("verdict", "Verdict", "Verdict", about, content)


def _tile(name: str, metric: str, score: dict[str, Any]) -> Markup:
    return tag(
        "div",
        tag("div", f"{METRICS[metric].label} of {name}", class_="what"),
        tag("div", f"{score['value']:.1f}", class_="big"),
        tag("div", f"95 % between {score['low']:.1f} and {score['high']:.1f}", class_="small"),
        class_="tile",
    )


def verdict_line(figures: Figures) -> str:
    """The report in one sentence."""
    comparison = figures["comparison"]
    if comparison is None:
        (name, scores), *_ = by_run(figures, "scores").items()
        bleu, chrf = scores["bleu"], scores["chrf"]
        return (
            f"{name}: BLEU {bleu['value']:.1f} [{bleu['low']:.1f}, {bleu['high']:.1f}], "
            f"chrF {chrf['value']:.1f} [{chrf['low']:.1f}, {chrf['high']:.1f}]."
        )
    names = [run["name"] for run in figures["runs"]]
    test = comparison["tests"][0]
    p_value = test["p_randomization"]
    difference = abs(test["score_b"] - test["score_a"])
    if not test["better"]:
        return f"{names[0]} and {names[1]} have the same BLEU."
    better, worse = names if test["better"] == "A" else names[::-1]
    ending = (
        f"the difference is significant (p = {p_value:.4f})"
        if p_value < SIGNIFICANT
        else f"the difference may be chance (p = {p_value:.4f})"
    )
    return f"{better} is {difference:.1f} BLEU better than {worse}; {ending}, by paired approximate randomisation."


CURVES = (
    ("Loss", ("train/loss", "validation/loss"), "loss", 3),
    ("Scores on the validation set", ("validation/bleu", "validation/chrf"), "score", 1),
    ("Learning rate", ("train/learning_rate",), "learning rate", 6),
    ("Gradient norm, before clipping", ("train/gradient_norm",), "norm", 2),
    ("Speed", ("train/tokens_per_second",), "target tokens/s", 0),
)
CURVE_NAMES = {
    "validation/bleu": "BLEU",
    "validation/chrf": "chrF",
    "train/loss": "training",
    "validation/loss": "validation",
}


def learning_curves(figures: Figures) -> Section:
    charts = []
    for title, names, y, digits in CURVES:
        series = {
            labelled(figures, run, CURVE_NAMES.get(name, y)): curves[name]
            for run, curves in by_run(figures, "curves").items()
            for name in names
            if name in curves
        }
        if series:
            charts.append(line_chart(title, series, x="update", y=y, digits=digits))
    content = tag("div", charts, class_="columns") if charts else left_out(figures, "The run has logged no curves.")
    about = "How training went. Point at a chart, or use the arrow keys, to read its values."
    return Section("curves", "Curves", "Learning curves", about, content)


def by_length(figures: Figures) -> Section:
    about = (
        "BLEU and chrF of sentences with short and with long sources, in words (characters where a language has no "
        "spaces). Groups of few sentences vary by chance."
    )
    found = by_run(figures, "lengths")
    if not found:
        return Section("lengths", "Length", "Scores by source length", about, left_out(figures, NO_TRANSLATIONS))
    rows = next(iter(found.values()))
    categories, notes = [row["length"] for row in rows], [f"{row['num_sentences']:,} sentences" for row in rows]
    charts = [
        bar_chart(
            METRICS[metric].label,
            categories,
            {
                labelled(figures, name, METRICS[metric].label): [row[metric] for row in rows]
                for name, rows in found.items()
            },
            x="source words",
            y=METRICS[metric].label,
            notes=notes,
        )
        for metric in ("bleu", "chrf")
    ]
    return Section("lengths", "Length", "Scores by source length", about, tag("div", charts, class_="columns"))


def by_frequency(figures: Figures) -> Section:
    about = (
        "Translation accuracy of words that are frequent, rare or absent in the training text. F1 is the harmonic mean "
        "of precision (written words that the reference has) and recall (words of the reference that were written), as "
        "compare-mt defines it (Neubig et al. 2019)."
    )
    found = by_run(figures, "frequency")
    if not found:
        why = NO_TRANSLATIONS if not by_run(figures, "scores") else NO_TRAINING_TEXT
        return Section("frequency", "Words", "Word accuracy by frequency in training", about, left_out(figures, why))
    counted_in = counted_texts(figures)
    chart = bar_chart(
        "F1 of words",
        [row["frequency"] for row in next(iter(found.values()))],
        {labelled(figures, name, "F1"): [row["f1"] for row in rows] for name, rows in found.items()},
        x=f"times in {counted_in}",
        y="F1",
        percent=True,
        notes=_numbers_of_words(found),
        maximum=1.0,
    )
    texts = {run["name"]: counted_text(run.get("training_text")) for run in figures["runs"]}
    tables = [_accuracy_table(name, rows, texts[name]) for name, rows in found.items()]
    title = f"Word accuracy by frequency in {counted_in}"
    return Section("frequency", "Words", title, about, join(chart, tables))


def _numbers_of_words(found: dict[str, list[dict[str, Any]]]) -> list[str]:
    """How many words of the references are in each class, for each run where their training texts differ."""
    counts = {name: [f"{row['num_reference']:,}" for row in rows] for name, rows in found.items()}
    first, *others = counts.values()
    if all(of_run == first for of_run in others):
        return [f"{count} in the references" for count in first]
    named = [[f"{count} ({name})" for count in of_run] for name, of_run in counts.items()]
    return [f"{', '.join(of_class)} in the references" for of_class in zip(*named, strict=True)]


def _accuracy_table(name: str, rows: list[dict[str, Any]], counted_in: str) -> Markup:
    headings = (f"times in {counted_in}", "in references", "written", "right", "precision", "recall", "F1")
    cells = [
        (
            row["frequency"],
            f"{row['num_reference']:,}",
            f"{row['num_output']:,}",
            f"{row['num_matched']:,}",
            *(number_text(row[key], 1, percent=True) for key in ("precision", "recall", "f1")),
        )
        for row in rows
    ]
    return fold(f"Precision and recall of {name}", table(headings, cells))


def ngrams(figures: Figures) -> Section:
    about = (
        "Sequences of up to four words that the model writes more often, or less often, than the reference of the same "
        "sentence."
    )
    found = by_run(figures, "ngrams")
    if not found:
        return Section("ngrams", "N-grams", "Too often and too rarely", about, left_out(figures, NO_TRANSLATIONS))
    blocks = []
    for name, lists in found.items():
        tables = []
        for key, title in (("too_often", "Written too often"), ("too_rarely", "Written too rarely")):
            cells = [
                (
                    tag("bdi", row["ngram"], lang=figures["held_out"]["target_language"]),
                    *(f"{row[count]:,}" for count in ("num_surplus", "num_missing", "num_matched")),
                )
                for row in lists[key]
            ]
            tables.append(tag("div", tag("h3", title), table(("n-gram", "too many", "missing", "right"), cells)))
        heading = tag("h3", name) if len(found) > 1 else None
        blocks.append(join(heading, tag("div", tables, class_="columns")))
    return Section("ngrams", "N-grams", "Too often and too rarely", about, join(blocks))
