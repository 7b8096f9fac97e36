"""Measures the data pipeline: padding, tokenisation, throughput and memory, on a corpus and on repeated copies of it.

    python scripts/bench_data.py [--data PREFIX] [--source en] [--target de]

Without --data it uses Multi30k from the folder given by the environment variable TRANSLATOR_MULTI30K (train.en.gz and
so on), or the demo corpus if that is not set.
"""

import argparse
import logging
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import torch

from bench_common import DEFAULT_DATA, multi30k
from translator.data.batching import Batch, BatchSampler
from translator.data.cleaning import CleanedCorpus, Cleaning
from translator.data.corpus import Corpus, open_text
from translator.data.loader import BatchLoader, CorpusBatches, fitted_batch_tokens
from translator.data.tokenize_corpus import tokenize_corpus
from translator.data.tokenized_corpus import TokenizedCorpus, join_tokenized
from translator.data.tokenizer import Tokenizer
from translator.demo.corpus import open_demo
from translator.files.fingerprints import FileFingerprint
from translator.kernels.allocator import keep_memory
from translator.models.transformer import Transformer
from translator.training.objectives.cross_entropy import CrossEntropy

MEGABYTE = 2**20
TRAINING_BATCHES = 12
MEMORY_COPIES = 3  # of the repeated corpus, to check that memory stops growing
MEMORY_BATCHES = 2_500  # the same for every size (about an epoch of 580,000 pairs): longer runs see higher peaks


class Repeated(Corpus):
    """A corpus repeated several times."""

    def __init__(self, corpus: Corpus, times: int) -> None:
        self.name = f"{corpus.name} x {times}"
        self.corpus = corpus
        self.times = times

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for _ in range(self.times):
            yield from self.corpus

    @property
    def files(self) -> list[FileFingerprint]:
        return self.corpus.files

    @property
    def fingerprint(self) -> str:
        return f"{self.corpus.fingerprint} {self.times}"


def show(name: str, value: str, wanted: str = "") -> None:
    print(f"  {name:<52} {value:>16}   {wanted}".rstrip(), flush=True)


def sampler_of(table: TokenizedCorpus, batch_tokens: int) -> BatchSampler:
    return BatchSampler(table.source_lengths, table.target_lengths, batch_tokens=batch_tokens, seed=1)


def measure_tokenizing(corpus: Corpus, tokenizer: Tokenizer, cache_dir: Path) -> TokenizedCorpus:
    """Times reading, cleaning, tokenising and writing on one core."""
    start = time.perf_counter(), time.process_time()
    table = tokenize_corpus(corpus, tokenizer, cache_dir=cache_dir, num_processes=1)
    wall, busy = time.perf_counter() - start[0], time.process_time() - start[1]
    show("pairs tokenised a minute, one core, wall clock", f"{60 * len(table) / wall:,.0f}", "wanted: 60,000 or more")
    show("the same by processor time", f"{60 * len(table) / busy:,.0f}")
    return table


def measure_batches(source: CorpusBatches, wanted: str = "") -> float:
    """Target tokens per second of the loader alone; prints the padding too."""
    num_tokens = num_positions = num_target = num_batches = largest = 0
    start = time.perf_counter()
    with BatchLoader(source) as loader:
        while loader.epoch == 0:
            batch = next(loader)
            num_tokens += batch.num_source_tokens + batch.num_target_tokens
            num_positions += batch.source.numel() + batch.target_out.numel()
            num_target += batch.num_target_tokens
            num_batches += 1
            largest = max(largest, batch.target_out.numel())
    seconds = time.perf_counter() - start
    show("padding", f"{1 - num_tokens / num_positions:.2%}", wanted)
    show("batches, target tokens in one", f"{num_batches:,}, {num_target / num_batches:,.0f}")
    show("target positions of the largest", f"{largest:,}")
    show("batches a second, order of the epoch included", f"{num_batches / seconds:,.0f}")
    show("target tokens a second", f"{num_target / seconds:,.0f}")
    return num_target / seconds


