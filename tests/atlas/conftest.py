"""Figures that several tests look at, computed once, and a run that was made in a moment."""

from pathlib import Path
from typing import Any

import pytest

from support.small_runs import make_small_run, write_corpora
from translator.atlas.contents import CHAPTERS
from translator.atlas.material import Material


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
