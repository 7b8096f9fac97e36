"""`runs/latest` leads to the newest run, for us and for the shell, and TensorBoard shows no run twice."""

import errno
import os
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.io_wrapper import GetLogdirSubdirectories
from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
from torch.utils.tensorboard import SummaryWriter

from translator.errors import UserError
from translator.runs.directory import RunDirectory
from translator.runs.latest import _other_files, newest_run, point_latest, resolve_run


def make_run(path: Path) -> RunDirectory:
    run = RunDirectory(path)
    run.create(identity={"name": path.name}, details={})
    with SummaryWriter(str(run.tensorboard)) as writer:
        writer.add_scalar("train/loss", 1.0, 1)
    return run


def refuse(*arguments: object, **options: object) -> None:
    raise OSError(errno.EROFS, "Read-only file system")


@pytest.mark.parametrize("with_links", [True, False])
def test_it_leads_to_the_newest_run(tmp_path: Path, with_links: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not with_links:
        monkeypatch.setattr(Path, "symlink_to", refuse)
    for name in ("a", "b"):
        point_latest(make_run(tmp_path / name))
    assert newest_run(tmp_path) == (tmp_path / "b").resolve()
    assert resolve_run(tmp_path / "latest") == tmp_path / "b"
    assert (tmp_path / "latest").is_dir() == with_links
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b", "latest"}, "nothing is left behind"


def test_tensorboard_discovers_every_run_once(tmp_path: Path) -> None:
    for name in ("a", "b"):
        point_latest(make_run(tmp_path / name))
    found = {Path(folder).relative_to(tmp_path) for folder in GetLogdirSubdirectories(str(tmp_path))}
    assert found == {Path("a/tensorboard"), Path("b/tensorboard")}
    runs = EventMultiplexer().AddRunsFromDirectory(str(tmp_path)).Reload().Runs()
    assert runs.keys() == {"a/tensorboard", "b/tensorboard"}


def test_the_shell_sees_the_run_through_it(tmp_path: Path) -> None:
    run = make_run(tmp_path / "a")
    point_latest(run)
    latest = RunDirectory(tmp_path / "latest")
    assert not latest.metrics.exists(), "before the run has any"
    run.metrics.write_text("{}")
    run.checkpoints.mkdir()
    (run.checkpoints / "step-1").touch()
    assert latest.metrics.read_text() == "{}"
    assert (latest.checkpoints / "step-1").exists()
    assert latest.read_manifest()["identity"] == {"name": "a"}
    (tmp_path / "moved").mkdir()
    for name in ("a", "latest"):
        (tmp_path / name).rename(tmp_path / "moved" / name)
    assert (tmp_path / "moved" / "latest" / "metrics.json").exists(), "links are relative"


def test_it_is_understood_from_inside_and_through_other_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    point_latest(make_run(tmp_path / "runs" / "a"))
    (tmp_path / "mine").symlink_to(tmp_path / "runs" / "latest")
    assert resolve_run(tmp_path / "mine") == tmp_path / "runs" / "a"
    monkeypatch.chdir(tmp_path / "runs" / "latest")
    assert resolve_run(Path()).resolve() == tmp_path / "runs" / "a"


def test_a_link_of_an_earlier_version_is_followed_and_then_replaced(tmp_path: Path) -> None:
    make_run(tmp_path / "a")
    (tmp_path / "latest").symlink_to("a")
    assert newest_run(tmp_path) == tmp_path / "a"
    point_latest(make_run(tmp_path / "b"))
    assert newest_run(tmp_path) == tmp_path / "b"
    assert (tmp_path / "a" / "manifest.json").exists(), "the run behind the link is untouched"
    assert not (tmp_path / "latest").is_symlink()


def test_a_run_whose_files_are_links_into_a_store_is_a_run(tmp_path: Path) -> None:
    """As in the caches of model hubs."""
    run = make_run(tmp_path / "a")
    run.manifest.rename(tmp_path / "0f3e")
    run.manifest.symlink_to(Path("..") / "0f3e")
    assert resolve_run(run.path) == run.path


def test_files_that_users_put_there_are_never_lost(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    point_latest(make_run(tmp_path / "a"))
    (tmp_path / "latest" / "output.de").write_text("Ein Hund.\n")
    point_latest(make_run(tmp_path / "b"))
    assert (tmp_path / "latest" / "output.de").read_text() == "Ein Hund.\n"
    assert newest_run(tmp_path) == tmp_path / "a"
    assert "because output.de is in it" in caplog.text


def test_a_users_own_run_of_that_name_is_kept(tmp_path: Path) -> None:
    own = make_run(tmp_path / "latest")
    point_latest(make_run(tmp_path / "b"))
    assert own.read_manifest()["identity"] == {"name": "latest"}
    assert newest_run(tmp_path) == own.path


def test_a_new_run_cannot_be_put_into_it(tmp_path: Path) -> None:
    run = make_run(tmp_path / "a")
    point_latest(run)
    run.manifest.unlink()
    with pytest.raises(UserError, match="holds another run"):
        RunDirectory(tmp_path / "latest").check_free()


def test_a_folder_that_cannot_be_written_does_not_stop_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run = make_run(tmp_path / "a")
    for name in ("mkdir", "write_text"):
        monkeypatch.setattr(Path, name, refuse)
    point_latest(run)
    assert "Read-only file system" in caplog.text


def test_without_a_run_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not lead to a run"):
        newest_run(tmp_path)
    run = make_run(tmp_path / "a")
    point_latest(run)
    run.manifest.unlink()
    with pytest.raises(UserError, match="does not lead to a run"):
        newest_run(tmp_path)


def test_it_leads_to_one_of_the_runs_that_start_at_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All links lead to the same run, whichever was last."""
    runs = [make_run(tmp_path / name) for name in "abcd"]
    monkeypatch.setattr(os, "getpid", threading.get_ident)  # threads in place of processes
    monkeypatch.setattr("translator.runs.latest._is_alive", lambda number: True)
    for _ in range(25):
        with ThreadPoolExecutor(len(runs)) as threads:
            list(threads.map(point_latest, runs))  # re-raises their exceptions
        leads_to = {link.readlink().parts[1] for link in (tmp_path / "latest").iterdir()}
        assert len(leads_to) == 1
        assert len(list((tmp_path / "latest").iterdir())) == len(runs[0].contents)
    assert {path.name for path in tmp_path.iterdir()} == {*"abcd", "latest"}


def test_a_folder_that_vanishes_while_it_is_replaced_holds_no_other_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        point_latest(make_run(tmp_path / name))

    def vanished(folder: Path) -> None:
        raise FileNotFoundError(folder)

    monkeypatch.setattr(os, "scandir", vanished)
    assert _other_files(tmp_path / "latest") == []


def test_what_killed_processes_left_behind_is_removed(tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    for name in (f".latest-{ended.pid}", f".latest-{ended.pid}-old", f".latest-{os.getppid()}", ".latest-mine"):
        (tmp_path / name).mkdir()
    point_latest(make_run(tmp_path / "a"))
    assert {path.name for path in tmp_path.iterdir()} == {"a", "latest", f".latest-{os.getppid()}", ".latest-mine"}
