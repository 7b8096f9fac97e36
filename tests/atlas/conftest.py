"""Figures that several tests use, computed once, and small runs."""

from pathlib import Path
from typing import Any

import pytest

from support.small_runs import make_small_run, write_corpora
from translator.atlas.contents import CHAPTERS
from translator.atlas.figures.heads import measure_heads
from translator.atlas.material import Material, TrainedRun
from translator.build.atlas_command import load_trained_run
from translator.report.material import HeldOut


@pytest.fixture(scope="session")
def figures() -> dict[str, Any]:
    """Of the chapters that need no run, quickly: {chapter: {figure: values}}."""
    wanted = ("pooling", "scores", "positions", "complexity")
    return {chapter.name: chapter.compute(Material(quick=True)) for chapter in CHAPTERS if chapter.name in wanted}


@pytest.fixture(scope="session")
def atlas_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("atlas")
    write_corpora(folder / "corpora")
    return make_small_run(folder / "small", folder / "corpora")


@pytest.fixture(scope="session")
def corpora(atlas_run: Path) -> Path:
    return atlas_run.parent / "corpora"


@pytest.fixture(scope="session")
def small_lstm(atlas_run: Path, corpora: Path) -> Path:
    return make_small_run(atlas_run.parent / "lstm", corpora, "lstm", seed=2)


@pytest.fixture(scope="session")
def trained(atlas_run: Path) -> TrainedRun:
    run = load_trained_run("--run", atlas_run, "transformer")
    assert run is not None
    return run


@pytest.fixture(scope="session")
def with_two_sentences(trained: TrainedRun) -> TrainedRun:
    """Short ones, so that translating them many times takes a moment."""
    whole = trained.held_out
    assert whole is not None
    assert whole.gold is not None
    few = HeldOut(whole.name, whole.sources[:2], whole.references[:2], "en", "de", whole.gold[:2])
    return TrainedRun(trained.folder, trained.config, trained.translator, few)


@pytest.fixture(scope="session")
def head_figures(with_two_sentences: TrainedRun) -> dict[str, Any]:
    return measure_heads(with_two_sentences, quick=True)
