"""The `translate` command in pipes, stopped, killed and resumed."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.fake_command import TranslateCommand
from support.processes import environment


def start(*arguments: object, delay: float = 0, **options: object) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "support.fake_command", *map(str, arguments)]
    return subprocess.Popen(command, env=environment(TRANSLATE_DELAY=str(delay)), **options)  # type: ignore[call-overload, no-any-return]


def _wait_for(path: Path) -> None:
    deadline = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.02)


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


def test_resuming_refuses_another_input_and_other_options(translate: TranslateCommand, tmp_path: Path) -> None:
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
