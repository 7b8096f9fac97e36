"""Atomic writes of files and folders, and their permissions."""

import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from translator.files import atomic
from translator.files.atomic import atomic_file, locked_folder, new_folder, read_json, write_json


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_json(path, {"old": "ä"})
    with pytest.raises(TypeError):
        write_json(path, {"new": object()})
    with pytest.raises(ZeroDivisionError), atomic_file(path) as temporary:
        temporary.write_text(str(1 / 0) if temporary.write_text("half") else "")
    assert read_json(path) == {"old": "ä"}
    assert names_in(tmp_path) == ["a.json"]


def test_what_a_killed_process_left_is_removed_by_the_next_one(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    gone = ended.pid
    names = [f".a.json.tmp-{gone}", f".a.json.tmp-0{gone}", f".a.json.tmp-{os.getppid()}", f".b.json.tmp-{gone}"]
    for name in names:
        (tmp_path / name).touch()
    for name in (names[0], names[2], names[3]):
        os.utime(tmp_path / name, (0, 0))
    write_json(tmp_path / "a.json", 1)
    assert names_in(tmp_path) == sorted(["a.json", *names[1:]]), "not a new one, a running process's, or another file's"


def test_files_and_folders_have_ordinary_permissions(tmp_path: Path) -> None:
    with atomic_file(tmp_path / "a") as temporary:
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT, 0o600))  # as safetensors does
    with new_folder(tmp_path / "b") as folder:
        (folder / "inner").mkdir(mode=0o700)
        for name in ("c", "inner/c"):
            (folder / name).touch(mode=0o600)
    mask = atomic._UMASK
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o666 & ~mask
    for name in ("b", "b/inner"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o777 & ~mask
    for name in ("b/c", "b/inner/c"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o666 & ~mask


def test_everything_is_flushed_to_disk_before_it_gets_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    names = {}
    fsync = os.fsync

    def watched(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        fsync(descriptor)

    monkeypatch.setattr(atomic.os, "fsync", watched)
    with new_folder(tmp_path / "folder") as temporary:
        (temporary / "a").write_text("1")
        (temporary / "b").write_text("2")
        (temporary / "inner").mkdir()
        (temporary / "inner" / "c").write_text("3")
        names = {str(temporary), *(str(temporary / name) for name in ("a", "b", "inner", "inner/c"))}
    assert names <= set(synced)
    assert synced[-1] == str(tmp_path)  # the rename


def test_abandoned_folders_are_removed_and_locked_ones_stay(tmp_path: Path) -> None:
    abandoned, busy = tmp_path / ".tmp-cache-1", tmp_path / ".tmp-cache-2"
    long_ago = time.time() - 2 * atomic.LOCK_SECONDS
    for folder in (abandoned, busy):
        folder.mkdir()
        (folder / "part").write_text("half written")
        os.utime(folder, (long_ago, long_ago))
    with locked_folder(busy), new_folder(tmp_path / "cache"):
        pass
    assert names_in(tmp_path) == [busy.name, "cache"]


def test_a_lock_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    with locked_folder(tmp_path), pytest.raises(BlockingIOError), locked_folder(tmp_path):
        pass
    with locked_folder(tmp_path):
        pass
