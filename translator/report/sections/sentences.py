"""Sections that show single sentences: the list of all, the detectors, and two runs side by side."""

from typing import Any

from translator.evaluation.metrics import METRICS
from translator.report.charts import bar_chart
from translator.report.figures.detectors import DETECTORS
from translator.report.figures.sentences import mark_differences, page_entry
from translator.report.html import Markup, fold, join, json_script, table, tag
from translator.report.sections.parts import NO_TRANSLATIONS, Figures, Section, by_run, counted_text, left_out

SORTS = {
    "worst": "worst first",
    "best": "best first",
    "random": "at random",
    "line": "in order",
    "longest": "longest first",
}


def sentence_browser(figures: Figures) -> Section:
    about = (
        "Every sentence with its reference; words that the other text lacks are marked. The score is chrF of the "
        "sentence, from 0 to 100."
    )
    title = "Sentences: worst, best, random"
    if figures["sentences"] is None:
        return Section("sentences", "Sentences", title, about, left_out(figures, NO_TRANSLATIONS))
    names = [run["name"] for run in figures["runs"]]
    sorts = dict(SORTS)
    if len(names) > 1:
        sorts |= {"second": f"{names[1]} better first", "first": f"{names[0]} better first"}
    held_out, shown = figures["held_out"], len(figures["sentences"])
    some = f"The page holds {shown:,} of {held_out['num_sentences']:,} sentences."
    data = {
        "names": names,
        "source_language": held_out["source_language"],
        "target_language": held_out["target_language"],
        "sentences": [page_entry(entry) for entry in figures["sentences"]],
    }
    faults = {"": "all"} | {name: name for name in DETECTORS}
    content = join(
        tag(
            "div",
            tag("label", "Sort ", _select("sentences-sort", sorts)),
            tag("label", "Detector ", _select("sentences-fault", faults)),
            tag("label", "Find ", tag("input", type="search", id="sentences-text", placeholder="text")),
            tag("button", "‹ back", type="button", id="sentences-before"),
            tag("span", id="sentences-count", role="status"),
            tag("button", "more ›", type="button", id="sentences-after"),
            class_="controls",
        ),
        tag("p", some, class_="about") if shown < held_out["num_sentences"] else None,
        tag("div", id="sentences-list"),
        json_script(data, id="sentences-data"),
    )
    return Section("sentences", "Sentences", title, about, content)


def _select(name: str, options: dict[str, str]) -> Markup:
    return tag("select", [tag("option", text, value=value) for value, text in options.items()], id=name)


def detectors(figures: Figures) -> Section:
    about = "Signs of trouble that an average score hides. The buttons show the sentences above."
    found = by_run(figures, "detectors")
    if not found:
        return Section("detectors", "Detectors", "Detectors", about, left_out(figures, NO_TRANSLATIONS))
    total = figures["held_out"]["num_sentences"]
    rows = []
    for fault, meaning in DETECTORS.items():
        counts = [counts[fault] for counts in found.values()]
        button = tag("button", "Show", type="button", data_fault=fault, aria_label=f"show sentences: {fault}")
        cells = [f"{count:,} ({100 * count / max(1, total):.1f} %)" for count in counts]
        rows.append((fault, *cells, button if any(counts) and figures["sentences"] is not None else "", meaning))
    names = list(found) if len(found) > 1 else ["sentences"]
    return Section("detectors", "Detectors", "Detectors", about, table(("detector", *names, "", "what it means"), rows))


def side_by_side(figures: Figures) -> Section | None:
    comparison = figures["comparison"]
    if comparison is None:
        return None
    names = [run["name"] for run in figures["runs"]]
    about = (
        "What one run gets right and the other wrong. p is how likely a difference as large as this would be if the "
        "two were equally good; p below 0.05 is usually called significant."
    )
    tests = [
        (
            METRICS[test["metric"]].label,
            f"{test['score_a']:.2f}",
            f"{test['score_b']:.2f}",
            f"{test['score_b'] - test['score_a']:+.2f}",
            f"{test['p_randomization']:.4f}",
            f"{test['p_bootstrap']:.4f}",
        )
        for test in comparison["tests"]
    ]
    headings = ("metric", *names, "difference", "p (randomisation)", "p (bootstrap)")
    better, exact = comparison["sentences"], comparison["exact"]
    counts = [
        ("better chrF", f"{better['first_better']:,}", f"{better['second_better']:,}", f"{better['equal']:,} equal"),
        (
            "exactly the reference, the other not",
            f"{exact['only_first']:,}",
            f"{exact['only_second']:,}",
            f"{exact['both']:,} both, {exact['neither']:,} neither",
        ),
    ]
    content = join(
        table(headings, tests),
        table(("sentences", *names, ""), counts),
        _words(comparison["words"], names, _words_counted_in(figures)) if comparison["words"] is not None else None,
        _examples(comparison["largest"], names, figures),
    )
    return Section("comparison", "Side by side", "Side by side", about, content)


def _words_counted_in(figures: Figures) -> str:
    """The classes are those of the first run, which is named if the other was trained on other words."""
    first = figures["runs"][0]
    text = counted_text(first["training_text"])
    return text if figures["comparison"]["same_training_words"] else f"{text} of {first['name']}"


def _words(rows: list[dict[str, Any]], names: list[str], counted_in: str) -> Markup:
    """Words of the reference that only one of the runs has written, as shares of all such words."""
    totals = [sum(row[key] for key in ("both", "only_first", "only_second", "neither")) for row in rows]
    shares = {
        f"only {name}": [row[key] / total if total else None for row, total in zip(rows, totals, strict=True)]
        for name, key in zip(names, ("only_first", "only_second"), strict=True)
    }
    return bar_chart(
        "Words of the references that only one run has written",
        [row["frequency"] for row in rows],
        shares,
        x=f"times in {counted_in}",
        y="share of such words",
        percent=True,
        notes=[
            f"only {names[0]} {row['only_first']:,}, only {names[1]} {row['only_second']:,}, both {row['both']:,}, "
            f"neither {row['neither']:,}"
            for row in rows
        ],
    )


def _examples(largest: dict[str, list[dict[str, Any]]], names: list[str], figures: Figures) -> list[Markup]:
    language = figures["held_out"]["target_language"]
    blocks = []
    for key, name in zip(("first_better", "second_better"), names, strict=True):
        cards = [_card(example, names, language) for example in largest[key]]
        blocks.append(fold(f"Sentences that {name} translates better", *cards))
    return blocks


def _card(example: dict[str, Any], names: list[str], language: str) -> Markup:
    rows = [_row("source", tag("p", example["source"], dir="auto"))]
    rows.append(_row("reference", tag("p", example["reference"], dir="auto", lang=language)))
    for name, key in zip(names, ("first", "second"), strict=True):
        output, _ = mark_differences(example[key], example["reference"])
        words = [tag("del", text) if is_marked else text for text, is_marked in output]
        score = tag("p", f"chrF {example[f'chrf_{key}']:.1f}", class_="facts")
        rows.append(_row(name, tag("div", tag("p", words, dir="auto", lang=language), score)))
    return tag("article", tag("header", f"line {example['line']}"), rows, class_="sentence")


def _row(name: str, content: Markup) -> Markup:
    return tag("div", tag("span", name, class_="name"), content, class_="row")
