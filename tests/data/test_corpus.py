import gzip
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from translator.data.corpus import Corpus, Splits, TextCorpus, TsvCorpus, open_text
from translator.demo import files
from translator.demo.corpus import open_demo
from translator.errors import UserError

ENGLISH = ["A dog.", "Two cats.", "", "A tab\tinside."]
GERMAN = ["Ein Hund.", "Zwei Katzen.", "Nichts.", "Ein Tab\tdarin."]


def write_lines(path: Path, lines: list[str]) -> Path:
    content = "".join(line + "\n" for line in lines).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def write_pair(prefix: Path, sources: list[str] = ENGLISH, targets: list[str] = GERMAN, ending: str = "") -> str:
    write_lines(Path(f"{prefix}.en{ending}"), sources)
    write_lines(Path(f"{prefix}.de{ending}"), targets)
    return str(prefix)


def open_one(prefix: str) -> Corpus:
    return open_text(source="en", target="de", train=[prefix], train_weights=None, valid=prefix, test=None).valid


def refusal(action: Callable[[], object]) -> str:
    with pytest.raises(UserError) as caught:
        action()
    return str(caught.value)


def reading_and_checking_refused(corpus: Corpus) -> str:
    message = refusal(lambda: list(corpus))
    assert refusal(corpus.check) == message
    return message


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_two_files(tmp_path: Path, ending: str) -> None:
    corpus = open_one(write_pair(tmp_path / "a", ending=ending))
    assert isinstance(corpus, TextCorpus)
    assert list(corpus) == list(zip(ENGLISH, GERMAN, strict=True))
    assert list(corpus) == list(corpus)
    corpus.check()


