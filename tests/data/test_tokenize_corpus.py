"""Tokenised tables: contents against the tokenizer, reuse, rebuilding, and interrupted builds."""

import multiprocessing
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import datasets
import numpy as np
import pytest
import torch

from support.corpora import NUMBERED_PAIRS as PAIRS
from support.corpora import ListCorpus, numbered_tokenizer
from translator.data import tokenize_corpus as tokenizing
from translator.data.cleaning import CleanedCorpus, Cleaning
from translator.data.tokenize_corpus import tokenize_corpus
from translator.data.tokenized_corpus import LoadedRows, TokenizedCorpus, join_tokenized
from translator.data.tokenizer import Tokenizer
from translator.errors import UserError


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizing, "CHUNK_PAIRS", 32)


def assert_holds(table: TokenizedCorpus, pairs: list[tuple[str, str]]) -> None:
    sources = numbered_tokenizer().encode_source([source for source, _ in pairs])
    targets = numbered_tokenizer().encode_target([target for _, target in pairs])
    assert len(table) == len(pairs)
    found_sources, found_targets = table.rows(np.arange(len(pairs)))
    assert [row.tolist() for row in found_sources] == sources
    assert [row.tolist() for row in found_targets] == targets
    rows = np.arange(len(pairs))
    assert table.source_lengths[rows].tolist() == [len(row) for row in sources]
    assert table.target_lengths[rows].tolist() == [len(row) + 1 for row in targets]
    assert table.source_lengths.sum() == sum(map(len, sources))


@pytest.mark.parametrize("num_processes", [0, 1, 2, 3])
def test_a_table_holds_the_tokens_of_the_corpus_in_order(tmp_path: Path, num_processes: int) -> None:
    table = tokenize_corpus(ListCorpus(PAIRS), numbered_tokenizer(), cache_dir=tmp_path, num_processes=num_processes)
    assert_holds(table, PAIRS)
    assert table.num_dropped == 0


def test_rows_can_be_read_in_any_order_and_repeatedly(tmp_path: Path) -> None:
    table = tokenize_corpus(ListCorpus(PAIRS), numbered_tokenizer(), cache_dir=tmp_path, num_processes=1)
    wanted = np.array([299, 0, 31, 32, 63, 64, 0, 150])
    sources, targets = table.rows(wanted)
    assert [row.tolist() for row in sources] == numbered_tokenizer().encode_source([PAIRS[i][0] for i in wanted])
    assert [row.tolist() for row in targets] == numbered_tokenizer().encode_target([PAIRS[i][1] for i in wanted])
    loaded = LoadedRows(table, wanted[:4]).rows(wanted[[3, 0, 0]])
    assert [row.tolist() for row in loaded[0]] == [sources[i].tolist() for i in (3, 0, 0)]
    assert [row.tolist() for row in loaded[1]] == [targets[i].tolist() for i in (3, 0, 0)]


def test_the_file_is_arrow_that_other_programs_can_read(tmp_path: Path) -> None:
    tokenize_corpus(ListCorpus(PAIRS), numbered_tokenizer(), cache_dir=tmp_path, num_processes=1)
    (file,) = tmp_path.glob("table-*/*.arrow")
    dataset = datasets.Dataset.from_file(str(file))
    assert dataset["source"][:] == numbered_tokenizer().encode_source([source for source, _ in PAIRS])
    assert dataset["target"][:] == numbered_tokenizer().encode_target([target for _, target in PAIRS])


