"""`python -m translator.atlas` and `python -m translator.atlas.measure`: pages, figures and mistakes."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.small_runs import make_small_run, write_corpora
from translator.atlas import shipped
from translator.atlas.__main__ import main
from translator.atlas.chapters import complexity, extrapolation, masks, parts, pooling, positions, scores
from translator.atlas.contents import CHAPTERS, chosen_chapters
from translator.atlas.measure.__main__ import main as measure
from translator.atlas.page import atlas_page
from translator.build import atlas_command
from translator.config import load_file, save_file
from translator.errors import UserError


def test_the_page_has_the_chapters_in_order(figures: dict[str, Any]) -> None:
    page = atlas_page(figures)
    places = [page.index(f'<section id="{name}">') for name in ("pooling", "scores", "positions", "complexity")]
    assert places == sorted(places)
    numbers = [chapter.number for chapter in CHAPTERS]
    assert numbers == sorted(set(numbers))
    assert "https://" not in page.replace("http://www.w3.org", "")
    assert len(page.encode()) < 2_000_000
    for name, write in (("pooling", pooling), ("scores", scores), ("positions", positions), ("complexity", complexity)):
        assert write.write(figures[name]).content in page
    assert masks.write(figures["scores"]) in page


def test_numbers_of_the_page_are_those_of_the_figures(figures: dict[str, Any]) -> None:
    page = atlas_page(figures)
    for method in figures["pooling"]["regressions"]["methods"]:
        assert f"{method['test_error']:.3f}" in page
    assert f"n ≈ {figures['complexity']['measured']['figures']['crossing']:,.0f}" in page


def test_every_figure_names_its_command(figures: dict[str, Any]) -> None:
    page = atlas_page(figures)
    parts_with_figures = [part for part in re.split("<h[34]>", page) if "<figure" in part]
    assert len(parts_with_figures) > 10
    assert all('class="made"' in part for part in parts_with_figures)
    for chapter in figures:
        assert f"python -m translator.atlas --only {chapter} --json -" in page
    assert "measured on 2" in page


def test_without_material_a_chapter_names_the_command_that_provides_it(figures: dict[str, Any]) -> None:
    without = {**figures["complexity"], "measured": None}
    assert "python -m translator.atlas.measure complexity -o" in complexity.write(without).content
    assert "python -m translator.atlas --run RUN --only scores" in scores.write(figures["scores"]).content
    without = {**figures["positions"], "shipped": None, "trained": None, "extrapolation": None}
    assert "model.positions=learned" in positions.write(without).content
    assert "python -m translator.atlas.measure" in extrapolation.write(None)
    assert shipped.shipped("nothing") is None


def test_only_one_chapter_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "pooling", "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found) == ["pooling"]
    assert [chapter.name for chapter in chosen_chapters(["pooling"])] == ["pooling"]


def test_a_run_adds_what_needs_one(atlas_run: Path, tmp_path: Path) -> None:
    assert main(["--run", str(atlas_run), "--only", "scores", "--quick", "-o", str(tmp_path / "a.html")]) == 0
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "the run small on" in page
    assert "--run RUN" not in page


def test_mistakes_get_one_line(atlas_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = str(tmp_path / "a.html")
    mistakes = {
        (): "atlas: nothing to write; give the page with -o atlas.html, or --json FILE",
        ("-o", output, "--only", "poling"): "atlas: --only poling: no such chapter; did you mean pooling?",
        ("-o", output, "--run", "nowhere"): "atlas: --run nowhere: no such directory; give the directory of a training",
        ("-o", output, "--lstm-run", str(atlas_run)): "is a run with model=transformer; give it as --run",
        ("-o", str(tmp_path)): "is a directory; give a file inside it",
        ("-o", output, "--json", output): "is also written by",
    }
    for arguments, message in mistakes.items():
        assert main(list(arguments)) == 2
        error = capsys.readouterr().err.strip()
        assert message in error
        assert len(error.splitlines()) == 1
    assert not Path(output).exists()
    for command, prefix in ((main, ["-o", output, "--threads", "0"]), (measure, ["nothing", "-o", output])):
        with pytest.raises(SystemExit) as ending:
            command(prefix)
        assert ending.value.code == 2
        assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_an_lstm_is_refused_as_a_transformer(tmp_path: Path) -> None:
    write_corpora(tmp_path / "corpora")
    run = make_small_run(tmp_path / "lstm", tmp_path / "corpora", "lstm")
    with pytest.raises(UserError, match="give it as --lstm-run"):
        atlas_command.load_trained_run("--run", run, "transformer")
    config = load_file(run / "config.yaml")
    save_file(replace(config, data=replace(config.data, reverse_target=True)), run / "config.yaml")
    with pytest.raises(UserError, match=r"--lstm-run .*: was trained with data\.reverse_target=true"):
        atlas_command.load_trained_run("--lstm-run", run, "lstm")
    save_file(config, run / "config.yaml")
    for path in (tmp_path / "corpora").iterdir():
        path.unlink()
    loaded = atlas_command.load_trained_run("--lstm-run", run, "lstm")
    assert loaded is not None
    assert loaded.held_out is None  # its corpora are gone


@pytest.mark.slow
def test_measuring_writes_figures_with_their_provenance(tmp_path: Path) -> None:
    assert measure(["complexity", "--quick", "-o", str(tmp_path / "c.json")]) == 0
    found = json.loads((tmp_path / "c.json").read_text(encoding="utf-8"))
    assert found["provenance"]["command"].startswith("python -m translator.atlas.measure complexity --quick -o ")
    assert "torch" in shipped.provenance_text(found)
    assert parts.made_by("complexity", "complexity", found).count("measured on") == 1
