"""Where an export may be written, and when."""

from pathlib import Path

import pytest

from translator.errors import UserError
from translator.export.folder import DESCRIPTION, check_free, export_folder


def export(folder: Path, text: str = "first") -> None:
    with export_folder(folder, {"to": "nowhere"}) as temporary:
        (temporary / "inner").mkdir()
        (temporary / "inner" / "model").write_text(text, encoding="utf-8")


def test_an_export_is_complete_or_absent(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), export_folder(tmp_path / "new" / "out", {}) as temporary:
        (temporary / "model").write_text(f"half {1 / 0}", encoding="utf-8")
    assert not list((tmp_path / "new").iterdir())
    export(tmp_path / "new" / "out")
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["out"]
    assert sorted(path.name for path in (tmp_path / "new" / "out").iterdir()) == [DESCRIPTION, "inner"]


def test_an_earlier_export_is_replaced_but_nothing_else(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    export(out)  # an empty folder is free
    export(out, "second")
    assert (out / "inner" / "model").read_text(encoding="utf-8") == "second"
    (out / "mine.txt").write_text("precious", encoding="utf-8")
    with pytest.raises(UserError, match=r"-o .*out: has files that do not belong to an export \(mine.txt\)"):
        export(out, "third")
    assert (out / "mine.txt").read_text(encoding="utf-8") == "precious"
    assert (out / "inner" / "model").read_text(encoding="utf-8") == "second"
    (tmp_path / "file").write_text("precious", encoding="utf-8")
    (tmp_path / "link").symlink_to(out)
    for name in ("file", "link"):
        with pytest.raises(UserError, match="is a file or a link"):
            check_free(tmp_path / name)
    (out / "mine.txt").unlink()
    (out / DESCRIPTION).write_text("not JSON", encoding="utf-8")
    with pytest.raises(UserError, match="do not belong to an export"):
        check_free(out)


def test_the_earlier_export_is_kept_until_the_new_one_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    export(out)
    rename = Path.rename

    def stopped(path: Path, target: Path) -> Path:
        if target == out and "second" in (path / "inner" / "model").read_text(encoding="utf-8"):
            raise KeyboardInterrupt
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", stopped)
    with pytest.raises(KeyboardInterrupt):
        export(out, "second")
    assert (out / "inner" / "model").read_text(encoding="utf-8") == "first"
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("had_export", [False, True])
def test_a_folder_that_appears_in_the_meantime_is_refused(
    had_export: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    if had_export:
        export(out)
    rename = Path.rename

    def raced(path: Path, target: Path) -> Path:
        if target == out:
            out.mkdir()
            (out / "mine.txt").write_text("precious", encoding="utf-8")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", raced)
    with pytest.raises(UserError, match="another process has just written there") as caught:
        export(out, "second")
    assert [path.name for path in out.iterdir()] == ["mine.txt"]
    kept = [path for path in tmp_path.iterdir() if path != out]
    assert [str(path) in str(caught.value) for path in kept] == [True] * had_export


def test_files_that_appear_in_the_earlier_export_at_the_last_moment_are_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    export(out)
    rename = Path.rename

    def raced(path: Path, target: Path) -> Path:
        if path == out:
            (out / "mine.txt").write_text("precious", encoding="utf-8")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", raced)
    with pytest.raises(UserError, match=r"mine\.txt"):
        export(out, "second")
    assert (out / "mine.txt").read_text(encoding="utf-8") == "precious"
    assert (out / "inner" / "model").read_text(encoding="utf-8") == "first"


def test_the_current_directory_is_refilled_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    here.mkdir()
    number = here.stat().st_ino
    monkeypatch.chdir(here)
    for text in ("first", "second"):
        export(Path(), text)
        assert Path("inner/model").read_text(encoding="utf-8") == text
        assert here.stat().st_ino == number
    assert list(tmp_path.iterdir()) == [here]
