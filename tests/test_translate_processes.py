"""The `translate` command in pipes, stopped, killed and resumed."""

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import pytest

from support.fake_command import TranslateCommand
from support.processes import environment
from support.warm_python import CLOSED, Program

COMMAND = "import sys; from support.fake_command import main; sys.exit(main())"


def start(*arguments: str, delay: float = 0, **options: Any) -> Program:
    return Program(COMMAND, *arguments, env=environment(TRANSLATE_DELAY=str(delay)), **options)


@pytest.fixture
def pipe() -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """The end to read from, for the command, and the end to write to, for the test."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as source, os.fdopen(writing, "wb") as sink:
        yield source, sink


def _wait_for(path: Path) -> None:
    deadline = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("arguments", "streams", "message"),
    [
        ("", {"stdin": None}, "standard input: is closed; give a file to translate\n"),
        ("", {"stdin": "in.txt", "stdout": None}, "standard output: is closed; name a file to write to\n"),
        (
            "",
            {"stdin": "in.txt", "stdout": "/dev/full"},
            "standard output: cannot be written (No space left on device)\n",
        ),
        ("-o out.txt", {"stdin": "in.txt", "stderr": None}, None),
        ("-o out.txt", {"stdin": "in.txt", "stderr": "/dev/full"}, None),
        (
            "-o in.txt",
            {"stdin": "in.txt"},
            "-o in.txt: the standard input would be overwritten; give another name\n",
        ),
        ("in.txt", {"stdout": "in.txt"}, "standard output: in.txt would be overwritten; give another name\n"),
        ("--help", {"stdout": "/dev/full"}, "standard output: cannot be written (No space left on device)\n"),
    ],
    ids=str,
)
def test_standard_streams_that_are_closed_full_or_an_input(
    tmp_path: Path, arguments: str, streams: dict[str, str | None], message: str | None
) -> None:
    """`streams` are files that a shell would redirect to; None is a stream that it would close."""
    (tmp_path / "in.txt").write_text("one\n", encoding="utf-8")
    with ExitStack() as opened:
        descriptors = {
            name: opened.enter_context((tmp_path / file).open("rb" if name == "stdin" else "ab")).fileno()
            if file is not None
            else CLOSED
            for name, file in streams.items()
        }
        done = start(*arguments.split(), cwd=tmp_path, **descriptors).finish()
    assert (tmp_path / "in.txt").read_text(encoding="utf-8") == "one\n"
    if message is None:  # the messages are lost, but not the translation
        assert (done.returncode, done.stderr) == (0, "")
        assert (tmp_path / "out.txt").read_text(encoding="utf-8") == "ONE\n"
    else:
        assert (done.returncode, done.stderr) == (2, f"translate: {message}")


def test_answers_come_while_the_input_is_still_open(pipe: tuple[IO[bytes], IO[bytes]]) -> None:
    source, sink = pipe
    program = start("--stream", "--quiet", stdin=source.fileno())
    for word in (b"one", b"two"):
        sink.write(word + b"\n")
        sink.flush()
        assert program.stdout.readline() == word.upper() + b"\n"
    sink.close()
    assert program.finish(timeout=30).returncode == 0


def test_the_first_chunk_is_answered_before_the_input_ends_without_stream_too(
    pipe: tuple[IO[bytes], IO[bytes]],
) -> None:
    source, sink = pipe
    program = start("--quiet", stdin=source.fileno())
    sink.write(b"word\n" * 100)
    sink.flush()
    assert program.stdout.readline() == b"WORD\n"
    sink.close()
    done = program.finish(timeout=30)
    assert (done.returncode, done.stdout) == (0, "WORD\n" * 99)


def test_a_reader_that_goes_away_ends_the_command_quietly(pipe: tuple[IO[bytes], IO[bytes]]) -> None:
    source, sink = pipe
    reading, writing = os.pipe()
    program = start("--quiet", stdin=source.fileno(), stdout=writing)
    os.close(writing)
    os.close(reading)
    sink.write(b"word\n" * 100)
    sink.close()
    done = program.finish(timeout=30)
    assert (done.returncode, done.stderr) == (141, "")


def test_ctrl_c_ends_the_command_quietly_and_leaves_no_half_output(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_bytes(b"word\n" * 5_000)
    program = start("in.txt", "-o", "out.txt", "--quiet", delay=0.2, cwd=tmp_path)
    _wait_for(tmp_path / "out.txt.partial.json")
    program.send_signal(signal.SIGINT)
    done = program.finish(timeout=30)
    assert (done.returncode, done.stderr) == (130, "")
    assert not (tmp_path / "out.txt").exists()


def test_a_killed_translation_is_resumed_without_losing_or_redoing_a_line(tmp_path: Path) -> None:
    lines = [f"line {number}" if number % 7 else "" for number in range(1_000)]
    (tmp_path / "in.txt").write_text("\r\n".join(lines), encoding="utf-8")
    expected = "".join(line.upper() + "\r\n" for line in lines[:-1]) + lines[-1].upper() + "\n"
    program = start("in.txt", "-o", "out.txt", "--quiet", delay=0.3, cwd=tmp_path)
    _wait_for(tmp_path / "out.txt.partial.json")
    program.kill()
    assert program.finish(timeout=30).returncode == -signal.SIGKILL
    num_done = json.loads((tmp_path / "out.txt.partial.json").read_text())["num_lines"]
    assert 0 < num_done < 1_000
    with (tmp_path / "out.txt.partial").open("ab") as partial:
        partial.write(b"HALF A LI")  # what a kill in the middle of writing leaves behind
    resumed = start("in.txt", "-o", "out.txt", "--resume", cwd=tmp_path).finish(timeout=60)
    assert resumed.returncode == 0
    assert f"Continuing after line {num_done}" in resumed.stderr
    assert f"Translated {1_000 - num_done:,} lines" in resumed.stderr
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
