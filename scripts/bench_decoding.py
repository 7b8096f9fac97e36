"""Compares decoding with CTranslate2 on the same weights: speed, agreement of outputs, and memory on long texts.

    python scripts/bench_decoding.py [--model RUN] [--source FILE]

Greedy and beam search in float32 with two threads. CTranslate2 also runs in int8, with whichever is faster of two
one-thread workers or one two-thread worker. Each competitor has a process of its own: it first decodes the beginning of
the text with several batch sizes, then all take turns with their best settings. All receive the same pieces, rank
hypotheses by the same score (log-probability divided by the number of pieces, including EOS) and stop at the same
length. Targets: half the speed of CTranslate2 in float32, 99 % identical outputs, and at most 1.2 times as much memory
for 100,000 lines as for 1,000; and 90 % of the speed of CTranslate2 for our engine that uses it, in float32 and in
int8.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import torch

from decoding_competitors import (
    ENGINE,
    ENGINE_INT8,
    FLOAT32,
    INT8,
    MAX_LENGTH,
    OURS,
    Competitor,
    our_decoder,
    outputs_file,
)
from translator.build.data import open_splits
from translator.command import exit_code, positive
from translator.data.normalization import normalize_text
from translator.decoding.forced_decoding import score_targets
from translator.errors import UserError
from translator.files.lines import read_lines
from translator.ids import PAD
from translator.runs.latest import resolve_run
from translator.runs.loading import LoadedRun, load_run

COMPETITORS = (OURS, FLOAT32, ENGINE, INT8, ENGINE_INT8)
BATCH_TOKENS = (1_024, 2_048, 4_096, 8_192)  # for all our threads together; for each CTranslate2 worker
TRIED_LINES = 500
PROFILED = 4_096
TIMES_A_TURN = 2
FEW_LINES = 1_000
SHOWN = 10  # differing lines to print
# A process's peak memory includes that of the process it was forked from, so fork from a small one.
PEAK_MEMORY = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


class Setting(NamedTuple):
    process: Competitor
    batch_tokens: int


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=Path("runs/latest"), metavar="RUN", help="default: %(default)s")
    parser.add_argument("--source", type=Path, metavar="FILE", help="text to translate; default: the run's test set")
    parser.add_argument("--lines", type=positive, help="only so many lines of it")
    parser.add_argument("--beam", type=positive, default=5, help="default: %(default)s")
    parser.add_argument("--rounds", type=positive, default=3, help="turns of each competitor (default: %(default)s)")
    parser.add_argument("--threads", type=positive, default=2)
    parser.add_argument(
        "--memory",
        type=int,
        default=100_000,
        metavar="N",
        help=f"measure memory on N lines against {FEW_LINES:,}; 0 = not at all (default: %(default)s)",
    )
    parser.add_argument("--profile", action="store_true", help="show where our time goes, in place of comparing")
    return parser.parse_args()


# ---- comparison ----


def ways(competitor: str, num_threads: int) -> list[str]:
    """The thread configurations to try: workers x threads per worker."""
    if competitor in (OURS, ENGINE, ENGINE_INT8) or num_threads == 1:  # each of our threads translates its own batch
        return [f"{num_threads}x1"]
    return [f"{num_threads}x1", f"1x{num_threads}"]


def best_settings(
    processes: list[Competitor], num_lines: int, options: argparse.Namespace
) -> dict[tuple[str, int], Setting]:
    """The fastest process and batch size of each competitor, for each beam size."""
    tried: dict[tuple[str, int], dict[Setting, float]] = {}
    for process in processes:
        for beam_size in beam_sizes(options):
            settings = [Setting(process, batch_tokens) for batch_tokens in BATCH_TOKENS]
            times = process.turn(beam_size, BATCH_TOKENS, min(TRIED_LINES, num_lines))
            tried.setdefault((process.name, beam_size), {}).update(zip(settings, times, strict=True))
    return {case: min(times, key=lambda setting: times[setting]) for case, times in tried.items()}


def compare_speed(processes: list[Competitor], folder: Path, num_lines: int, options: argparse.Namespace) -> None:
    settings = best_settings(processes, num_lines, options)
    seconds: dict[tuple[str, int], list[float]] = {case: [] for case in settings}
    for _ in range(options.rounds):
        for (competitor, beam_size), setting in settings.items():
            times = setting.process.turn(beam_size, [setting.batch_tokens] * TIMES_A_TURN, num_lines)
            seconds[competitor, beam_size].extend(times)
    for beam_size in beam_sizes(options):
        print("greedy search" if beam_size == 1 else f"beam {beam_size}")
        reference = seconds[FLOAT32, beam_size]
        for competitor in COMPETITORS:
            times, setting = seconds[competitor, beam_size], settings[competitor, beam_size]
            outputs = json.loads(outputs_file(folder, competitor, beam_size).read_text())
            num_tokens = sum(len(output) + 1 for output in outputs)
            best, median = min(times), statistics.median(times)
            print(
                f"  {competitor:<20} {num_lines / best:7,.0f} sentences/s  {num_tokens / best:8,.0f} target tokens/s  "
                f"ratio {min(reference) / best:4.2f}, of the medians {statistics.median(reference) / median:4.2f}  "
                f"({setting.process.way} threads, batches of {setting.batch_tokens:,} source tokens)"
            )
        for engine, library in ((ENGINE, FLOAT32), (ENGINE_INT8, INT8)):
            ratio = min(seconds[library, beam_size]) / min(seconds[engine, beam_size])
            print(f"  {engine} against {library}: {ratio:4.2f}   wanted: at least 0.90")


def beam_sizes(options: argparse.Namespace) -> list[int]:
    return sorted({1, options.beam})


def compare_outputs(folder: Path, run: LoadedRun, sources: list[list[int]], options: argparse.Namespace) -> None:
    """Counts outputs identical to those of CTranslate2; for the others, reports which the model scores higher."""
    for beam_size in beam_sizes(options):
        ours, theirs = (
            json.loads(outputs_file(folder, competitor, beam_size).read_text()) for competitor in (OURS, FLOAT32)
        )
        differing = [line for line in range(len(sources)) if ours[line] != theirs[line]]
        num_limited = sum(len(output) >= MAX_LENGTH for output in ours)
        share = 1 - len(differing) / len(sources)
        print(f"beam {beam_size}: {share:.1%} of the outputs are those of CTranslate2 float32")
        if num_limited:
            print(f"  {num_limited} outputs have the greatest length, {MAX_LENGTH} pieces")
        gains = [_gain(run, sources[line], ours[line], theirs[line]) for line in differing]
        if gains:
            num_better = sum(gain > 0 for gain in gains)
            print(
                f"  of the other {len(gains)}, ours has the better score {num_better} times and the worse one "
                f"{len(gains) - num_better} times; differences from {min(gains):+.2e} to {max(gains):+.2e}"
            )
        for line, gain in list(zip(differing, gains, strict=True))[:SHOWN]:
            texts = run.tokenizer.decode_target([ours[line], theirs[line]])
            print(f"  line {line + 1}, {gain:+.2e}\n    ours:        {texts[0]}\n    CTranslate2: {texts[1]}")


def _gain(run: LoadedRun, source: list[int], ours: list[int], theirs: list[int]) -> float:
    """By how much our output beats theirs in the score both searches maximise: log-probability per piece."""
    tensor = torch.tensor([source, source])
    model = run.model.double()  # rules out rounding errors
    forced = score_targets(model, tensor, tensor != PAD, [ours, theirs])
    our_score, their_score = (result.score / len(result.piece_scores) for result in forced)
    return our_score - their_score


# ---- memory ----


def compare_memory(lines: list[str], folder: Path, options: argparse.Namespace) -> None:
    """Peak memory of the `translate` command on few and on many lines, with greedy search."""
    peaks = {}
    for num_lines in (FEW_LINES, options.memory):
        text = folder / f"{num_lines}.txt"
        repeated = (lines[number % len(lines)] for number in range(num_lines))
        text.write_text("".join(f"{line}\n" for line in repeated), encoding="utf-8")
        command = [sys.executable, "-m", "translator.translate", text, "-o", folder / "output.txt", "--quiet"]
        command += ["--model", options.model, "--beam", "1", "--threads", str(options.threads)]
        measured = [sys.executable, "-c", PEAK_MEMORY, *map(str, command)]
        output = subprocess.run(measured, check=True, stdout=subprocess.PIPE, text=True).stdout
        peaks[num_lines] = int(output.splitlines()[-1]) / (2**20 if sys.platform == "darwin" else 2**10)
        (folder / "output.txt").unlink()
    few, many = peaks[FEW_LINES], peaks[options.memory]
    print(f"peak memory of `translate`: {few:,.0f} MB for {FEW_LINES:,} lines, {many:,.0f} MB for {options.memory:,}")
    print(f"  ratio {many / few:.2f}   wanted: at most 1.2")


# ---- the benchmark ----


def source_lines(run: LoadedRun, options: argparse.Namespace) -> list[str]:
    """The non-blank lines; no competitor decodes blank ones."""
    if options.source:
        lines = list(read_lines(options.source))
    else:
        splits = open_splits(run.config.data)
        lines = [source for source, _ in splits.test or splits.valid]
    if run.config.data.cleaning.normalize:
        lines = [normalize_text(line) for line in lines]
    lines = [line for line in lines if line.strip()][: options.lines]
    if not lines:
        raise UserError(f"--source {options.source}: has no text")
    return lines


def show_profile(sources: list[list[int]], options: argparse.Namespace) -> None:
    """Prints the twenty most expensive operations of our search."""
    decode = our_decoder(options.model, sources, options.beam, num_threads=1)  # the profiler sees no other threads
    decode(PROFILED, len(sources))
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        decode(PROFILED, len(sources))
    operations = [event for event in profile.key_averages() if event.self_cpu_time_total > 0]
    total = sum(event.self_cpu_time_total for event in operations)
    for event in sorted(operations, key=lambda event: -event.self_cpu_time_total)[:20]:
        print(f"{event.key[:48]:<48} {event.self_cpu_time_total / total:6.1%} {event.count:7}")


def run_benchmark(options: argparse.Namespace) -> None:
    options.model = resolve_run(options.model)
    run = load_run(options.model, torch.device("cpu"))
    lines = source_lines(run, options)
    sources = run.tokenizer.encode_source(lines)
    if options.profile:
        show_profile(sources, options)
        return
    from translator.export.ctranslate2_model import convert

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tokenizer = run.tokenizer
        sizes = (tokenizer.source_vocab_size, tokenizer.target_vocab_size)
        source_names, target_names = ([str(piece) for piece in range(size)] for size in sizes)
        convert(run.model, folder / "converted", source_names, target_names)
        (folder / "sources.json").write_text(json.dumps(sources))
        print(
            f"{options.model}, {len(lines):,} lines, {options.threads} threads, best of {options.rounds * TIMES_A_TURN}"
        )
        processes = [
            Competitor(name, way, options.model, folder) for name in COMPETITORS for way in ways(name, options.threads)
        ]
        try:
            compare_speed(processes, folder, len(lines), options)
        finally:
            for process in processes:
                process.close()
        compare_outputs(folder, run, sources, options)
        if options.memory:
            compare_memory(lines, folder, options)


if __name__ == "__main__":
    arguments = parse_arguments()
    sys.exit(exit_code("bench_decoding", lambda: run_benchmark(arguments)))
