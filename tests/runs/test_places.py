"""Folders that cannot be used are refused in one line, before anything is computed or written."""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.configurations import configuration
from support.processes import environment
from translator import cli, train
from translator.build import run_directory
from translator.errors import UserError
from translator.runs.directory import RunDirectory

TINY = [
    *("trainer=smoke", "trainer.max_updates=2", "trainer.validate_every=2", "trainer.device=cpu"),
    *("trainer.num_samples=0", "trainer.report=false", "decode=greedy", "tokenizer.vocab_size=600"),
    *("model=lstm_small", "model.embedding_size=8", "model.hidden_size=8", "model.attention_size=8"),
    *("data.num_train=60", "data.num_valid=4", "data.num_test=2"),
]
OPTIONS = ["run_dir", "data.cache_dir", "data.folder"]


def options_in(folder: Path, **changes: object) -> list[str]:
    places = {"run_dir": folder / "run", "data.cache_dir": folder / "cache", "data.folder": folder / "demo"} | changes
    return [*TINY, *(f"{name}={path}" for name, path in places.items())]


def start(options: list[str]) -> None:
    train.run(configuration(*options))


def refusal(options: list[str]) -> str:
    with pytest.raises(UserError) as caught:
        start(options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train, "prepare_data", lambda config: pytest.fail("the data was prepared"))


@pytest.mark.usefixtures("no_data")
@pytest.mark.parametrize("option", OPTIONS)
def test_a_file_in_place_of_a_folder_is_noticed_before_the_work(tmp_path: Path, option: str) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        message = refusal(options_in(tmp_path, **{option: path}))
        assert message.startswith(f"{option}={path}: ")
        assert "a file" in message
    assert [path.name for path in tmp_path.iterdir()] == ["file"], "nothing was created"


@pytest.mark.usefixtures("no_data")
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a file system in which nothing can be created")
def test_a_run_where_nothing_can_be_created_is_refused_before_the_work(tmp_path: Path) -> None:
    assert refusal(options_in(tmp_path, run_dir="/proc/run")).startswith("run_dir=/proc/run: cannot be written (")


@pytest.mark.usefixtures("no_data")
def test_a_name_that_is_too_long_is_refused_before_the_work(tmp_path: Path) -> None:
    assert "cannot be written (File name too long)" in refusal(options_in(tmp_path, run_dir=tmp_path / ("a" * 300)))


@pytest.mark.usefixtures("no_data")
def test_a_file_named_runs_is_refused_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").touch()
    assert refusal(options_in(tmp_path, run_dir="null")) == "run_dir=runs: is a file; give another folder"


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a file system in which nothing can be created")
@pytest.mark.parametrize("option", ["data.cache_dir", "data.folder"])
def test_data_where_nothing_can_be_created(tmp_path: Path, option: str) -> None:
    message = refusal(options_in(tmp_path, **{option: "/proc/data"}))
    assert message.startswith(f"{option}=/proc/data: cannot be written (")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_run_that_cannot_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """The disk filled up while the data was being prepared."""

    def fail(*arguments: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(run_directory, "save_file", fail)
    message = refusal(options_in(tmp_path))
    assert message.startswith(f"run_dir={tmp_path / 'run'}: cannot be written ({os.strerror(number)})")
    assert not (tmp_path / "run" / "manifest.json").exists(), "so the folder can be used again"


def test_metrics_that_cannot_be_written_are_written_after_resuming(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("translator.train_report.write_json", full)
    assert "No space left on device" in refusal(options_in(tmp_path))
    monkeypatch.undo()
    assert not (tmp_path / "run" / "metrics.json").exists()
    cli.main(train.run, [f"resume={tmp_path / 'run'}"])
    assert (tmp_path / "run" / "metrics.json").exists()


def test_a_run_that_another_process_trains_is_not_resumed(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    start(options_in(tmp_path))
    run = RunDirectory(tmp_path / "run")
    run.metrics.unlink()
    before = {path: path.stat().st_mtime_ns for path in run.path.rglob("*")}
    with run.locked(), pytest.raises(UserError, match="another process is training this run"):
        cli.main(train.run, [f"resume={run.path}"])
    assert {path: path.stat().st_mtime_ns for path in run.path.rglob("*")} == before, "nothing was touched"
    cli.main(train.run, [f"resume={run.path}"])
    assert run.metrics.exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Any:
    """A three-megabyte file system."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    if mount is None or subprocess.run([mount, "-t", "tmpfs", "-o", "size=3m", "none", folder], check=False).returncode:
        pytest.skip("file systems cannot be mounted here")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.slow
def test_a_disk_that_is_really_full(small_disk: Path, tmp_path: Path) -> None:
    """It fills up at the first validation; what is published stays whole and there is no traceback."""
    run = small_disk / "run"
    filler = f"""
import sys
from pathlib import Path
from translator import train
from translator.training.trainer import Trainer
validate = Trainer._validate

def fill_and_validate(*arguments):
    with Path({str(small_disk / "filler")!r}).open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            pass
    return validate(*arguments)

Trainer._validate = fill_and_validate
sys.exit(train.main())
"""
    command = [sys.executable, "-c", filler, *options_in(tmp_path, run_dir=run), "trainer.max_updates=4"]
    result = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert result.returncode == 2, result.stderr
    assert "Traceback" not in result.stderr
    assert "training goes on" in result.stderr
    assert result.stderr.splitlines()[-1].startswith(f"train: could not write {run / 'model.safetensors'}: ")
    (small_disk / "filler").unlink()
    again = [sys.executable, "-m", "translator.train", f"resume={run}"]
    result = subprocess.run(again, env=environment(), capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert (run / "metrics.json").exists()