def measure_training(tokenizer: Tokenizer, batches: list[Batch]) -> float:
    """Target tokens per second when training the tiny Transformer of configs/model/transformer_tiny.yaml."""
    keep_memory()
    model = Transformer(
        tokenizer.source_vocab_size,
        tokenizer.target_vocab_size,
        model_size=128,
        feedforward_size=256,
        num_heads=4,
        encoder_layers=4,
        decoder_layers=4,
        dropout=0.3,
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    loss_function = CrossEntropy(0.1)

    def update(batch: Batch) -> None:
        optimizer.zero_grad()
        output = loss_function(model, batch)
        (output.loss_sum / output.num_tokens).backward()
        optimizer.step()

    update(batches[0])
    start = time.perf_counter()
    for batch in batches:
        update(batch)
    return sum(batch.num_target_tokens for batch in batches) / (time.perf_counter() - start)


def own_memory(process: psutil.Process) -> int:
    """Private bytes of the process, without pages of mapped files, which the system can reclaim."""
    info = process.memory_info()
    result: int = info.rss - info.shared if hasattr(info, "shared") else process.memory_full_info().uss
    return result


def measure_memory(folder: str, copies: int, batch_tokens: int, results: "multiprocessing.Queue[list[float]]") -> None:
    """Runs in a fresh process; reports the peak growth of private and of resident memory caused by the loader."""
    process = psutil.Process()
    torch.zeros(1)
    own, resident = own_memory(process), process.memory_info().rss
    most_own = most_resident = 0
    table = join_tokenized([TokenizedCorpus.open(Path(folder)) for _ in range(copies)])  # each with a separate mapping
    with BatchLoader(CorpusBatches(table, sampler_of(table, batch_tokens))) as loader:
        for _ in range(MEMORY_BATCHES):
            next(loader)
            most_own = max(most_own, own_memory(process) - own)
            most_resident = max(most_resident, process.memory_info().rss - resident)
    results.put([most_own / MEGABYTE, most_resident / MEGABYTE])


def in_new_process(function: Callable[..., None], *arguments: object) -> list[float]:
    context = multiprocessing.get_context("spawn")
    results: multiprocessing.Queue[list[float]] = context.Queue()
    process = context.Process(target=function, args=(*arguments, results))
    process.start()
    result = results.get()
    process.join()
    return result


def show_memory(num_pairs: int, cache_dir: Path, batch_tokens: int, copies: int = 1) -> None:
    (folder,) = cache_dir.glob("table-*")
    own, resident = in_new_process(measure_memory, str(folder), copies, batch_tokens)
    show(f"most memory added, {num_pairs * copies:,} pairs", f"{resident:,.1f} MB", "wanted: about the same for all")
    show("the same without the pages of the mapped table", f"{own:,.1f} MB", "wanted: about the same for all")


def open_corpus(options: argparse.Namespace, folder: str) -> Corpus:
    if options.data is None:
        splits = open_demo(
            folder=folder,
            source=options.source,
            target=options.target,
            seed=1,
            num_train=20_000,
            num_valid=100,
            num_test=100,
        )
    else:
        splits = open_text(
            source=options.source,
            target=options.target,
            train=[options.data],
            train_weights=None,
            valid=options.data,
            test=None,
        )
    return splits.train[0][0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data",
        default=multi30k("train"),
        metavar="PREFIX",
        help=f"PREFIX.en and PREFIX.de, perhaps with .gz ({DEFAULT_DATA})",
    )
    parser.add_argument("--source", default="en")
    parser.add_argument("--target", default="de")
    parser.add_argument("--batch-tokens", type=int, default=4_096)
    parser.add_argument("--vocab-size", type=int, default=8_000)
    parser.add_argument("--repeats", type=int, default=20, help="of the corpus, for the larger measurement")
    options = parser.parse_args()
    logging.basicConfig(format="  %(message)s")
    with tempfile.TemporaryDirectory() as folder:
        run(options, Path(folder))


def run(options: argparse.Namespace, folder: Path) -> None:
    corpus = open_corpus(options, str(folder / "demo"))
    # Keep the repeated pairs; all other cleaning steps run.
    cleaned = CleanedCorpus(corpus, Cleaning(drop_duplicates=False))
    start = time.perf_counter()
    tokenizer = Tokenizer.train(cleaned, vocab_size=options.vocab_size)
    print(f"{corpus.name}, batches of at most {options.batch_tokens:,} target positions")
    show("seconds to train the tokenizer (bpe)", f"{time.perf_counter() - start:.1f}")
    table = measure_tokenizing(cleaned, tokenizer, folder / "once")
    source = CorpusBatches(table, sampler_of(table, options.batch_tokens))
    speed = measure_batches(source, wanted="wanted: below 3 %")
    with BatchLoader(source) as loader:
        training_speed = measure_training(tokenizer, [next(loader) for _ in range(TRAINING_BATCHES)])
    show("a tiny Transformer's target tokens a second", f"{training_speed:,.0f}")
    show("batches are faster than it by a factor of", f"{speed / training_speed:,.0f}", "wanted: 10 or more")
    show_memory(len(table), folder / "once", options.batch_tokens)

    print("with BPE-dropout of 0.1")
    fitted = fitted_batch_tokens(table, tokenizer, 0.1, options.batch_tokens)
    sampled = measure_batches(CorpusBatches(table, sampler_of(table, fitted), tokenizer=tokenizer, sampling=0.1))
    show("batches are faster than training by a factor of", f"{sampled / training_speed:,.0f}", "wanted: 10 or more")
    run_repeated(options, folder / "repeated", corpus, tokenizer, training_speed)


def run_repeated(
    options: argparse.Namespace, cache_dir: Path, corpus: Corpus, tokenizer: Tokenizer, training_speed: float
) -> None:
    print(f"{options.repeats} times the corpus")
    start = time.perf_counter()
    repeated = CleanedCorpus(Repeated(corpus, options.repeats), Cleaning(drop_duplicates=False))
    table = tokenize_corpus(repeated, tokenizer, cache_dir=cache_dir)
    show(f"seconds to tokenise {len(table):,} pairs, all cores", f"{time.perf_counter() - start:.1f}")
    start = time.perf_counter()
    tokenize_corpus(repeated, tokenizer, cache_dir=cache_dir)
    show("seconds to find the table again", f"{time.perf_counter() - start:.2f}")
    sampler = sampler_of(table, options.batch_tokens)
    start = time.perf_counter()
    sampler.block(0, 0)
    show(f"seconds to order one of {sampler.num_blocks} blocks", f"{time.perf_counter() - start:.2f}")
    speed = measure_batches(CorpusBatches(table, sampler), wanted="wanted: below 3 %")
    show("batches are faster than training by a factor of", f"{speed / training_speed:,.0f}", "wanted: 10 or more")
    for copies in (1, MEMORY_COPIES):
        show_memory(len(table), cache_dir, options.batch_tokens, copies)


if __name__ == "__main__":
    main()
