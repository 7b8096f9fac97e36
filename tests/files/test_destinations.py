"""Outputs: what would destroy an input is refused, links stay links, devices and pipes stay what they are."""

import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from translator.errors import UserError
from translator.files.destinations import (
    Destination,
    is_written_directly,
    protect_inputs,
    replaced_file,
    require_writable,
    writing,
)


@pytest.fixture
def input_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = Path("in.txt")
    path.write_text("text\n", encoding="utf-8")
    Path("folder").mkdir()
    Path("soft").symlink_to("in.txt")
    Path("hard").hardlink_to("in.txt")
    return path


@pytest.mark.parametrize("name", ["in.txt", "./in.txt", "folder/../in.txt", "soft", "hard"])
def test_an_input_is_recognised_under_every_name(input_file: Path, name: str) -> None:
    with pytest.raises(UserError, match=r"^--json .*: in\.txt would be overwritten; give another name$"):
        protect_inputs([Destination("--json", Path(name))], [Path("other.txt"), input_file])
    with pytest.raises(UserError, match="would be overwritten"):
        protect_inputs([Destination("-o", Path("out.txt"), (Path(name),))], [input_file])


def test_outputs_must_differ_even_before_they_exist(input_file: Path) -> None:
    one, two = Destination("--output", Path("new")), Destination("--json", Path("folder/../new"))
    with pytest.raises(UserError, match=r"^--json folder/\.\./new: is also written by --output new"):
        protect_inputs([one, two], [input_file])
    protect_inputs([one, Destination("--json", Path("newer"))], [input_file])
    null = Path(os.devnull)  # where anything may be written, even what was read from there
    protect_inputs([Destination("--output", null), Destination("--json", null)], [null])


def test_text_goes_through_links_and_appears_only_when_it_is_complete(input_file: Path) -> None:
    with suppress(ZeroDivisionError), writing(Destination("-o", Path("soft"))) as write:
        write("half")
        raise ZeroDivisionError
    assert input_file.read_text(encoding="utf-8") == "text\n"
    with writing(Destination("-o", Path("soft"))) as write:
        write("new ")
        write("text")
    assert input_file.read_text(encoding="utf-8") == "new text"
    assert Path("soft").is_symlink()
    assert Path("hard").read_text(encoding="utf-8") == "text\n"
    Path("dangling").symlink_to("folder/deep/new.txt")
    assert replaced_file(Path("dangling")) == Path("folder/deep/new.txt").absolute()
    with writing(Destination("-o", Path("dangling"))) as write:
        write("there")
    assert Path("folder/deep/new.txt").read_text(encoding="utf-8") == "there"
    assert sorted(path.name for path in Path("folder/deep").iterdir()) == ["new.txt"]


def test_pipes_and_devices_are_written_directly(input_file: Path) -> None:
    os.mkfifo("pipe")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(Path("pipe").read_text(encoding="utf-8")))
    reader.start()
    with writing(Destination("-o", Path("pipe"))) as write:
        write("through the pipe" * 10_000)
    reader.join(timeout=10)
    assert read == ["through the pipe" * 10_000]
    assert Path("pipe").is_fifo()
    Path("to-null").symlink_to(os.devnull)
    with writing(Destination("-o", Path("to-null"))) as write:
        write("gone")
    assert Path("to-null").is_symlink()
    assert Path(os.devnull).is_char_device()
    with pytest.raises(UserError, match=r"^-o /dev/full: cannot be written \(No space left on device\)$"):  # noqa: SIM117
        with writing(Destination("-o", Path("/dev/full"))) as write:
            write("x")


def test_an_open_descriptor_is_appended_to(input_file: Path) -> None:
    with input_file.open("ab") as file:
        path = Path(f"/proc/self/fd/{file.fileno()}")
        assert is_written_directly(path)
        with writing(Destination("-o", path)) as write:
            write("more\n")
    assert input_file.read_text(encoding="utf-8") == "text\nmore\n"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("folder", "is a directory"),
        ("in.txt/out.txt", "Not a directory"),
        ("in.txt/deeper/out.txt", "Not a directory"),
        ("soft/out.txt", "Not a directory"),
        ("x" * 300, "File name too long"),
        ("/proc/nowhere/out.txt", "No such file"),
        ("loop", "form a loop"),
    ],
)
def test_what_cannot_be_written_is_noticed_before_the_work(input_file: Path, name: str, message: str) -> None:
    Path("loop").symlink_to("loop")
    with pytest.raises(UserError, match=f"^--json {name}: cannot be written.*{message}") as error:  # noqa: SIM117
        with writing(Destination("--json", Path(name))):
            raise AssertionError("the work has started")
    assert "\n" not in str(error.value)


def test_a_missing_folder_is_created_only_when_there_is_something_to_write(input_file: Path) -> None:
    destination = Destination("--json", Path("a/b/c.json"))
    require_writable(destination)
    assert not Path("a").exists()
    with writing(destination) as write:
        write("{}")
    assert Path("a/b/c.json").read_text(encoding="utf-8") == "{}"
