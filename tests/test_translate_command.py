"""The `translate` command as users run it: files, pipes, killed runs and mistakes. The model copies, in capitals."""

import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.fake_command import SlowTranslator
from support.fake_models import ByteTokenizer
from support.processes import environment
from translator import translate_files
from translator.decoding import memory
from translator.translate import main

Command = Callable[..., tuple[int, bytes, str]]


@pytest.fixture
def translate(monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> Command:
    """Runs the command in this process: exit code, standard output, standard error."""
    monkeypatch.setattr(translate_files, "Translator", SlowTranslator)
    monkeypatch.setattr(translate_files, "find_weights", lambda run_dir: Path(__file__))
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object, stdin: bytes = b"") -> tuple[int, bytes, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as ending:  # argparse
            code = int(str(ending.code))
        sys.stdout.flush()
        captured = capfdbinary.readouterr()
        return code, captured.out, captured.err.decode()

    return run


def start(*arguments: object, delay: float = 0, **options: object) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "support.fake_command", *map(str, arguments)]
    return subprocess.Popen(command, env=environment(TRANSLATE_DELAY=str(delay)), **options)  # type: ignore[call-overload, no-any-return]


def test_a_filter_answers_every_line_with_a_line(translate: Command) -> None:
    code, out, err = translate(stdin=b"one\n\ntwo three\n  \nfour")
    assert (code, out) == (0, b"ONE\n\nTWO THREE\n\nFOUR\n")
    assert "5 lines" in err
    assert "sentences/s" in err
    assert translate("--quiet", stdin=b"x\n") == (0, b"X\n", "")
    assert translate("--quiet", stdin=b"") == (0, b"", "")


def test_only_line_feeds_end_lines(translate: Command) -> None:
    odd = "a\x0bb\x0cc\x1cd\x85e\u2028f\rg\x00h\ti\x1b[1m"
    code, out, _ = translate(stdin=f"\ufeffone\r\n{odd}\n\r\n\x00\n\ufeff\n".encode())
    assert code == 0
    lines = out.decode().split("\n")
    assert lines[0] == "ONE\r"
    assert lines[1] == "A B C D E F G H I [1M"
    assert lines[2:] == ["\r", "", "", ""]


def test_what_a_model_writes_cannot_break_a_line(translate: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ByteTokenizer, "decode_target", lambda self, ids: ["a\nb\r\tc" for _ in ids])
    assert translate(stdin=b"x\ny\n")[1] == b"a b \tc\na b \tc\n"
    assert translate("--format", "tsv", stdin=b"x\n")[1] == b"line\ttranslation\n1\ta b  c\n"
    assert json.loads(translate("--format", "jsonl", stdin=b"x\n")[1])["translation"] == "a\nb\r\tc"


def test_files_become_one_file_or_files_in_a_folder(translate: Command, tmp_path: Path) -> None:
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


def test_empty_and_compressed_files(translate: Command, tmp_path: Path) -> None:
    import gzip

    (tmp_path / "empty.txt").touch()
    assert translate("empty.txt", "-o", "out.txt")[0] == 0
    assert (tmp_path / "out.txt").read_bytes() == b""
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"one\ntwo\n"))
    assert translate("a.gz")[1] == b"ONE\nTWO\n"
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"one\ntwo\n")[:-6])
    code, _, err = translate("cut.gz")
    assert (code, err.count("\n")) == (2, 1)
    assert "cut.gz: the gzip file is cut off before its end" in err


def test_invalid_utf8_is_named_by_line_and_byte_and_can_be_replaced(translate: Command, tmp_path: Path) -> None:
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


def test_very_long_lines_are_split_with_a_warning_and_never_cut(translate: Command) -> None:
    line = b"A sentence of some words. " * 40
    code, out, err = translate(stdin=b"short\n" + line + b"\n")
    assert code == 0
    assert out == b"SHORT\n" + line.upper().strip() + b"\n"
    assert "line 2 has 10" in err
    assert "parts" in err
    code, out, err = translate("--split-sentences", stdin=b"One. Two.\n")
    assert (out, "parts" in err) == (b"ONE. TWO.\n", False)


