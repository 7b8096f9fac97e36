"""The formats of translations, and files that are continued where they stopped."""

import json
from pathlib import Path

import pytest

from translator.decoding.interfaces import Output, Translation
from translator.decoding.output import Format, OutputFile
from translator.errors import UserError
from translator.files.lines import Line

LINE = Line("ein Haus", "\r\n", b"ein Haus\r\n")
TRANSLATION = Translation(
    [Output("a\thouse\n", -1.25, -0.5, 3, [(0, 0), (1, 1)]), Output("one house", -2.5, -1.0, 3, [(0, 0)])]
)


def test_text_is_the_translation_and_what_was_asked_for() -> None:
    assert Format().write(4, LINE, TRANSLATION) == "a\thouse \r\n"
    full = Format(num_best=2, scores=True, alignments=True).write(4, LINE, TRANSLATION)
    assert full == "4 ||| a\thouse  ||| -1.2500 ||| 0-0 1-1\r\n4 ||| one house ||| -2.5000 ||| 0-0\r\n"


def test_tsv_has_the_columns_of_its_heading() -> None:
    for form in (Format("tsv"), Format("tsv", 2), Format("tsv", 2, scores=True, alignments=True)):
        num_columns = form.heading.count("\t")
        rows = form.write(0, LINE, TRANSLATION).splitlines()
        assert len(rows) == form.num_best
        assert {row.count("\t") for row in rows} == {num_columns}
    assert Format("tsv", scores=True).heading == "line\tscore\ttranslation\n"


def test_jsonl_keeps_the_text_as_it_is() -> None:
    found = json.loads(Format("jsonl", num_best=2, scores=True).write(4, LINE, TRANSLATION))
    assert (found["line"], found["source"], found["translation"]) == (5, "ein Haus", "a\thouse\n")
    assert [entry["normalized_score"] for entry in found["nbest"]] == [-0.5, -1.0]
    assert "model_score" not in found
    reranked = Translation([Output("a", -1.25, 7.0, 3, model_score=-0.5)])
    assert json.loads(Format("jsonl", scores=True).write(4, LINE, reranked))["model_score"] == -0.5


def test_a_file_gets_its_name_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "new" / "out.txt"
    file = OutputFile(path, {"beam": 5}, resume=False)
    file.write("eins\n", 1, "digest")
    file.close()
    assert not path.exists()
    again = OutputFile(path, {"beam": 5}, resume=True)
    assert (again.resumed, again.num_lines) == (True, 1)
    again.check_input("digest")
    with pytest.raises(UserError, match="first 1 lines of the input"):
        again.check_input("another")
    again.write("zwei\n", 1, "digests")
    again.finish()
    assert [file.name for file in path.parent.iterdir()] == ["out.txt"]
    assert path.read_text(encoding="utf-8") == "eins\nzwei\n"


def test_text_written_after_the_last_recorded_line_is_cut_off(tmp_path: Path) -> None:
    file = OutputFile(tmp_path / "out", {}, resume=False)
    file.write("eins\n", 1, "digest")
    file.file.write(b"zw")
    file.close()
    again = OutputFile(tmp_path / "out", {}, resume=True)
    again.finish()
    assert (tmp_path / "out").read_bytes() == b"eins\n"


def test_a_file_is_not_resumed_with_other_settings(tmp_path: Path) -> None:
    file = OutputFile(tmp_path / "out", {"beam": 5}, resume=False)
    file.write("eins\n", 1, "digest")
    file.close()
    with pytest.raises(UserError, match="other options"):
        OutputFile(tmp_path / "out", {"beam": 4}, resume=True)
    (tmp_path / "out.partial").write_bytes(b"")
    with pytest.raises(UserError, match="shorter than it was"):
        OutputFile(tmp_path / "out", {"beam": 5}, resume=True)
