"""Where an export may be written, and when."""

from pathlib import Path

import pytest

from translator.errors import UserError
from translator.export.folder import DESCRIPTION, check_free, export_folder


def export(folder: Path, text: str = "first") -> None:
    with export_folder(folder, {"to": "nowhere"}) as temporary:
        (temporary / "inner").mkdir()
        (temporary / "inner" / "model").write_text(text, encoding="utf-8")


def test_an_export_is_complete_or_not_there(tmp_path: Path) -> None:
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
    with pytest.raises(UserError, match=r"-o .*out: has files that are no earlier export \(mine.txt\)"):
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
    with pytest.raises(UserError, match="no earlier export"):
        check_free(out)