def resident_kilobytes(folder: Path) -> dict[str, int]:
    """Resident memory of this process for each mapped file in the folder."""
    resident: dict[str, int] = {}
    name = ""
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if line.split(maxsplit=1)[0].count("-") == 1:  # the header line of a mapping starts with its addresses
            path = Path(line.split(maxsplit=5)[-1])
            name = path.name if path.is_relative_to(folder) else ""
        elif name and line.startswith("Rss:"):
            resident[name] = resident.get(name, 0) + int(line.split()[1])
    return resident


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="needs Linux")
def test_mapped_pages_are_released(tmp_path: Path) -> None:
    table = tokenize_corpus(ListCorpus(PAIRS), numbered_tokenizer(), cache_dir=tmp_path, num_processes=1)
    names = {"pairs.arrow", "source_lengths.npy", "target_lengths.npy"}
    assert resident_kilobytes(tmp_path) == dict.fromkeys(names, 0)
    sources, _ = table.rows(np.arange(300))
    assert not sources[3].flags.owndata
    before = [row.tolist() for row in sources]
    assert resident_kilobytes(tmp_path)["pairs.arrow"] > 0
    LoadedRows(table, np.arange(300))
    assert resident_kilobytes(tmp_path) == dict.fromkeys(names, 0)
    assert [row.tolist() for row in sources] == before  # views still read the file


def test_blank_sides_have_rows_too(tmp_path: Path) -> None:
    pairs = [("", ""), ("a", ""), ("", "b")]
    assert_holds(tokenize_corpus(ListCorpus(pairs), numbered_tokenizer(), cache_dir=tmp_path), pairs)


def test_long_pairs_are_left_out_and_counted(tmp_path: Path) -> None:
    limit = 8
    kept = [
        (source, target)
        for source, target in PAIRS
        if len(numbered_tokenizer().encode_source([source])[0]) - 1 <= limit
        and len(numbered_tokenizer().encode_target([target])[0]) <= limit
    ]
    assert 0 < len(kept) < len(PAIRS)
    for num_processes in (1, 2):
        cache_dir = tmp_path / str(num_processes)
        table = tokenize_corpus(
            ListCorpus(PAIRS), numbered_tokenizer(), cache_dir=cache_dir, num_processes=num_processes, max_pieces=limit
        )
        assert_holds(table, kept)
        assert table.num_dropped == len(PAIRS) - len(kept)


def test_a_limit_that_leaves_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"data\.max_pieces=1: each of the 300 pairs"):
        tokenize_corpus(ListCorpus(PAIRS), numbered_tokenizer(), cache_dir=tmp_path, max_pieces=1)
    assert list(tmp_path.iterdir()) == []


def test_reused_when_nothing_changed_and_rebuilt_when_anything_did(tmp_path: Path) -> None:
    corpus = ListCorpus(PAIRS)
    tokenize_corpus(corpus, numbered_tokenizer(), cache_dir=tmp_path, num_processes=1, max_pieces=100)
    table = tokenize_corpus(corpus, numbered_tokenizer(), cache_dir=tmp_path, num_processes=2, max_pieces=100)
    assert corpus.num_readings == 1
    assert_holds(table, PAIRS)
    other_tokenizer = Tokenizer.train(PAIRS, vocab_size=321)
    changed = ListCorpus(PAIRS[:200], fingerprint="b")
    tokenize_corpus(corpus, numbered_tokenizer(), cache_dir=tmp_path, num_processes=1, max_pieces=99)
    tokenize_corpus(corpus, other_tokenizer, cache_dir=tmp_path, num_processes=1, max_pieces=100)
    table = tokenize_corpus(changed, numbered_tokenizer(), cache_dir=tmp_path, num_processes=1, max_pieces=100)
    assert len(table) == 200
    assert (corpus.num_readings, changed.num_readings) == (3, 1)
    assert len(list(tmp_path.iterdir())) == 4


def test_the_format_is_part_of_the_fingerprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = ListCorpus(PAIRS)
    tokenize_corpus(corpus, numbered_tokenizer(), cache_dir=tmp_path, num_processes=1)
    monkeypatch.setattr(tokenizing, "FORMAT", tokenizing.FORMAT + 1)
    tokenize_corpus(corpus, numbered_tokenizer(), cache_dir=tmp_path, num_processes=1)
    assert corpus.num_readings == 2


