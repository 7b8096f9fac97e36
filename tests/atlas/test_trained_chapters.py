"""The chapters about trained models as HTML: from a run, from shipped measurements, and without either."""

import copy
from pathlib import Path
from typing import Any

import pytest

from translator.atlas.chapters import bahdanau, extrapolation, heads, norms
from translator.atlas.figures import positions
from translator.atlas.figures.bahdanau import bahdanau as bahdanau_figure
from translator.atlas.figures.heads import heads as heads_figure
from translator.atlas.figures.norm_gradients import norm_gradients
from translator.atlas.figures.trainings import trainings
from translator.atlas.material import Material
from translator.atlas.shipped import with_provenance

SHIPPED = {
    "bahdanau": bahdanau_figure,
    "extrapolation": positions.extrapolation,
    "heads": heads_figure,
    "trainings": trainings,
}


def test_without_material_each_chapter_says_which_command_provides_it() -> None:
    assert "python -m translator.atlas --run RUN" in heads.write({"heads": None}).content
    assert "python -m translator.atlas --lstm-run RUN" in bahdanau.write({"bahdanau": None}).content
    assert "python -m translator.atlas.measure extrapolation" in extrapolation.write(None)


def test_the_heads_of_a_run(head_figures: dict[str, Any]) -> None:
    figures = head_figures
    page = heads.write({"heads": {"provenance": None, "figures": figures}}).content
    assert f"{figures['removal']['bleu']:.1f}" in page
    for number in (1, 2):
        assert f"attention to the source, layer {number}, head 2" in page
    assert "--only heads" in page  # how it was made
    without_gold = copy.deepcopy(figures) | {"has_gold": False}
    assert "no gold alignment" in heads.write({"heads": {"provenance": None, "figures": without_gold}}).content


def test_how_many_heads_can_be_removed_together() -> None:
    """The longest initial part of the curve that never loses more than one BLEU."""
    singles = [{"stack": s, "layer": 0, "number": 0, "bleu": 30.0, "num_changed": 1} for s in heads.STACKS]
    curve = [(0, 30.0), (1, 29.5), (2, 28.0), (3, 29.9)]
    role = {"role": "mixed", "shares": {}, "spread": 0.5}
    figures = {
        "held_out": "test",
        "num_sentences": 9,
        "has_gold": True,
        "rules": {"smallest_share": 0.4, "smallest_spread": 0.7},
        "roles": {stack: [[role]] for stack in heads.STACKS},
        "maps": {stack: [] for stack in heads.STACKS},
        "removal": {"bleu": 30.0, "singles": singles, "order": [], "curve": curve},
    }
    page = heads.write({"heads": with_provenance("python -m some.command", figures)}).content
    assert '<div class="what">can be removed together</div><div class="big">1 of 3</div>' in page
    assert "python -m some.command" in page


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_measurements_name_their_command_and_no_path_of_this_machine(name: str) -> None:
    found = SHIPPED[name](Material())
    assert found is not None
    assert found["provenance"]["command"].startswith(f"python -m translator.atlas.measure {name} ")
    assert "/tmp" not in str(found)
    assert "/work" not in str(found)
    assert str(Path.home()) not in str(found)


def test_shipped_measurements_make_whole_chapters() -> None:
    written = heads.write({"heads": heads_figure(Material())}).content
    assert written.count('data-kind="heads"') == 3
    assert written.count('data-kind="heatmap"') == 3
    assert bahdanau.write({"bahdanau": bahdanau_figure(Material())}).content.count('data-kind="line"') == 2
    assert extrapolation.write(positions.extrapolation(Material())).count('data-kind="line"') == 1
    figures: dict[str, Any] = {"gradients": norm_gradients(Material(quick=True)), "trainings": trainings(Material())}
    assert norms.write(figures).content.count('data-kind="line"') == 4
    assert norms.write(figures | {"trainings": None}).content.count('data-kind="line"') == 2