def test_plain_and_compressed_may_be_mixed_and_plain_is_preferred(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.en", ENGLISH)
    write_lines(tmp_path / "a.en.gz", ["something else"])
    write_lines(tmp_path / "a.de.gz", GERMAN)
    assert list(open_one(str(tmp_path / "a"))) == list(zip(ENGLISH, GERMAN, strict=True))


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.gz"])
def test_tab_separated(tmp_path: Path, name: str) -> None:
    write_lines(tmp_path / name, ["A dog.\tEin Hund.", "\tNichts.", "One\tEins\t0.93\thttp", '"quoted"\t'])
    corpus = open_one(str(tmp_path / "a.tsv"))
    assert isinstance(corpus, TsvCorpus)
    assert list(corpus) == [("A dog.", "Ein Hund."), ("", "Nichts."), ("One", "Eins"), ('"quoted"', "")]
    corpus.check()


def test_splits_weights_and_names(tmp_path: Path) -> None:
    prefixes = {name: write_pair(tmp_path / name) for name in ("a", "b", "v", "t")}
    splits = open_text(
        source="en",
        target="de",
        train=[prefixes["a"], prefixes["b"]],
        train_weights=[1.0, 2.5],
        valid=prefixes["v"],
        test=prefixes["t"],
    )
    assert [weight for _, weight in splits.train] == [1.0, 2.5]
    assert [corpus.name for corpus, _ in splits.train] == [f"train ({prefixes[name]})" for name in ("a", "b")]
    assert splits.test is not None
    assert [corpus.name for corpus in splits.held_out] == [f"valid ({prefixes['v']})", f"test ({prefixes['t']})"]
    splits.check()
    assert Splits(splits.train, splits.valid, None).held_out == [splits.valid]
    write_lines(tmp_path / "t.en", ["one line"])
    assert "t.en has 1 lines" in refusal(splits.check)


def test_the_other_direction(tmp_path: Path) -> None:
    prefix = write_pair(tmp_path / "a")
    splits = open_text(source="de", target="en", train=[prefix], train_weights=None, valid=prefix, test=None)
    assert list(splits.valid) == list(zip(GERMAN, ENGLISH, strict=True))
    assert splits.valid.fingerprint != open_one(prefix).fingerprint


@pytest.mark.parametrize(("num_sources", "num_targets"), [(3, 4), (4, 2), (0, 1), (5000, 4999)])
def test_different_line_counts_are_both_named(tmp_path: Path, num_sources: int, num_targets: int) -> None:
    prefix = write_pair(tmp_path / "a", ["x"] * num_sources, ["y"] * num_targets)
    message = reading_and_checking_refused(open_one(prefix))
    assert f"{prefix}.en has {num_sources} lines" in message
    assert f"{prefix}.de has {num_targets}" in message


def test_separators_inside_sentences_do_not_shift_lines(tmp_path: Path) -> None:
    prefix = write_pair(tmp_path / "a", ["one\u2028and a half", "two\x0b", "three\x85"], ["eins", "zwei", "drei"])
    assert [target for _, target in open_one(prefix)] == ["eins", "zwei", "drei"]


def test_empty_corpus(tmp_path: Path) -> None:
    prefix = write_pair(tmp_path / "a", [], [])
    message = reading_and_checking_refused(open_one(prefix))
    assert f"{prefix}.en" in message
    assert "empty" in message
    table = write_lines(tmp_path / "a.tsv", [])
    message = reading_and_checking_refused(open_one(str(table)))
    assert str(table) in message
    assert "empty" in message


def test_bad_bytes_are_found_by_reading_and_by_checking(tmp_path: Path) -> None:
    prefix = write_pair(tmp_path / "a")
    (tmp_path / "a.de").write_bytes(b"gut\nsch\xf6n\n\n\n")
    message = reading_and_checking_refused(open_one(prefix))
    for fact in ("a.de", "line 2", "byte offset 7 "):
        assert fact in message


@pytest.mark.parametrize("line", ["no tab at all", ""])
def test_line_without_two_columns(tmp_path: Path, line: str) -> None:
    path = write_lines(tmp_path / "a.tsv", ["A dog.\tEin Hund.", line])
    message = reading_and_checking_refused(open_one(str(path)))
    assert f"{path}, line 2" in message
    assert "no tab" in message


def test_same_language_twice(tmp_path: Path) -> None:
    prefix = write_pair(tmp_path / "a")
    message = refusal(
        lambda: open_text(source="en", target="en", train=[prefix], train_weights=None, valid=prefix, test=None)
    )
    assert "data.target=en" in message


def test_missing_files(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.en", ENGLISH)
    message = refusal(lambda: open_one(str(tmp_path / "a")))
    assert f"data.train={tmp_path / 'a'}" in message
    assert str(tmp_path / "a.de") in message
    assert "a.de.gz" in message
    assert f"data.train={tmp_path / 'a'} " in refusal(lambda: open_one(str(tmp_path / "a.en")))
    assert f"{tmp_path} is a directory" in refusal(lambda: open_one(str(tmp_path)))
    message = refusal(lambda: open_one(str(tmp_path / "b.tsv")))
    assert f"{tmp_path / 'b.tsv'}: no such file" in message
    assert "before the language code (data.target=de)" in refusal(lambda: open_one(str(tmp_path / "a")))


@pytest.mark.parametrize("ending", ["", ".tsv"])
def test_names_that_are_too_long(ending: str) -> None:
    name = "1" * 300 + ending
    assert f"data.train={name}: cannot be opened (File name too long)" in refusal(lambda: open_one(name))


@pytest.mark.parametrize("name", ["a.de", "a.de.gz", "a.tsv"])
def test_directory_in_place_of_a_file(tmp_path: Path, name: str) -> None:
    write_lines(tmp_path / "a.en", ENGLISH)
    (tmp_path / name).mkdir()
    message = refusal(lambda: open_one(str(tmp_path / ("a.tsv" if name == "a.tsv" else "a"))))
    assert f"{tmp_path / name}: is a directory" in message


def test_fingerprints_depend_on_the_content_and_not_the_path(tmp_path: Path) -> None:
    original = open_one(write_pair(tmp_path / "a"))
    assert original.fingerprint == open_one(write_pair(tmp_path / "b")).fingerprint
    changed = [open_one(write_pair(tmp_path / "c", [*ENGLISH[:3], "x"])), open_one(write_pair(tmp_path / "d", GERMAN))]
    table = write_lines(tmp_path / "a.tsv", ["a\tb"])
    fingerprints = {corpus.fingerprint for corpus in (original, *changed, open_one(str(table)))}
    assert len(fingerprints) == 4
    assert [file.path for file in original.files] == [str(tmp_path / "a.en"), str(tmp_path / "a.de")]
    for file in original.files:
        assert file.sha256 == hashlib.sha256(Path(file.path).read_bytes()).hexdigest()


# ------------------------------------------------------------------------------------------------- the demo corpus


REQUEST: dict[str, Any] = {"source": "en", "target": "de", "seed": 1, "num_train": 5, "num_valid": 3, "num_test": 2}


@pytest.fixture
def writings(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """A one-sentence grammar; the list records which directions were written."""
    directions: list[tuple[str, str]] = []

    def write(folder: Path, source: str, target: str, *, seed: int, **sizes: int) -> None:
        directions.append((source, target))
        for split in ("train", "valid", "test"):
            for language in (source, target):
                lines = [f"{language} {split} {seed} {number}" for number in range(sizes[f"num_{split}"])]
                write_lines(folder / f"{split}.{language}", lines)
            write_lines(folder / f"{split}.{source}-{target}.align", ["0-0"] * sizes[f"num_{split}"])

    monkeypatch.setattr(files, "write", write)
    return directions


def snapshot(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_demo_is_written_once(tmp_path: Path, writings: list[tuple[str, str]]) -> None:
    folder = tmp_path / "data" / "demo"
    splits = open_demo(folder=str(folder), **REQUEST)
    assert list(splits.train[0][0]) == [(f"en train 1 {number}", f"de train 1 {number}") for number in range(5)]
    assert splits.test is not None
    assert (len(list(splits.valid)), len(list(splits.test))) == (3, 2)
    before = snapshot(folder)
    assert "train.en-de.align" in before
    open_demo(folder=str(folder), **REQUEST)
    assert writings == [("en", "de")]
    assert snapshot(folder) == before


@pytest.mark.parametrize("change", [{"seed": 2}, {"num_train": 6}, {"num_valid": 4}, {"num_test": 3}])
def test_demo_is_written_again_when_the_request_changes(
    tmp_path: Path, writings: list[tuple[str, str]], change: dict[str, int]
) -> None:
    open_demo(folder=str(tmp_path), **REQUEST)
    splits = open_demo(folder=str(tmp_path), **{**REQUEST, **change})
    assert len(writings) == 2
    fresh = tmp_path / "fresh"
    open_demo(folder=str(fresh), **{**REQUEST, **change})
    fresh_files = snapshot(fresh)
    assert {name: (tmp_path / name).read_bytes() for name in fresh_files} == fresh_files
    splits.check()


def test_demo_is_written_again_when_the_grammar_changes(
    tmp_path: Path, writings: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    open_demo(folder=str(tmp_path), **REQUEST)
    monkeypatch.setattr(files, "_generator_version", lambda _: "a newer one")
    open_demo(folder=str(tmp_path), **REQUEST)
    open_demo(folder=str(tmp_path), **REQUEST)
    assert len(writings) == 2


def test_directions_share_a_folder(tmp_path: Path, writings: list[tuple[str, str]]) -> None:
    for _ in range(2):
        for source, target in (("en", "de"), ("en", "zh"), ("de", "en")):
            splits = open_demo(folder=str(tmp_path), **{**REQUEST, "source": source, "target": target})
            assert next(iter(splits.valid)) == (f"{source} valid 1 0", f"{target} valid 1 0")
    assert writings == [("en", "de"), ("en", "zh"), ("de", "en")]
    open_demo(folder=str(tmp_path), **{**REQUEST, "seed": 2})
    left = {path.name for path in tmp_path.iterdir()}
    assert not any("zh" in name or "de-en" in name for name in left), "files of another seed must not stay"
    assert {"train.en", "train.de", "train.en-de.align"} <= left


def test_missing_demo_file_is_written_again(tmp_path: Path, writings: list[tuple[str, str]]) -> None:
    open_demo(folder=str(tmp_path), **REQUEST)
    before = snapshot(tmp_path)
    (tmp_path / "valid.de").unlink()
    open_demo(folder=str(tmp_path), **REQUEST)
    assert snapshot(tmp_path) == before


@pytest.mark.usefixtures("writings")
def test_interrupted_writing_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_demo(folder=str(tmp_path), **REQUEST)
    replace = Path.replace
    moved: list[str] = []

    def replace_some(self: Path, target: Path) -> Path:
        if len(moved) == 4:
            raise KeyboardInterrupt
        moved.append(self.name)
        return replace(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", replace_some)
        with pytest.raises(KeyboardInterrupt):
            open_demo(folder=str(tmp_path), **{**REQUEST, "seed": 2})
    splits = open_demo(folder=str(tmp_path), **{**REQUEST, "seed": 2})
    assert {pair[0].split()[2] for pair in splits.train[0][0]} == {"2"}
    assert not [path for path in tmp_path.iterdir() if path.is_dir()], "no scratch folder is left"


@pytest.mark.usefixtures("writings")
def test_foreign_files_are_never_overwritten(tmp_path: Path) -> None:
    write_lines(tmp_path / "train.de", ["mein eigener Satz"])
    message = refusal(lambda: open_demo(folder=str(tmp_path), **REQUEST))
    assert str(tmp_path / "train.de") in message
    assert "data.folder" in message
    assert snapshot(tmp_path) == {"train.de": b"mein eigener Satz\n"}


@pytest.mark.usefixtures("writings")
@pytest.mark.parametrize("change", [{}, {"seed": 2}])
def test_edited_demo_files_are_neither_used_nor_overwritten(tmp_path: Path, change: dict[str, int]) -> None:
    open_demo(folder=str(tmp_path), **REQUEST)
    write_lines(tmp_path / "test.de", ["verbessert", "von Hand"])
    before = snapshot(tmp_path)
    message = refusal(lambda: open_demo(folder=str(tmp_path), **{**REQUEST, **change}))
    assert str(tmp_path / "test.de") in message
    assert "was changed" in message
    assert snapshot(tmp_path) == before


@pytest.mark.usefixtures("writings")
def test_demo_refusals(tmp_path: Path) -> None:
    message = refusal(lambda: open_demo(folder=str(tmp_path), **{**REQUEST, "target": "fr"}))
    assert "data.target=fr" in message
    assert "en, de, zh" in message
    assert "data.target=en" in refusal(lambda: open_demo(folder=str(tmp_path), **{**REQUEST, "target": "en"}))
    file = write_lines(tmp_path / "file", [])
    assert f"data.folder={file}" in refusal(lambda: open_demo(folder=str(file), **REQUEST))
    (tmp_path / "demo.json").write_text(json.dumps(["not", "ours"]))
    assert str(tmp_path / "demo.json") in refusal(lambda: open_demo(folder=str(tmp_path), **REQUEST))


def test_more_sentences_than_the_grammar_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(*_: object, **__: object) -> None:
        raise ValueError("num_train=5 is too many")

    monkeypatch.setattr(files, "write", write)
    assert "num_train=5 is too many" in refusal(lambda: open_demo(folder=str(tmp_path), **REQUEST))
    assert snapshot(tmp_path) == {}


def test_the_real_grammar(tmp_path: Path) -> None:
    request = {**REQUEST, "num_train": 50, "num_valid": 20, "num_test": 10}
    there = open_demo(folder=str(tmp_path), **request)
    back = open_demo(folder=str(tmp_path), **{**request, "source": "de", "target": "en"})
    also = open_demo(folder=str(tmp_path), **{**request, "target": "zh"})
    pairs = list(there.train[0][0])
    assert len(pairs) == 50
    assert list(back.train[0][0]) == [(german, english) for english, german in pairs]
    assert [source for source, _ in also.train[0][0]] == [english for english, _ in pairs]
    assert (tmp_path / "test.en-zh.align").read_text().count("\n") == 10
