"""Shared by the model benchmarks: real batches, the machine's peak throughput, and interleaved timing.

Timings drift on a shared machine, so nothing is compared across runs: the competitors take turns in separate processes,
each with the memory allocator its users would have, and the ratio of their best rounds is reported.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from translator.data.batching import Batch, BatchSampler
from translator.data.cleaning import CleanedCorpus, Cleaning
from translator.data.corpus import Splits, open_text
from translator.data.tokenize_corpus import tokenize_corpus
from translator.data.tokenizer import TokenizerOptions, train_or_load_tokenizer
from translator.demo.corpus import open_demo
from translator.kernels.allocator import keep_memory
from translator.models.base import Seq2Seq
from translator.training.objectives.cross_entropy import CrossEntropy

MULTI30K_VARIABLE = "TRANSLATOR_MULTI30K"  # the folder with train.en.gz, val.en.gz and so on
DEFAULT_DATA = f"default: Multi30k in the folder that {MULTI30K_VARIABLE} names, else the demo corpus"
VOCAB_SIZE = 6_000
BATCH_TOKENS = 4_096
NUM_WARM_UP = 3
Step = Callable[[Batch], None]
Make = Callable[[str, int], tuple[nn.Module, Step]]  # (competitor, vocabulary size) to model and training step


def multi30k(split: str) -> str | None:
    """File prefix of a Multi30k split, or None if the environment variable is not set."""
    folder = os.environ.get(MULTI30K_VARIABLE)
    return str(Path(folder) / split) if folder else None


def parse_arguments(description: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", default=multi30k("train"), metavar="PREFIX", help=f"PREFIX.en and PREFIX.de ({DEFAULT_DATA})"
    )
    parser.add_argument("--batches", type=int, default=30, help="timed batches in each turn (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each competitor (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--profile", action="store_true", help="show where the time goes, in place of comparing")
    parser.add_argument("--competitor", help=argparse.SUPPRESS)  # set by `take_turns`
    return parser.parse_args()


def load_batches(
    options: argparse.Namespace, cache_dir: Path = Path("data/cache"), batch_tokens: int = BATCH_TOKENS
) -> tuple[list[Batch], int]:
    """Shuffled training batches of so many target tokens, and the size of the joint vocabulary."""
    splits: Splits
    if options.data:
        splits = open_text(
            source="en", target="de", train=[options.data], train_weights=None, valid=options.data, test=None
        )
    else:
        splits = open_demo(
            folder="data/demo", source="en", target="de", seed=1, num_train=20_000, num_valid=1_000, num_test=1_000
        )
    corpus = CleanedCorpus(splits.train[0][0], Cleaning())
    tokenizer = train_or_load_tokenizer(
        cache_dir, corpus.fingerprint, TokenizerOptions(vocab_size=VOCAB_SIZE if options.data else 2_000), corpus
    )
    table = tokenize_corpus(corpus, tokenizer, cache_dir=cache_dir)
    sampler = BatchSampler(table.source_lengths, table.target_lengths, batch_tokens=batch_tokens, seed=1)
    rows_of_batches = sampler.epoch(0)[: NUM_WARM_UP + options.batches]
    return [Batch.from_rows(*table.rows(rows), rows) for rows in rows_of_batches], tokenizer.target_vocab_size


def matrix_peak(num_tries: int = 6, size: int = 2_048) -> float:
    """Peak throughput of a float32 matrix product, in floating-point operations per second."""
    a, b = torch.randn(size, size), torch.randn(size, size)
    best = 0.0
    for _ in range(num_tries):
        start = time.perf_counter()
        torch.mm(a, b)
        best = max(best, 2 * size**3 / (time.perf_counter() - start))
    return best


def plain_step(model: nn.Module) -> Step:
    """A straightforward training step for a model that returns the loss of a batch."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)

    def step(batch: Batch) -> None:
        optimizer.zero_grad()
        model(batch).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


def our_step(model: Seq2Seq, label_smoothing: float) -> Step:
    """The training step of one of our models, as the trainer runs it on a CPU."""
    keep_memory()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
    loss = CrossEntropy(label_smoothing)

    def step(batch: Batch) -> None:
        optimizer.zero_grad()
        output = loss(model, batch)
        (output.loss_sum / output.num_tokens).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


def compete(description: str | None, title: str, make: Make, names: list[str], profiled: str) -> None:
    """Times the competitors in turn and prints their speed relative to the first; `make` builds one of them."""
    options = parse_arguments(description)
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    batches, vocab_size = load_batches(options)  # also fills the caches before anything is timed
    if options.profile or options.competitor:
        model, step = make(options.competitor or profiled, vocab_size)
        if options.profile:
            show_profile(step, batches)
        else:
            measure(model, step, batches)
        return
    print(f"{title}, {options.threads} threads, {len(batches) - NUM_WARM_UP} batches, best of {options.rounds} rounds")
    results = take_turns(names, options)
    peak = max(matrix_peak(), *(result["peak"] for result in results.values()))
    for name, result in results.items():
        ratio = result["rate"] / results[names[0]]["rate"]
        share = 6 * result["parameters"] * result["rate"] / peak
        print(
            f"  {name:<28} {result['rate']:8,.0f} target tokens/s  ratio {ratio:4.2f}  6·N·tokens {share:5.1%} of peak"
        )
    print(f"  peak of matrix products: {peak / 1e9:,.0f} GFLOP/s; share by 6·parameters·tokens")


def measure(model: nn.Module, step: Step, batches: list[Batch]) -> None:
    """Times the steps and prints the result for `take_turns` to read."""
    for batch in batches[:NUM_WARM_UP]:
        step(batch)
    peak = matrix_peak()
    rates = []
    for batch in batches[NUM_WARM_UP:]:
        start = time.perf_counter()
        step(batch)
        rates.append(batch.num_target_tokens / (time.perf_counter() - start))
    peak = max(peak, matrix_peak())
    num_parameters = sum(parameter.numel() for parameter in model.parameters())
    print(json.dumps({"rate": statistics.median(rates), "peak": peak, "parameters": num_parameters}))


def show_profile(step: Step, batches: list[Batch]) -> None:
    """Prints the twenty most expensive operations of the training step."""
    for batch in batches[:NUM_WARM_UP]:
        step(batch)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        for batch in batches[NUM_WARM_UP:]:
            step(batch)
    operations = [event for event in profile.key_averages() if event.self_cpu_time_total > 0]
    total = sum(event.self_cpu_time_total for event in operations)
    for event in sorted(operations, key=lambda event: -event.self_cpu_time_total)[:20]:
        print(f"{event.key[:48]:<48} {event.self_cpu_time_total / total:6.1%} {event.count:7}")


def take_turns(competitors: list[str], options: argparse.Namespace) -> dict[str, dict[str, float]]:
    """The best round of each competitor; every round runs all of them in turn."""
    results: dict[str, list[dict[str, float]]] = {name: [] for name in competitors}
    for _ in range(options.rounds):
        for name in competitors:
            command = [sys.executable, *sys.argv, "--competitor", name]
            environment = {**os.environ, "OMP_NUM_THREADS": str(options.threads)}
            output = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
            results[name].append(json.loads(output.splitlines()[-1]))
    return {name: max(rounds, key=lambda result: result["rate"]) for name, rounds in results.items()}
