"""The page as one file, with the translations inside: `translate --attention DIR` writes it."""

from typing import Any

import numpy as np

from translator.report.charts import packed_weights
from translator.report.html import json_text
from translator.serve.page import page

LARGEST = 12_000_000  # characters of data; browsers take noticeably long to open more


class OfflinePage:
    """Collects translations, as `inspect_line` gives them, until the page is full.

    `languages` are those of the sources and of their translations, for screen readers and hyphenation.
    """

    def __init__(self, title: str, largest: int = LARGEST, *, languages: tuple[str, str] = ("", "")) -> None:
        self.title, self.largest, self.languages = title, largest, languages
        self.translations: list[dict[str, Any]] = []
        self.num_left_out = 0
        self._size = 0

    @property
    def is_full(self) -> bool:
        return self.num_left_out > 0

    def add(self, number: int, translation: dict[str, Any]) -> None:
        """Adds line `number`, counted from 1, unless the page is full; no further line is added then."""
        packed = packed_translation(translation) | {"line": number, "languages": self.languages}
        size = len(json_text(packed))
        if self.is_full or self._size + size > self.largest:
            self.leave_out()
            return
        self._size += size
        self.translations.append(packed)

    def leave_out(self) -> None:
        self.num_left_out += 1

    @property
    def note(self) -> str:
        """What is missing, or nothing."""
        if not self.num_left_out:
            return ""
        shown, total = len(self.translations), len(self.translations) + self.num_left_out
        return f"only the first {shown:,} of {total:,} lines are shown here, to keep the page small; maps.html has all."

    def to_html(self) -> str:
        note = self.note
        return page(self.translations, title=self.title, note=note[:1].upper() + note[1:] if note else None)


def packed_translation(translation: dict[str, Any]) -> dict[str, Any]:
    """The same in a shorter form, which the scripts of the page understand too."""
    return translation | {"segments": [_packed_segment(segment) for segment in translation["segments"]]}


def _packed_segment(segment: dict[str, Any]) -> dict[str, Any]:
    heads, beam = segment["heads"], segment["beam"]
    if heads is not None:
        weights = np.array(heads["weights"], dtype=np.float64)  # (L, H, T, S)
        sizes = {name: heads[name] for name in ("rank", "layers", "heads")}
        heads = sizes | {"packed": packed_weights(weights)}
    if beam is not None:
        beam = {"packed": [_packed_node(node) for node in beam["nodes"]]}
    return segment | {"heads": heads, "beam": beam}


def _packed_node(node: dict[str, Any]) -> list[Any]:
    """[parent, piece, score, normalised score, 1 if kept + 2 if ended + 4 if best]; ids and steps follow from it."""
    flags = node["kept"] + 2 * node["ended"] + 4 * node["best"]
    return [node["parent"], node["piece"], node["score"], node["normalized_score"], flags]