def test_formats(translate: Command) -> None:
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


def test_prefixes_belong_to_lines(translate: Command, tmp_path: Path) -> None:
    (tmp_path / "prefix.txt").write_text("x\n\n", encoding="utf-8")
    assert translate("--prefix", "prefix.txt", stdin=b"ab\ncd\n")[1] == b"XB\nCD\n"
    code, _, err = translate("--prefix", "prefix.txt", stdin=b"ab\ncd\nef\n")
    assert code == 2
    assert "--prefix prefix.txt: has 2 lines and the input has more" in err
    assert "more lines than the input" in translate("--prefix", "prefix.txt", stdin=b"ab\n")[2]


def test_sampling_depends_on_the_seed_alone(translate: Command) -> None:
    text = b"".join(b"line %d\n" % number for number in range(100))
    options = ("--sample", "--temperature", "3")
    one = translate(*options, stdin=text)[1]
    assert translate(*options, "--batch-tokens", "50", stdin=text)[1] == one
    assert translate(*options, "--seed", "2", stdin=text)[1] != one
    assert translate("--sample", "--top-k", "1", stdin=text)[1] == text.upper()


def test_attention_maps_are_written_as_pictures_and_as_a_page(translate: Command, tmp_path: Path) -> None:
    code, out, _ = translate("--attention", "maps", stdin="a <b>\n\n狗 $x\n".encode())
    assert (code, out) == (0, "A <B>\n\n狗 $X\n".encode())
    assert sorted(path.name for path in (tmp_path / "maps").iterdir()) == ["000001.png", "000003.png", "index.html"]
    assert (tmp_path / "maps/000003.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "maps/index.html").read_text(encoding="utf-8")
    assert page.count("<table>") == page.count("</table>") == 2
    assert "A &lt;B&gt;" in page
    assert "狗" in page
    assert "<script" not in page
    assert "http" not in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.txt"], "missing.txt: no such file"),
        (["."], ".: is a directory"),
        (["a.txt", "-o", "a.txt"], "would be overwritten"),
        (["a.txt", "--resume"], "--resume: needs -o"),
        (["a.txt", "-o", "x/../a.txt"], "would be overwritten"),
        (["a.txt", "--nbest", "5", "--beam", "2"], "--nbest 5: a beam of 2 cannot give more hypotheses"),
        (["a.txt", "--sample", "--top-p", "2"], "--top-p 2: must be at most 1"),
        (["a.txt", "--prefix", "none.txt"], "none.txt"),
        (["a.txt", "-o", "a.txt/b.txt"], "-o a.txt/b.txt: cannot be written (Not a directory)"),
        (["a.txt", "-o", "/proc/none/b.txt"], "-o /proc/none/b.txt: cannot be written"),
        (["a.txt", "-o", "link"], "-o link: a.txt would be overwritten"),
        (["a.partial", "-o", "a"], "-o a: a.partial would be overwritten"),
        (["a.txt", "a.partial.json", "-o", "a"], "-o a: a.partial.json would be overwritten"),
        (["a.txt", "--prefix", "a.partial", "-o", "a.partial"], "-o a.partial: a.partial would be overwritten"),
        (["a.txt", "x/a.txt.partial", "-o", "x/"], "a.txt.partial would be overwritten"),
        (["a.txt", "--attention", "a.txt"], "--attention a.txt/index.html: cannot be written"),
        (["a.txt", "--prefix", "-"], "--prefix -: prefixes are not read from the standard input"),
        (["a.txt", "--forbid", "\udcff"], "a forbidden word must be valid UTF-8"),
        (["-", "-"], "the standard input can be read only once"),
        (["a.txt", "-o", "/dev/full"], "-o /dev/full: cannot be written (No space left on device)"),
        (["a.txt", "-o", "/dev/null", "--resume"], "--resume: /dev/null is a device or a pipe"),
    ],
)
def test_mistakes_get_one_clear_line(translate: Command, tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "x").mkdir()
    inputs = [tmp_path / name for name in ("a.txt", "a.partial", "a.partial.json", "x/a.txt.partial")]
    for path in inputs:
        path.write_text("one\n", encoding="utf-8")
    (tmp_path / "link").symlink_to("a.txt")
    code, out, err = translate(*arguments)
    assert (code, out) == (2, b"")
    assert message in err
    assert err.count("\n") == 1
    assert [path.read_text(encoding="utf-8") for path in inputs] == ["one\n"] * len(inputs)


