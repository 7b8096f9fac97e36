"""Tokenised corpora on disk: Arrow tables, built once and cached.

A table's folder is named by a fingerprint of the cleaned text, the tokenizer and the options, so changing any of them
leads to another folder. It takes four bytes per piece and sixteen per pair.
"""

import hashlib
import json
import logging
import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow
import torch

from translator.data.cleaning import CleanedCorpus
from translator.data.corpus import Corpus
from translator.data.ragged_array import RaggedArray
from translator.data.tokenized_corpus import (
    ARROW_NAME,
    DESCRIPTION_NAME,
    SOURCE_LENGTHS_NAME,
    TARGET_LENGTHS_NAME,
    TokenizedCorpus,
)
from translator.data.tokenizer import Tokenizer
from translator.errors import UserError
from translator.files.cache import made_folder

logger = logging.getLogger(__name__)

FORMAT = 1  # raise it when the same inputs would give another table
CHUNK_PAIRS = 4_000  # tokenised together by one process, and one record batch of the Arrow file
IDS = pyarrow.list_(pyarrow.int32())
Pair = tuple[str, str]
Watch = Callable[[Iterable[Pair], str], Iterable[Pair]]  # the same pairs, and what is being done with them
SCHEMA = pyarrow.schema([("source", IDS), ("target", IDS)])


def tokenize_corpus(
    corpus: Corpus,
    tokenizer: Tokenizer,
    *,
    cache_dir: Path,
    num_processes: int = 0,
    max_pieces: int = 0,
    watch: Watch = lambda pairs, text: pairs,
) -> TokenizedCorpus:
    """The table of the corpus, built unless it is cached.

    Pairs with more than `max_pieces` pieces on a side are dropped and counted; 0 means no limit. `num_processes` worker
    processes tokenise (0 = one per core available to this process), while this one reads, cleans and writes. The pairs
    go through `watch`, which may count them.
    """
    made_from = [FORMAT, corpus.fingerprint, tokenizer.fingerprint, max_pieces]
    folder = cache_dir / f"table-{hashlib.sha256(json.dumps(made_from).encode()).hexdigest()[:16]}"

    def write(temporary: Path) -> None:
        pairs = watch(corpus, f"{corpus.name}: cleaning and tokenising")
        _write_table(temporary, corpus, pairs, tokenizer, num_processes, max_pieces)

    made_folder(folder, write, *TokenizedCorpus.FILES)
    table = TokenizedCorpus.open(folder)
    logger.info("%s: %d pairs in %s", corpus.name, len(table), folder)
    if table.num_dropped:
        logger.info("%s: %d pairs longer than data.max_pieces=%d left out", corpus.name, table.num_dropped, max_pieces)
    return table


def _write_table(
    folder: Path, corpus: Corpus, pairs: Iterable[Pair], tokenizer: Tokenizer, num_processes: int, max_pieces: int
) -> None:
    """`pairs` are those of the corpus."""
    source_lengths: list[np.ndarray] = []
    target_lengths: list[np.ndarray] = []
    num_dropped = 0
    with (
        pyarrow.OSFile(str(folder / ARROW_NAME), "wb") as file,
        pyarrow.ipc.new_stream(file, SCHEMA) as writer,
    ):
        for chunk in _encode_all(pairs, tokenizer, num_processes, max_pieces):
            writer.write_batch(pyarrow.record_batch([_to_arrow(chunk.source), _to_arrow(chunk.target)], schema=SCHEMA))
            source_lengths.append(chunk.source.lengths)
            target_lengths.append(chunk.target.lengths + 1)  # with EOS
            num_dropped += chunk.num_dropped
    if sum(map(len, source_lengths)) == 0:
        raise UserError(
            f"data.max_pieces={max_pieces}: each of the {num_dropped} pairs of {corpus.name} is longer; raise the limit"
        )
    np.save(folder / SOURCE_LENGTHS_NAME, np.concatenate(source_lengths))
    np.save(folder / TARGET_LENGTHS_NAME, np.concatenate(target_lengths))
    report = corpus.report.to_dict() if isinstance(corpus, CleanedCorpus) else None
    description = {"format": FORMAT, "corpus": corpus.name, "num_dropped": num_dropped, "cleaning_report": report}
    (folder / DESCRIPTION_NAME).write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")


def _to_arrow(rows: RaggedArray) -> pyarrow.ListArray:
    return pyarrow.ListArray.from_arrays(pyarrow.array(rows.offsets.astype(np.int32)), pyarrow.array(rows.ids))


@dataclass(frozen=True)
class _Chunk:
    source: RaggedArray
    target: RaggedArray
    num_dropped: int


def _encode_chunk(pairs: list[tuple[str, str]], tokenizer: Tokenizer, max_pieces: int) -> _Chunk:
    sources = tokenizer.encode_source([source for source, _ in pairs])
    targets = tokenizer.encode_target([target for _, target in pairs])
    kept = [
        (source, target)
        for source, target in zip(sources, targets, strict=True)
        if not max_pieces or max(len(source) - 1, len(target)) <= max_pieces
    ]
    return _Chunk(
        RaggedArray.from_rows([source for source, _ in kept]),
        RaggedArray.from_rows([target for _, target in kept]),
        num_dropped=len(pairs) - len(kept),
    )


def _encode_all(pairs: Iterable[Pair], tokenizer: Tokenizer, num_processes: int, max_pieces: int) -> Iterator[_Chunk]:
    """Chunks in the order of the pairs, at most two per process in flight."""
    num_processes = num_processes or _num_cores()
    iterator = iter(pairs)
    first = list(islice(iterator, CHUNK_PAIRS))
    if num_processes == 1 or len(first) < CHUNK_PAIRS:  # a small corpus is not worth starting workers
        while first:
            yield _encode_chunk(first, tokenizer, max_pieces)
            first = list(islice(iterator, CHUNK_PAIRS))
        return
    context = multiprocessing.get_context("fork" if _can_fork() else "spawn")
    executor = ProcessPoolExecutor(num_processes, context, _start_worker, (tokenizer, max_pieces))
    try:
        under_way: deque[Future[_Chunk]] = deque()
        while first or under_way:
            if first:
                under_way.append(executor.submit(_encode_in_worker, first))
                first = list(islice(iterator, CHUNK_PAIRS))
            if len(under_way) >= 2 * num_processes or not first:
                yield under_way.popleft().result()
    finally:
        executor.shutdown(cancel_futures=True)


def _can_fork() -> bool:
    """Workers only run SentencePiece, so on Linux they can be forked, unless CUDA is initialised: forks break it."""
    return sys.platform == "linux" and not torch.cuda.is_initialized()


def _num_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_worker: tuple[Tokenizer, int] | None = None  # set in worker processes only


def _start_worker(tokenizer: Tokenizer, max_pieces: int) -> None:
    global _worker
    _worker = tokenizer, max_pieces
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent() -> None:
    """Exits when the parent is gone: a killed parent cannot stop its workers, which would wait forever."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _encode_in_worker(pairs: list[tuple[str, str]]) -> _Chunk:
    assert _worker is not None
    return _encode_chunk(pairs, *_worker)
