"""Cached folders: built once, verified on every use, and rebuilt when damaged."""

import hashlib
import json
from pathlib import Path

import pytest

from translator.files.cache import made_folder
from translator.files.checksums import CHECKSUMS, DamagedFolderError, verify_checksums, write_checksums


def test_a_folder_is_made_once_and_again_when_it_is_damaged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder, num_made = tmp_path / "cached", 0

    def make(temporary: Path) -> None:
        nonlocal num_made
        num_made += 1
        (temporary / "data").write_text("whole")

    made_folder(folder, make, "data")
    made_folder(folder, make, "data")
    assert num_made == 1
    (folder / "data").write_text("whol")
    made_folder(folder, make, "data")
    assert num_made == 2
    assert (folder / "data").read_text() == "whole"
    assert f"{folder}: damaged (data does not match its checksum)" in caplog.text
    assert list(tmp_path.iterdir()) == [folder]


def test_checksums_are_those_of_hashlib(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"12345")
    write_checksums(tmp_path)
    assert json.loads((tmp_path / CHECKSUMS).read_text()) == {"data": hashlib.sha256(b"12345").hexdigest()}
    verify_checksums(tmp_path, "data")
    with pytest.raises(DamagedFolderError, match="does not list more"):
        verify_checksums(tmp_path, "data", "more")
    (tmp_path / "data").unlink()
    with pytest.raises(DamagedFolderError, match="data cannot be read"):
        verify_checksums(tmp_path)


@pytest.mark.parametrize(("content", "message"), [(None, "is missing"), ("{", "cannot be read"), ("[]", "is not a")])
def test_an_invalid_list_of_checksums_is_damage(tmp_path: Path, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / CHECKSUMS).write_text(content)
    with pytest.raises(DamagedFolderError, match=message):
        verify_checksums(tmp_path)