def test_a_beam_that_does_not_fit_into_memory_is_refused_by_its_flag(
    translate: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda device: 1_000_000)
    code, out, err = translate("--beam", "5000", stdin=b"one\n")
    assert (code, out) == (2, b"")
    assert err.startswith("translate: --beam 5000: a sentence of 4 pieces needs about")
    assert err.count("\n") == 1


def test_links_pipes_and_devices_stay_what_they_are(translate: Command, tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    ("redirection", "message"),
    [
        ("<&-", "standard input: is closed; give a file to translate\n"),
        ("<in.txt >&-", "standard output: is closed; name a file to write to\n"),
        ("<in.txt >/dev/full", "standard output: cannot be written (No space left on device)\n"),
        ("-o out.txt <in.txt 2>&-", None),
        ("-o out.txt <in.txt 2>/dev/full", None),
        ("-o in.txt <in.txt", "-o in.txt: the standard input would be overwritten; give another name\n"),
        ("in.txt >>in.txt", "standard output: in.txt would be overwritten; give another name\n"),
        ("--help >/dev/full", "standard output: cannot be written (No space left on device)\n"),
    ],
)
def test_standard_streams_that_are_closed_full_or_an_input(
    tmp_path: Path, redirection: str, message: str | None
) -> None:
    (tmp_path / "in.txt").write_text("one\n", encoding="utf-8")
    command = f"{sys.executable} -m support.fake_command {redirection}"
    done = subprocess.run(["sh", "-c", command], env=environment(), cwd=tmp_path, capture_output=True, text=True)
    assert (tmp_path / "in.txt").read_text(encoding="utf-8") == "one\n"
    if message is None:  # the messages are lost, but not the translation
        assert (done.returncode, done.stderr) == (0, "")
        assert (tmp_path / "out.txt").read_text(encoding="utf-8") == "ONE\n"
    else:
        assert (done.returncode, done.stderr) == (2, f"translate: {message}")


def test_models_that_cannot_be_used_get_one_clear_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from translator.translate import main

    def error(model: Path) -> str:
        assert main(["--model", str(model)]) == 2
        message = capsys.readouterr().err
        assert message.count("\n") == 1
        return message

    run = tmp_path / "run"
    assert "no such directory" in error(run)
    run.mkdir()
    assert "not a training run" in error(run)
    (run / "config.yaml").touch()
    assert "not a training run" in error(run)
    (run / "manifest.json").write_text('{"format_version": 1}', encoding="utf-8")
    assert "no tokenizer" in error(run)
    (run / "tokenizer").mkdir()
    (run / "tokenizer/tokenizer.json").write_text("{}", encoding="utf-8")
    assert "no weights yet" in error(run)
    (run / "manifest.json").write_text('{"format_version": 99}', encoding="utf-8")
    assert "newer version" in error(run)
    (run / "manifest.json").write_text("{", encoding="utf-8")
    assert "damaged" in error(run)
    assert "is a file; give the directory of a training run" in error(run / "config.yaml")


