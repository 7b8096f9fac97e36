"""What is wrong with a file or folder is explained in one line."""

import errno
import json
import tempfile
from pathlib import Path

import pytest

from translator.errors import UserError
from translator.files.explain import (
    ANOTHER_FOLDER,
    explain_damage,
    explain_write_errors,
    reason,
    require_folder,
    require_writable,
)


@pytest.mark.parametrize(
    ("read", "fact"),
    [
        (lambda path: json.loads("{"), "damaged (Expecting property name"),
        (lambda path: b"\xff".decode(), "damaged ('utf-8' codec can't decode"),
        (lambda path: {}["format"], "damaged ('format' is missing)"),
        (lambda path: [].keys(), "damaged ('list' object has no attribute 'keys')"),
        (lambda path: path.read_text(), "no such file"),
        (lambda path: path.parent.read_text(), "cannot be read (Is a directory)"),
    ],
)
def test_damage(tmp_path: Path, read: object, fact: str) -> None:
    with pytest.raises(UserError) as caught, explain_damage(tmp_path / "a.json", remedy="copy it again"):
        read(tmp_path / "a.json")  # type: ignore[operator]
    assert str(caught.value).startswith(f"{tmp_path / 'a.json'}: {fact}")
    assert str(caught.value).endswith("; copy it again")
    assert "\n" not in str(caught.value)


def test_bugs_are_not_explained_away(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), explain_damage(tmp_path):
        raise ZeroDivisionError


def test_a_folder_that_can_be_created_is_accepted_but_not_created(tmp_path: Path) -> None:
    require_writable("run_dir", tmp_path / "a" / "b")
    require_writable("run_dir", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_is_a_file_or_below_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"run_dir=.*/file: is a file; give another folder"):
        require_folder("run_dir", tmp_path / "file")
    with pytest.raises(UserError, match=r"run_dir=.*/file/a/b: lies below .*/file, which is a file; give another"):
        require_folder("run_dir", tmp_path / "file" / "a" / "b")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(UserError, match=r"run_dir=.*/link/a: .*/link is a broken link"):
        require_folder("run_dir", tmp_path / "link" / "a")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a file system in which nothing can be created")
def test_a_file_system_in_which_nothing_can_be_created_is_refused() -> None:
    """Even for root, whom permissions do not restrict."""
    with pytest.raises(UserError, match=r"^run_dir=/proc/here: cannot be written \(.*\); make room or give another"):
        require_writable("run_dir", Path("/proc/here"))


@pytest.mark.parametrize("number", [errno.EROFS, errno.ENOSPC, errno.EACCES])
def test_read_only_full_and_forbidden_folders_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    error = OSError(number, "the reason")

    def refuse(*arguments: object, **options: object) -> None:
        raise error

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    with pytest.raises(UserError, match=rf"run_dir={tmp_path}: cannot be written \(the reason\); make room"):
        require_writable("run_dir", tmp_path)
    with (
        pytest.raises(UserError, match=r"data\.cache_dir=.*\(the reason\)"),
        explain_write_errors(f"data.cache_dir={tmp_path}", ANOTHER_FOLDER),
    ):
        raise error


def test_reasons_are_one_line() -> None:
    assert reason(ValueError("first\nsecond")) == "first"
    assert reason(ValueError()) == "ValueError"
    assert reason(OSError(28, "No space left on device", "a/file")) == "No space left on device"
    assert reason(OSError("10 requested and 0 written")) == "10 requested and 0 written"
