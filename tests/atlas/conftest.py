"""Runs that the tests of the atlas share; nothing in them is changed."""

from pathlib import Path
from typing import Any

import pytest

from support.small_runs import make_small_run, write_corpora
from translator.atlas.figures.heads import measure_heads
from translator.atlas.material import TrainedRun
from translator.build.atlas_command import load_trained
from translator.report.material import HeldOut


@pytest.fixture(scope="session")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpora")
    write_corpora(folder)
    return folder


@pytest.fixture(scope="session")
def small_run(tmp_path_factory: pytest.TempPathFactory, corpora: Path) -> Path:
    return make_small_run(tmp_path_factory.mktemp("runs") / "small", corpora)


@pytest.fixture(scope="session")
def small_lstm(tmp_path_factory: pytest.TempPathFactory, corpora: Path) -> Path:
    return make_small_run(tmp_path_factory.mktemp("runs") / "lstm", corpora, "lstm", seed=2)


@pytest.fixture(scope="session")
def trained(small_run: Path) -> TrainedRun:
    run = load_trained("--run", small_run, "transformer")
    assert run is not None
    return run


@pytest.fixture(scope="session")
def head_figures(trained: TrainedRun) -> dict[str, Any]:
    """Of the first two sentences, so that the many translations take no time."""
    whole = trained.held_out
    assert whole is not None
    assert whole.gold is not None
    few = HeldOut(whole.name, whole.sources[:2], whole.references[:2], "en", "de", whole.gold[:2])
    return measure_heads(TrainedRun(trained.folder, trained.config, trained.translator, few), quick=True)
