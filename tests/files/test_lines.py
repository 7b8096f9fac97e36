import gzip
import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from translator.errors import UserError
from translator.files.fingerprints import combined_fingerprint, fingerprint_file
from translator.files.lines import count_lines, read_lines

# Characters that end a line for str.splitlines, but not in a corpus.
NOT_LINE_ENDS = "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\r"


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def refusal(path: Path) -> str:
    """The error message for an unreadable file, which must be the same for reading and for counting."""
    with pytest.raises(UserError) as reading:
        list(read_lines(path))
    with pytest.raises(UserError) as counting:
        count_lines(path)
    assert str(reading.value) == str(counting.value)
    return str(reading.value)


@pytest.mark.parametrize("name", ["text.en", "text.en.gz"])
@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"one", ["one"]),
        (b"one\n", ["one"]),
        (b"one\n\n", ["one", ""]),
        (b"one\r\ntwo\r\n", ["one", "two"]),
        (b"one\r\r\ntwo\r", ["one\r", "two\r"]),
        (b"\xef\xbb\xbfone\n\xef\xbb\xbftwo", ["one", "\ufefftwo"]),
        (b"\xef\xbb\xbf", []),
        (b"\xef\xbb\xbf\n", [""]),
        ("Grüße 你好 👩‍🚀\n".encode(), ["Grüße 你好 👩‍🚀"]),
    ],
)
def test_lines(tmp_path: Path, name: str, content: bytes, lines: list[str]) -> None:
    path = written(tmp_path / name, content)
    assert list(read_lines(path)) == lines
    assert count_lines(path) == len(lines)


def test_only_line_feeds_end_a_line(tmp_path: Path) -> None:
    lines = [f"before{character}after" for character in NOT_LINE_ENDS]
    path = written(tmp_path / "text", "\n".join(lines).encode())
    assert list(read_lines(path)) == lines
    assert count_lines(path) == len(lines) < len(path.read_bytes().decode().splitlines())


@given(st.lists(st.text(st.characters(exclude_characters="\n\r\ufeff", exclude_categories=["Cs"])), min_size=1))
def test_lines_come_back_as_they_were_written(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    path = tmp_path_factory.mktemp("lines") / "text.gz"
    for end in ("\n", "\r\n"):
        written(path, "".join(line + end for line in lines).encode())
        assert list(read_lines(path)) == lines
        assert count_lines(path) == len(lines)


def test_characters_and_lines_across_the_borders_of_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("translator.files.lines.CHUNK", 5)
    lines = ["你好", "", "ein längerer Satz", "👩‍🚀"] * 3
    path = written(tmp_path / "text", "\n".join(lines).encode())
    assert count_lines(path) == len(lines)


@pytest.mark.parametrize("name", ["text.de", "text.de.gz"])
def test_not_utf8_names_file_line_and_offset(tmp_path: Path, name: str) -> None:
    before = "größer\nzweite Zeile mit ".encode()
    path = written(tmp_path / name, before + b"\xfc\n")
    message = refusal(path)
    for fact in (str(path), "line 2", f"byte offset {len(before)} ", "0xfc", "iconv"):
        assert fact in message
    assert ("uncompressed" in message) == name.endswith(".gz")


def test_offset_counts_the_byte_order_mark(tmp_path: Path) -> None:
    assert "line 1: not UTF-8 at byte offset 5 " in refusal(written(tmp_path / "text", b"\xef\xbb\xbfab\xff\n"))


def test_character_cut_off_at_the_end_of_the_file(tmp_path: Path) -> None:
    message = refusal(written(tmp_path / "text", b"ab\n" + "你".encode()[:2]))
    assert "line 2" in message
    assert "byte offset 3 " in message


def test_utf16_and_nameless_gzip_are_recognised(tmp_path: Path) -> None:
    assert "UTF-16" in refusal(written(tmp_path / "wide", "text\n".encode("utf-16")))
    assert ".gz" in refusal(written(tmp_path / "packed", gzip.compress(b"text\n")))


def test_truncated_gzip(tmp_path: Path) -> None:
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress(os.urandom(5000).hex().encode())[:-2000])
    message = refusal(path)
    assert str(path) in message
    assert "cut off" in message


@pytest.mark.parametrize("damage", ["plain text", "wrong checksum", "wrong data"])
def test_corrupt_gzip(tmp_path: Path, damage: str) -> None:
    content = bytearray(gzip.compress(os.urandom(500).hex().encode() + b"\n"))
    if damage == "plain text":
        content = bytearray(b"never compressed\n")
    elif damage == "wrong checksum":
        content[-8] ^= 1
    else:
        content[20:200] = bytes(180)
    path = tmp_path / "text.gz"
    path.write_bytes(content)
    message = refusal(path)
    assert str(path) in message
    assert "not a sound gzip file" in message


def test_missing_file_and_its_nearest_neighbour(tmp_path: Path) -> None:
    written(tmp_path / "train.en", b"")
    message = refusal(tmp_path / "trian.en")
    assert str(tmp_path / "trian.en") in message
    assert "no such file" in message
    assert "did you mean train.en?" in message
    assert "no such file" in refusal(tmp_path / "nowhere" / "train.en")


def test_directory_in_place_of_a_file(tmp_path: Path) -> None:
    message = refusal(tmp_path)
    assert str(tmp_path) in message
    assert "is a directory" in message


def test_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "text", b"one\n")

    def denied(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)
    message = refusal(path)
    assert str(path) in message
    assert "Permission denied" in message


def test_fingerprint_is_the_sha256_of_the_bytes(tmp_path: Path) -> None:
    content = os.urandom(3_000_000)
    path = tmp_path / "text.gz"
    path.write_bytes(content)
    fingerprint = fingerprint_file(path)
    assert fingerprint.sha256 == hashlib.sha256(content).hexdigest()
    assert (fingerprint.path, fingerprint.size) == (str(path), len(content))


def test_combined_fingerprints_keep_parts_apart() -> None:
    variants = [("ab", "c"), ("a", "bc"), ("abc",), ("ab", "c", ""), ("c", "ab")]
    assert len({combined_fingerprint(*parts) for parts in variants}) == len(variants)
    assert combined_fingerprint("ab", 3) == combined_fingerprint("ab", 3)
