"""The chapters of the atlas, in the order of the README's table "Attention, from the ground up"."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from translator.atlas.chapters import bahdanau as bahdanau_chapter
from translator.atlas.chapters import complexity as complexity_chapter
from translator.atlas.chapters import heads as heads_chapter
from translator.atlas.chapters import norms as norms_chapter
from translator.atlas.chapters import pooling as pooling_chapter
from translator.atlas.chapters import positions as positions_chapter
from translator.atlas.chapters import scores as scores_chapter
from translator.atlas.figures import complexity, masks, paths, pooling, positions, scores
from translator.atlas.figures.bahdanau import bahdanau
from translator.atlas.figures.heads import heads
from translator.atlas.figures.norm_gradients import norm_gradients
from translator.atlas.figures.trainings import trainings
from translator.atlas.material import Material
from translator.report.sections.parts import Section

Figures = dict[str, Any]  # of a chapter, by name; None if the material is missing


@dataclass(frozen=True)
class Chapter:
    """`figures` compute plain values from the material, or None if it is missing; `write` turns them into HTML."""

    number: int
    name: str  # for --only
    figures: Mapping[str, Callable[[Material], dict[str, Any] | None]]
    write: Callable[[Figures], Section]

    def compute(self, material: Material) -> Figures:
        return {name: function(material) for name, function in self.figures.items()}


CHAPTERS: tuple[Chapter, ...] = (
    Chapter(
        1,
        "pooling",
        {
            "regressions": pooling.regressions,
            "widths": pooling.widths,
            "descent": pooling.descent,
            "kernels": pooling.kernels,
        },
        pooling_chapter.write,
    ),
    Chapter(
        2,
        "scores",
        {
            "plane": scores.weights_in_a_plane,
            "saturation": scores.saturation,
            "padding": masks.padding,
            "padding_of_run": masks.padding_of_run,
            "future": masks.future,
            "empty_rows": masks.empty_rows,
        },
        scores_chapter.write,
    ),
    Chapter(3, "bahdanau", {"bahdanau": bahdanau}, bahdanau_chapter.write),
    Chapter(4, "heads", {"heads": heads}, heads_chapter.write),
    Chapter(
        5,
        "positions",
        {
            "sinusoids": positions.sinusoids,
            "rotary": positions.rotary,
            "relative": positions.relative,
            "trained": positions.trained,
            "shipped": positions.shipped_positions,
            "extrapolation": positions.extrapolation,
        },
        positions_chapter.write,
    ),
    Chapter(
        6,
        "complexity",
        {
            "measured": complexity.measured,
            "now": complexity.now,
            "sequential": paths.sequential,
            "gradients": paths.gradients,
        },
        complexity_chapter.write,
    ),
    Chapter(7, "norms", {"gradients": norm_gradients, "trainings": trainings}, norms_chapter.write),
)


def chosen_chapters(names: Sequence[str]) -> list[Chapter]:
    """The chapters of these names, or all of them, in the order of the atlas."""
    return [chapter for chapter in CHAPTERS if not names or chapter.name in names]
