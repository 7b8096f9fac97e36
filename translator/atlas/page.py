"""The atlas as one HTML page."""

from typing import Any

from translator.atlas.contents import CHAPTERS
from translator.report.html import tag
from translator.report.page import page

TITLE = "An atlas of attention"
PREFACE = (
    "A walk through the ideas of attention, from averaging to the Transformer. Every number on this page was computed "
    "by the functions of the package that the text names, either when the page was made or in a longer measurement "
    "whose command, date and machine are given. Move the sliders, point at the charts (or use the arrow keys), and "
    "open “Show the numbers” to read a chart as a table."
)


def atlas_page(figures: dict[str, Any]) -> str:
    """The page of the figures of some chapters, or all of them: {chapter: {figure: values}}."""
    sections = [chapter.write(figures[chapter.name]) for chapter in CHAPTERS if chapter.name in figures]
    return page(TITLE, sections, tag("p", PREFACE, class_="about"), "explore.js")