def test_the_cleaning_report_is_kept(tmp_path: Path) -> None:
    pairs = [*PAIRS, ("", "blank"), PAIRS[0]]
    first = tokenize_corpus(CleanedCorpus(ListCorpus(pairs), Cleaning()), numbered_tokenizer(), cache_dir=tmp_path)
    corpus = CleanedCorpus(ListCorpus(pairs), Cleaning())
    again = tokenize_corpus(corpus, numbered_tokenizer(), cache_dir=tmp_path)
    assert len(again) == 300
    assert corpus.report.num_read == 0  # the corpus was not read again
    assert again.cleaning_report == first.cleaning_report
    assert again.cleaning_report is not None
    assert (again.cleaning_report["num_read"], again.cleaning_report["num_kept"]) == (302, 300)


@pytest.mark.parametrize("num_processes", [1, 2])
def test_an_error_while_reading_leaves_nothing_behind(tmp_path: Path, num_processes: int) -> None:
    class Broken(ListCorpus):
        def __iter__(self) -> Iterator[tuple[str, str]]:
            yield from self.pairs[:100]
            raise UserError("line 101 is not UTF-8")

    with pytest.raises(UserError, match="line 101"):
        tokenize_corpus(Broken(PAIRS), numbered_tokenizer(), cache_dir=tmp_path, num_processes=num_processes)
    assert list(tmp_path.iterdir()) == []
    table = tokenize_corpus(ListCorpus(PAIRS), numbered_tokenizer(), cache_dir=tmp_path, num_processes=num_processes)
    assert len(table) == 300


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_killed_build_is_not_mistaken_for_a_table(tmp_path: Path) -> None:
    class Endless(ListCorpus):
        def __iter__(self) -> Iterator[tuple[str, str]]:
            while True:
                yield from self.pairs

    context = multiprocessing.get_context("fork")
    arguments = {"cache_dir": tmp_path, "num_processes": 1}
    process = context.Process(target=tokenize_corpus, args=(Endless(PAIRS), numbered_tokenizer()), kwargs=arguments)
    process.start()
    deadline = time.monotonic() + 30
    while not any(file.stat().st_size > 10_000 for file in tmp_path.glob("*/*.arrow")):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert not [folder for folder in tmp_path.iterdir() if not folder.name.startswith(".")]
    assert_holds(tokenize_corpus(ListCorpus(PAIRS), numbered_tokenizer(), cache_dir=tmp_path, num_processes=1), PAIRS)


def test_two_builds_at_once_agree(tmp_path: Path) -> None:
    class Nested(ListCorpus):
        """While it is being read, another build makes the same table."""

        def __iter__(self) -> Iterator[tuple[str, str]]:
            tokenize_corpus(ListCorpus(self.pairs), numbered_tokenizer(), cache_dir=tmp_path, num_processes=1)
            yield from self.pairs

    assert_holds(tokenize_corpus(Nested(PAIRS), numbered_tokenizer(), cache_dir=tmp_path, num_processes=1), PAIRS)
    assert len(list(tmp_path.iterdir())) == 1


def test_joined_tables_are_concatenated(tmp_path: Path) -> None:
    parts = [PAIRS[:100], PAIRS[100:107], PAIRS[107:]]
    built = [
        tokenize_corpus(ListCorpus(part, fingerprint=str(i)), numbered_tokenizer(), cache_dir=tmp_path, num_processes=1)
        for i, part in enumerate(parts)
    ]
    joined = join_tokenized(built)
    assert_holds(joined, PAIRS)
    mixed = np.array([299, 0, 106, 107, 0, 99, 100])
    expected = numbered_tokenizer().encode_source([PAIRS[i][0] for i in mixed])
    assert [row.tolist() for row in joined.rows(mixed)[0]] == expected
    assert join_tokenized(built[:1]) is built[0]


