"""The part of chapter 5 about sentences longer than those seen in training."""

from typing import Any

from translator.atlas.chapters.parts import missing
from translator.report.html import Markup, join, tag


def write(measurement: dict[str, Any] | None) -> Markup:
    heading = tag("h3", "Beyond the lengths of training")
    if measurement is None:
        remedy = "python -m translator.atlas.measure extrapolation -o translator/atlas/data/extrapolation.json"
        return join(heading, missing("How each kind of positions does on longer sentences is measured by", remedy))
    return heading
