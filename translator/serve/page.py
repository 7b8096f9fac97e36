"""The page that shows how a translation came about: served at /, or written as one file that includes its data."""

from collections.abc import Sequence
from importlib import resources
from typing import Any

from translator import __version__
from translator.report.charts import asset
from translator.report.html import Child, Markup, join, json_script, tag

# Opened as a file, the page cannot fetch anything: the browser enforces this.
OFFLINE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
SCRIPTS = (
    "state.js",
    "texts.js",
    "weave.js",
    "choices.js",
    "alternatives.js",
    "beam.js",
    "service.js",
    "main.js",
    "link.js",
)
PANELS = (
    ("alternatives", "Other translations", "Further translations that the search found, with the differences marked."),
    ("heads", "Attention of every head", "Each row is a target piece, each column a source piece."),
    ("beam", "The search", "Each column is a step with its candidates, kept or dropped, best first."),
)


def page(
    translations: Sequence[dict[str, Any]] | None = None, *, title: str = "Translator", note: str | None = None
) -> str:
    """The page as HTML. With translations, as `inspect_line` gives them, it shows these and needs no server."""
    is_offline = translations is not None
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=OFFLINE_POLICY) if is_offline else None,
        Markup('<link rel="icon" href="data:,">'),
        tag("title", title),
        tag("style", Markup(asset("style.css") + _asset("page.css"))),
    )
    body = tag(
        "body",
        tag("header", tag("h1", title), tag("button", "Dark mode", type="button", id="theme")),
        tag(
            "main",
            tag("noscript", tag("p", "This page needs JavaScript.", class_="note")),
            tag("p", note, class_="note", id="note") if note else None,
            None if is_offline else _input(),
            tag("p", id="message", class_="note", role="alert", hidden=True),
            _result(),
            [_panel(name, heading, about) for name, heading, about in PANELS],
        ),
        tag("footer", f"translator {__version__}. ", "This file needs no network." if is_offline else None),
        json_script(list(translations), id="translations") if translations is not None else None,
        [tag("script", Markup(asset(name))) for name in ("theme.js", "charts.js")],
        [tag("script", Markup(_asset(name))) for name in SCRIPTS],
    )
    return join(Markup("<!DOCTYPE html>\n"), tag("html", head, body, lang="en")) + "\n"


def _asset(name: str) -> str:
    return (resources.files("translator.serve") / "assets" / name).read_text(encoding="utf-8")


def _input() -> Markup:
    """The part that needs a server: the text to translate, the languages and the key."""
    return tag(
        "section",
        tag(
            "form",
            _control("pair", "Languages", tag("select", id="pair"), hidden=True),
            _control("key", "API key", tag("input", id="key", type="password", autocomplete="off"), hidden=True),
            class_="controls",
            id="settings",
        ),
        tag(
            "div",
            tag(
                "div",
                tag("label", "Text", for_="text"),
                tag("textarea", id="text", dir="auto", rows=4, spellcheck="false", autofocus=True),
            ),
            tag(
                "div",
                tag("span", "Translation", id="translation-name", class_="name"),
                tag("div", id="translation", role="group", aria_labelledby="translation-name", aria_live="polite"),
            ),
            class_="two-texts",
        ),
        id="input",
        aria_label="text to translate",
    )


def _control(name: str, text: str, control: Markup, *, hidden: bool) -> Markup:
    return tag("label", f"{text} ", control, id=f"{name}-control", hidden=hidden)


def _result() -> Markup:
    units = [
        tag("label", tag("input", type="radio", name="unit", value=value, checked=value == "words"), value)
        for value in ("words", "pieces")
    ]
    return tag(
        "section",
        tag("h2", "What the model looked at", id="result-name"),
        tag("p", id="hint", class_="about"),
        tag(
            "div",
            tag("label", "Sentence ", tag("select", id="sentence"), id="sentence-control", hidden=True),
            tag("fieldset", tag("legend", "show", class_="unseen"), units, class_="units"),
            tag("span", id="forced", hidden=True),
            _link(),
            class_="controls",
        ),
        tag("div", id="weave"),
        tag("p", id="seen", role="status", class_="facts"),
        _legend(),
        tag("div", id="choices", role="dialog", aria_labelledby="choices-name", tabindex=-1, hidden=True),
        id="result",
        aria_labelledby="result-name",
        hidden=True,
    )


def _link() -> Markup:
    return tag(
        "span",
        tag("button", "Copy link", type="button", id="copy-link"),
        tag("input", id="link", type="text", readonly=True, aria_label="address of this view", hidden=True),
        tag("span", id="link-said", role="status", class_="facts"),
        class_="link",
    )


def _legend() -> Markup:
    """How sure the model was, in colours and also in line styles, for those who cannot see the colours."""
    levels = [(4, "over 90 %"), (3, "over 50 %"), (2, "over 20 %"), (1, "less")]
    keys = [tag("span", tag("span", name, class_=f"unit sure-{level}")) for level, name in levels]
    return tag("p", "Probability: ", keys, class_="legend facts")


def _panel(name: str, heading: str, about: str) -> Child:
    return tag(
        "details",
        tag("summary", tag("h2", heading)),
        tag("p", about, class_="about"),
        tag("div", class_="plot"),
        id=name,
        class_="panel",
        hidden=True,
    )