def test_leftovers_of_a_killed_build_are_removed_after_a_day(tmp_path: Path) -> None:
    tokenize_corpus(ListCorpus(PAIRS), numbered_tokenizer(), cache_dir=tmp_path)
    (table_folder,) = tmp_path.iterdir()
    old, new = (tmp_path / f".tmp-{table_folder.name}-{name}" for name in ("old", "new"))
    table_folder.rename(old)
    new.mkdir()
    os.utime(old, (time.time() - 90_000,) * 2)
    tokenize_corpus(ListCorpus(PAIRS), numbered_tokenizer(), cache_dir=tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {table_folder.name, new.name}


def flip_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


def cut_in_half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


DAMAGES: dict[str, Callable[[Path], None]] = {
    "flipped": flip_a_byte,
    "cut": cut_in_half,
    "emptied": lambda path: path.write_bytes(b""),
    "missing": Path.unlink,
    "empty list": lambda path: path.write_text("{}"),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", [*TokenizedCorpus.FILES, "checksums.json"])
def test_a_damaged_table_is_named_and_rebuilt(
    tmp_path: Path, name: str, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    corpus = ListCorpus(PAIRS)
    tokenize_corpus(corpus, numbered_tokenizer(), cache_dir=tmp_path, num_processes=1)
    (folder,) = tmp_path.glob("table-*")
    DAMAGES[damage](folder / name)
    assert_holds(tokenize_corpus(corpus, numbered_tokenizer(), cache_dir=tmp_path, num_processes=1), PAIRS)
    assert corpus.num_readings == 2
    assert f"{folder}: damaged" in caplog.text
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]


def test_a_file_in_the_place_of_a_table_is_replaced(tmp_path: Path) -> None:
    corpus = ListCorpus(PAIRS)
    tokenize_corpus(corpus, numbered_tokenizer(), cache_dir=tmp_path, num_processes=1)
    (folder,) = tmp_path.glob("table-*")
    shutil.rmtree(folder)
    folder.write_text("not a folder")
    assert_holds(tokenize_corpus(corpus, numbered_tokenizer(), cache_dir=tmp_path, num_processes=1), PAIRS)


class EndlessCorpus(ListCorpus):
    """Records the worker processes once they are running, and never ends."""

    def __init__(self, pid_file: Path) -> None:
        super().__init__(PAIRS)
        self.pid_file = pid_file

    def __iter__(self) -> Iterator[tuple[str, str]]:
        yield from PAIRS
        children = multiprocessing.active_children()
        self.pid_file.write_text(" ".join(str(child.pid) for child in children))
        while True:
            time.sleep(1)


def test_the_workers_of_a_killed_process_end(tmp_path: Path) -> None:
    pid_file = tmp_path / "pids"
    arguments = (EndlessCorpus(pid_file), numbered_tokenizer())
    options = {"cache_dir": tmp_path / "cache", "num_processes": 2}
    parent = multiprocessing.get_context("fork").Process(target=tokenize_corpus, args=arguments, kwargs=options)
    parent.start()
    try:
        wait_until(lambda: pid_file.exists() and bool(pid_file.read_text()))
        workers = [int(pid) for pid in pid_file.read_text().split()]
        assert len(workers) == 2
        assert parent.pid is not None
        os.kill(parent.pid, signal.SIGKILL)
        parent.join()
        wait_until(lambda: not any(is_running(worker) for worker in workers))
    finally:
        parent.kill()


def wait_until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"  # an unreaped zombie has ended
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(("has_cuda", "method"), [(False, "fork"), (True, "spawn")])
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere workers are never forked")
def test_no_forking_after_cuda_has_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_cuda: bool, method: str
) -> None:
    chosen: list[str] = []

    def choose(name: str) -> object:
        chosen.append(name)
        raise InterruptedError

    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: has_cuda)
    monkeypatch.setattr(multiprocessing, "get_context", choose)
    with pytest.raises(InterruptedError):
        tokenize_corpus(ListCorpus(PAIRS), numbered_tokenizer(), cache_dir=tmp_path, num_processes=2)
    assert chosen == [method]
