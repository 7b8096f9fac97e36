"""The page: sections, styles and scripts in one HTML file that asks for nothing from elsewhere."""

from collections.abc import Sequence

from translator import __version__
from translator.report.charts import asset
from translator.report.html import Child, Markup, join, tag
from translator.report.sections import data, model, quality, sentences
from translator.report.sections.parts import Figures, Section

# The browser itself refuses whatever the page would fetch.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def report_page(figures: Figures) -> str:
    """The whole report as HTML."""
    names = " and ".join(run["name"] for run in figures["runs"])
    wanted = [
        quality.verdict(figures),
        sentences.side_by_side(figures),
        quality.learning_curves(figures),
        quality.by_length(figures),
        quality.by_frequency(figures),
        quality.ngrams(figures),
        sentences.sentence_browser(figures),
        sentences.detectors(figures),
        model.calibration(figures),
        model.attention(figures),
        model.search(figures),
        data.data_card(figures),
        data.reproducibility(figures),
    ]
    quick: Child = None
    if figures["full_command"] and figures["left_out"]:
        parts = ", ".join(figures["left_out"])
        quick = tag(
            "p",
            f"This is the quick report that is written when training ends, without {parts}. The full one: ",
            tag("code", figures["full_command"]),
            class_="note",
        )
    return page(f"Report of {names}", [section for section in wanted if section is not None], quick, "sentences.js")


def page(title: str, sections: Sequence[Section], preface: Child = None, *scripts: str) -> str:
    """Any page in this style: a heading, a list of the sections, and the sections; `scripts` are names of assets."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("title", title),
        tag("style", Markup(asset("style.css"))),
    )
    links = [tag("li", tag("a", section.short, href=f"#{section.anchor}")) for section in sections]
    body = tag(
        "body",
        tag("header", tag("h1", title), tag("button", "Dark mode", type="button", id="theme")),
        tag("nav", tag("ul", links), aria_label="sections"),
        tag(
            "main",
            tag("noscript", tag("p", "The charts need JavaScript; the tables do not.", class_="note")),
            preface,
            [section.to_html() for section in sections],
        ),
        tag("footer", f"Made by translator {__version__}. This file needs no network."),
        [tag("script", Markup(asset(name))) for name in ("theme.js", "charts.js", *scripts)],
        tag("script", Markup("Charts.drawAll();")),
    )
    return join(Markup("<!DOCTYPE html>\n"), tag("html", head, body, lang="en")) + "\n"