def test_answers_come_while_the_input_is_still_open() -> None:
    process = start("--stream", "--quiet", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    for word in (b"one", b"two"):
        process.stdin.write(word + b"\n")
        process.stdin.flush()
        assert process.stdout.readline() == word.upper() + b"\n"
    process.stdin.close()
    assert process.wait(timeout=30) == 0
    process.stdout.close()


def test_the_first_chunk_is_answered_before_the_input_ends_without_stream_too() -> None:
    process = start("--quiet", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"word\n" * 100)
    process.stdin.flush()
    assert process.stdout.readline() == b"WORD\n"
    process.stdin.close()
    assert process.stdout.read() == b"WORD\n" * 99
    assert process.wait(timeout=30) == 0
    process.stdout.close()


def test_a_reader_that_goes_away_ends_the_command_quietly() -> None:
    process = start("--quiet", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    process.stdin.write(b"word\n" * 100)
    process.stdin.close()
    assert process.wait(timeout=30) == 141
    assert process.stderr.read() == b""
    process.stderr.close()


def test_ctrl_c_ends_the_command_quietly_and_leaves_no_half_output(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_bytes(b"word\n" * 5_000)
    process = start("in.txt", "-o", "out.txt", "--quiet", delay=0.2, cwd=tmp_path, stderr=subprocess.PIPE)
    _wait_for(tmp_path / "out.txt.partial.json")
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 130
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    assert not (tmp_path / "out.txt").exists()


def test_a_killed_translation_is_resumed_without_losing_or_redoing_a_line(tmp_path: Path) -> None:
    lines = [f"line {number}" if number % 7 else "" for number in range(2_000)]
    (tmp_path / "in.txt").write_text("\r\n".join(lines), encoding="utf-8")
    expected = "".join(line.upper() + "\r\n" for line in lines[:-1]) + lines[-1].upper() + "\n"
    process = start("in.txt", "-o", "out.txt", "--quiet", delay=0.3, cwd=tmp_path)
    _wait_for(tmp_path / "out.txt.partial.json")
    process.kill()
    process.wait(timeout=30)
    done = json.loads((tmp_path / "out.txt.partial.json").read_text())["num_lines"]
    assert 0 < done < 2_000
    with (tmp_path / "out.txt.partial").open("ab") as partial:
        partial.write(b"HALF A LI")  # what a kill in the middle of writing leaves behind
    resumed = start("in.txt", "-o", "out.txt", "--resume", cwd=tmp_path, stderr=subprocess.PIPE)
    _, err = resumed.communicate(timeout=60)
    assert resumed.returncode == 0
    assert f"Going on after line {done}".encode() in err
    assert f"Translated {2_000 - done:,} lines".encode() in err
    assert (tmp_path / "out.txt").read_bytes().decode() == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", "out.txt"]


def test_resuming_refuses_another_input_and_other_options(translate: Command, tmp_path: Path) -> None:
    good = b"".join(b"line %d\n" % number for number in range(64))
    (tmp_path / "in.txt").write_bytes(good + b"\xff\n")
    assert translate("in.txt", "-o", "out.txt")[0] == 2  # stops after the first chunk of 64 lines
    assert json.loads((tmp_path / "out.txt.partial.json").read_text())["num_lines"] == 64
    code, _, err = translate("in.txt", "-o", "out.txt", "--resume", "--nbest", "2")
    assert (code, "other options" in err) == (2, True)
    (tmp_path / "in.txt").write_bytes(good.replace(b"5", b"6") + b"end\n")
    code, _, err = translate("in.txt", "-o", "out.txt", "--resume")
    assert (code, "are not those" in err) == (2, True)
    (tmp_path / "in.txt").write_bytes(good + b"end\n")
    assert translate("in.txt", "-o", "out.txt", "--resume")[0] == 0
    assert (tmp_path / "out.txt").read_bytes() == good.upper() + b"END\n"
    assert translate("in.txt", "-o", "new.txt", "--resume")[0] == 0  # nothing to resume: from the start
    assert (tmp_path / "new.txt").read_bytes() == good.upper() + b"END\n"


def _wait_for(path: Path) -> None:
    deadline = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.02)


def test_help_explains_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    from translator.translate import main, parser

    with pytest.raises(SystemExit) as exit_:
        main(["--help"])
    assert exit_.value.code == 0
    text = capsys.readouterr().out
    for action in parser()._actions:
        assert action.help
        assert all(option in text for option in action.option_strings)
