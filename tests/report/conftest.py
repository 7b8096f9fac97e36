"""Runs shared by the tests of reports, which do not change them."""

from pathlib import Path

import pytest

from support.small_runs import make_small_run, write_corpora


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
