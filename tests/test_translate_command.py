"""The `translate` command as users run it: lines, files, formats and options. The model copies, in capitals."""

import gzip
import json
import os
import threading
from pathlib import Path

import pytest

from support.fake_command import TranslateCommand
from support.fake_models import ByteTokenizer
from translator.translate import main, parser


def test_every_line_of_the_standard_input_becomes_one_line(translate: TranslateCommand) -> None:
    code, out, err = translate(stdin=b"one\n\ntwo three\n  \nfour")
    assert (code, out) == (0, b"ONE\n\nTWO THREE\n\nFOUR\n")
    assert "5 lines" in err
    assert "sentences/s" in err
    assert translate("--quiet", stdin=b"x\n") == (0, b"X\n", "")
    assert translate("--quiet", stdin=b"") == (0, b"", "")


def test_only_line_feeds_end_lines(translate: TranslateCommand) -> None:
    odd = "a\x0bb\x0cc\x1cd\x85e\u2028f\rg\x00h\ti\x1b[1m"
    code, out, _ = translate(stdin=f"\ufeffone\r\n{odd}\n\r\n\x00\n\ufeff\n".encode())
    assert code == 0
    lines = out.decode().split("\n")
    assert lines[0] == "ONE\r"
    assert lines[1] == "A B C D E F G H I [1M"
    assert lines[2:] == ["\r", "", "", ""]


def test_what_a_model_writes_cannot_break_a_line(translate: TranslateCommand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ByteTokenizer, "decode_target", lambda self, ids: ["a\nb\r\tc" for _ in ids])
    assert translate(stdin=b"x\ny\n")[1] == b"a b \tc\na b \tc\n"
    assert translate("--format", "tsv", stdin=b"x\n")[1] == b"line\ttranslation\n1\ta b  c\n"
    assert json.loads(translate("--format", "jsonl", stdin=b"x\n")[1])["translation"] == "a\nb\r\tc"


def test_files_become_one_file_or_files_in_a_folder(translate: TranslateCommand, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo", encoding="utf-8")
    (tmp_path / "b.txt").write_text("\ufeffthree\n", encoding="utf-8")
    assert translate("a.txt", "b.txt", "-o", "new/out.txt")[:2] == (0, b"")
    assert (tmp_path / "new/out.txt").read_text(encoding="utf-8") == "ONE\nTWO\nTHREE\n"
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["out.txt"]
    (tmp_path / "folder").mkdir()
    assert translate("a.txt", "b.txt", "-o", "folder")[0] == 0
    assert (tmp_path / "folder/a.txt").read_bytes() == b"ONE\nTWO\n"
    assert (tmp_path / "folder/b.txt").read_bytes() == b"THREE\n"
    assert translate("a.txt", "b.txt", "-o", "new/folder/")[0] == 0  # the trailing slash marks it as a folder
    assert (tmp_path / "new/folder/b.txt").read_bytes() == b"THREE\n"
    assert translate("a.txt", "b.txt")[1] == b"ONE\nTWO\nTHREE\n"


def test_empty_and_compressed_files(translate: TranslateCommand, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").touch()
    assert translate("empty.txt", "-o", "out.txt")[0] == 0
    assert (tmp_path / "out.txt").read_bytes() == b""
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"one\ntwo\n"))
    assert translate("a.gz")[1] == b"ONE\nTWO\n"
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"one\ntwo\n")[:-6])
    code, _, err = translate("cut.gz")
    assert (code, err.count("\n")) == (2, 1)
    assert "cut.gz: the gzip file is cut off before its end" in err


def test_invalid_utf8_is_named_by_line_and_byte_and_can_be_replaced(
    translate: TranslateCommand, tmp_path: Path
) -> None:
    (tmp_path / "bad.txt").write_bytes(b"good\nab\xffc\n")
    code, _, err = translate("bad.txt", "-o", "out.txt")
    assert code == 2
    assert "bad.txt, line 2: not UTF-8 at byte offset 7 of the file (0xff)" in err
    assert "--errors replace" in err
    assert not (tmp_path / "out.txt").exists()
    assert translate("bad.txt", "--errors", "replace", "-o", "out.txt")[0] == 0
    assert (tmp_path / "out.txt").read_text(encoding="utf-8") == "GOOD\nAB\ufffdC\n"
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 4)
    assert translate("binary")[0] == 2
    assert translate("binary", "--errors", "replace")[1].count(b"\n") == bytes(range(256)).count(b"\n") * 4 + 1


def test_very_long_lines_are_split_with_a_warning_and_never_cut(translate: TranslateCommand) -> None:
    line = b"A sentence of some words. " * 40
    code, out, err = translate(stdin=b"short\n" + line + b"\n")
    assert code == 0
    assert out == b"SHORT\n" + line.upper().strip() + b"\n"
    assert "line 2 has 10" in err
    assert "parts" in err
    code, out, err = translate("--split-sentences", stdin=b"One. Two.\n")
    assert (out, "parts" in err) == (b"ONE. TWO.\n", False)


