"""Where converted models are kept, and when they are converted again."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from support.exported_runs import PAIRS, make_run
from translator.data.tokenizer import Tokenizer
from translator.engines import cache
from translator.engines.cache import converted, fingerprint
from translator.runs.directory import RunDirectory
from translator.runs.loading import LoadedRun, load_run


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDirectory:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    return RunDirectory(make_run(tmp_path / "runs" / "run", num_updates=0))


class Converter:
    """Counts how often it is asked to convert."""

    def __init__(self) -> None:
        self.num_calls = 0

    def __call__(self, folder: Path) -> None:
        self.num_calls += 1
        (folder / "model.bin").write_bytes(b"model")


def load(directory: RunDirectory) -> LoadedRun:
    return load_run(directory.path, torch.device("cpu"))


def test_a_model_is_converted_once_and_again_when_the_weights_change(directory: RunDirectory) -> None:
    convert = Converter()
    first = converted(directory, load(directory), "float32", convert)
    assert first.path.parent == directory.path / "engines"
    assert converted(directory, load(directory), "float32", convert).path == first.path
    assert convert.num_calls == 1
    other = converted(directory, load(directory), "int8", convert)
    assert other.path != first.path
    (first.path / "model.bin").write_bytes(b"damage")
    assert converted(directory, load(directory), "float32", convert).path == first.path
    assert (first.path / "model.bin").read_bytes() == b"model"
    assert convert.num_calls == 3
    before = fingerprint(load(directory))
    trained = make_run(directory.path.parent / "trained", num_updates=1)
    (trained / "model.safetensors").replace(directory.weights)
    assert fingerprint(load(directory)) != before
    newer = converted(directory, load(directory), "float32", convert)
    assert newer.path != first.path
    assert not first.path.exists()  # of weights that are no longer there
    assert other.path.exists()


def test_weights_published_after_loading_are_not_taken_for_those_that_were_loaded(directory: RunDirectory) -> None:
    convert, earlier = Converter(), load(directory)
    trained = make_run(directory.path.parent / "trained", num_updates=1)
    (trained / "model.safetensors").replace(directory.weights)
    of_earlier = converted(directory, earlier, "float32", convert)
    assert converted(directory, load(directory), "float32", convert).path != of_earlier.path
    assert convert.num_calls == 2


@pytest.mark.parametrize("change", ["configuration", "tokenizer", "library"])
def test_a_model_is_converted_again_when_anything_it_depends_on_changes(
    change: str, directory: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    convert, run = Converter(), load(directory)
    first = converted(directory, run, "float32", convert)
    assert converted(directory, run, "float32", convert) == first
    assert convert.num_calls == 1
    if change == "configuration":
        run = replace(run, config=replace(run.config, model=replace(run.config.model, dropout=0.7)))
    elif change == "tokenizer":
        run = replace(run, tokenizer=Tokenizer.train(PAIRS * 5, vocab_size=300))
    else:
        monkeypatch.setattr(cache.ctranslate2, "__version__", "0.0.1")
    assert converted(directory, run, "float32", convert).path != first.path
    assert convert.num_calls == 2


def test_options_of_training_and_data_do_not_matter(directory: RunDirectory) -> None:
    run = load(directory)
    other = replace(run.config, seed=run.config.seed + 1, data=replace(run.config.data, reverse_target=True))
    assert fingerprint(replace(run, config=other)) == fingerprint(run)


def test_a_run_that_cannot_be_written_is_converted_elsewhere(
    directory: RunDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    run, convert = load(directory), Converter()
    (directory.path / "engines").write_text("a file, so that no folder can be made here", encoding="utf-8")
    of_user = converted(directory, run, "float32", convert)
    assert of_user.path.parent == Path(os.environ["XDG_CACHE_HOME"]) / "translator" / "engines"
    assert "cannot be written" in caplog.text
    assert converted(directory, run, "float32", convert).path == of_user.path
    assert convert.num_calls == 1
    assert len(caplog.records) == 1
    cache._user_cache().rename(directory.path / "elsewhere")
    cache._user_cache().write_text("another file", encoding="utf-8")
    temporary = converted(directory, run, "float32", convert)
    assert (temporary.path / "model.bin").exists()
    assert "is converted each time" in caplog.text
    path = temporary.path
    del temporary
    assert not path.exists()
