"""Servers that several tests use: one with models that copy, and one with a small run."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.servers import RunningServer, copier, running
from support.small_runs import make_small_run, write_corpora
from translator.serve.torch_model import load_models


@pytest.fixture(scope="session")
def small_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("serve")
    write_corpora(folder / "corpora")
    return make_small_run(folder / "run", folder / "corpora")


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    """English into German and French, and German into English: capitals in each."""
    with running([copier("en", "de"), copier("en", "fr"), copier("de", "en")]) as started:
        yield started


@pytest.fixture(scope="module")
def model_server(small_run: Path) -> Iterator[RunningServer]:
    (model,) = load_models(small_run, "cpu", engine="torch", int8=False, options={})
    with running([model]) as started:
        yield started