def test_formats(translate: TranslateCommand) -> None:
    _, out, _ = translate("--scores", "--alignments", stdin=b"ab cd\n")
    text, score, alignment = out.decode().rstrip("\n").split(" ||| ")
    assert (text, alignment) == ("AB CD", "0-0 1-1")
    assert -1 < float(score) < 0
    _, out, _ = translate("--nbest", "3", stdin=b"ab\ncd\n")
    rows = [line.split(" ||| ") for line in out.decode().splitlines()]
    assert [row[0] for row in rows] == ["0", "0", "0", "1", "1", "1"]
    assert [rows[0][1], rows[3][1]] == ["AB", "CD"]
    _, out, _ = translate("--format", "tsv", "--nbest", "2", "--scores", "--alignments", stdin=b"ab\n")
    table = [line.split("\t") for line in out.decode().splitlines()]
    assert table[0] == ["line", "rank", "score", "translation", "alignment"]
    assert table[1][:2] == ["1", "1"]
    assert table[1][3:] == ["AB", "0-0"]
    _, out, _ = translate("--format", "jsonl", "--nbest", "2", "--scores", "--alignments", stdin="a\tb 狗\n\n".encode())
    first, second = map(json.loads, out.decode().splitlines())
    assert (first["line"], first["source"], first["translation"]) == (1, "a\tb 狗", "A B 狗")
    assert first["alignment"] == "0-0 1-1 2-2"
    assert first["nbest"][0]["translation"] == "A B 狗"
    assert len(first["nbest"]) == 2
    assert first["score"] <= 0
    assert (second["line"], second["source"], second["translation"]) == (2, "", "")


def test_prefixes_belong_to_lines(translate: TranslateCommand, tmp_path: Path) -> None:
    (tmp_path / "prefix.txt").write_text("x\n\n", encoding="utf-8")
    assert translate("--prefix", "prefix.txt", stdin=b"ab\ncd\n")[1] == b"XB\nCD\n"
    code, _, err = translate("--prefix", "prefix.txt", stdin=b"ab\ncd\nef\n")
    assert code == 2
    assert "--prefix prefix.txt: has 2 lines and the input has more" in err
    assert "more lines than the input" in translate("--prefix", "prefix.txt", stdin=b"ab\n")[2]


def test_sampling_depends_on_the_seed_alone(translate: TranslateCommand) -> None:
    text = b"".join(b"line %d\n" % number for number in range(100))
    options = ("--sample", "--temperature", "3")
    one = translate(*options, stdin=text)[1]
    assert translate(*options, "--batch-tokens", "50", stdin=text)[1] == one
    assert translate(*options, "--seed", "2", stdin=text)[1] != one
    assert translate("--sample", "--top-k", "1", stdin=text)[1] == text.upper()


def test_attention_maps_are_written_as_pictures_and_as_a_page(translate: TranslateCommand, tmp_path: Path) -> None:
    code, out, _ = translate("--attention", "maps", stdin="a <b>\n\n狗 $x\n".encode())
    assert (code, out) == (0, "A <B>\n\n狗 $X\n".encode())
    names = ["000001.png", "000003.png", "index.html", "maps.html"]
    assert sorted(path.name for path in (tmp_path / "maps").iterdir()) == names
    assert (tmp_path / "maps/000003.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "maps/maps.html").read_text(encoding="utf-8")
    assert page.count("<table>") == page.count("</table>") == 2
    assert "A &lt;B&gt;" in page
    assert "狗" in page
    assert "<script" not in page
    assert "http" not in page


def test_the_page_has_what_was_written(translate: TranslateCommand, tmp_path: Path) -> None:
    (tmp_path / "prefix").write_text("zz\n\n\n", encoding="utf-8")
    options = ("--attention", "maps", "--sample", "--temperature", "3", "--prefix", "prefix", "--quiet")
    code, out, err = translate(*options, stdin=b"one two\n\nx\n")
    assert (code, err) == (0, "")
    text = (tmp_path / "maps/index.html").read_text(encoding="utf-8")
    data = json.loads(text.split('id="translations">')[1].split("</script>")[0])
    assert [line["line"] for line in data] == [1, 2, 3]
    assert [line["text"] for line in data] == out.decode().split("\n")[:-1]
    assert data[0]["text"].startswith("ZZ")


def test_links_pipes_and_devices_stay_what_they_are(translate: TranslateCommand, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n", encoding="utf-8")
    (tmp_path / "old").write_text("old\n", encoding="utf-8")
    (tmp_path / "link").symlink_to("old")
    assert translate("a.txt", "-o", "link")[0] == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "old").read_bytes() == b"ONE\n"
    before = Path("/dev/null").stat()
    assert translate("a.txt", "-o", "/dev/null")[:2] == (0, b"")
    assert Path("/dev/null").stat().st_ino == before.st_ino
    os.mkfifo(tmp_path / "pipe")
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    assert translate("a.txt", "-o", "pipe")[0] == 0
    reader.join(timeout=10)
    assert read == [b"ONE\n"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "link", "old", "pipe"]


def test_help_explains_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["--help"])
    assert exit_.value.code == 0
    text = capsys.readouterr().out
    for action in parser()._actions:
        assert action.help
        assert all(option in text for option in action.option_strings)
