"""Compares decoding with CTranslate2 on the same weights: speed, agreement of outputs, and memory on long texts.

    python scripts/bench_decoding.py [--model RUN] [--source FILE]

Greedy and beam search in float32 with two threads. CTranslate2 also runs in int8, with whichever is faster of two
one-thread workers or one two-thread worker. Each competitor runs in a separate process: it first decodes the whole text
with several batch sizes, then all take turns with their best settings. All receive the same pieces, rank hypotheses by
the same score (log-probability divided by the number of pieces, including EOS) and stop at the same length. Targets:
half the speed of CTranslate2 in float32, 99 % identical outputs, and at most 1.2 times as much memory for 100,000
lines as for 1,000; and 90 % of the speed of CTranslate2 for our engine that uses it, in float32 and in int8.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from translator.build.data import open_splits
from translator.command import exit_code, positive
from translator.data.normalization import normalize_text
from translator.decoding.forced_decoding import score_targets
from translator.decoding.interfaces import SearchEngine
from translator.decoding.line_translator import LineTranslator
from translator.errors import UserError
from translator.files.lines import read_lines
from translator.ids import PAD
from translator.kernels.allocator import keep_memory
from translator.runs.latest import resolve_run
from translator.runs.loading import LoadedRun, load_run
from translator.schema.decode import SearchOptions, Stop

OURS, FLOAT32, INT8 = "translator", "CTranslate2 float32", "CTranslate2 int8"
ENGINE, ENGINE_INT8 = "engine float32", "engine int8"  # `translate --engine ctranslate2`
MAX_LENGTH = 200  # pieces per output
BATCH_TOKENS = (512, 1_024, 2_048, 4_096, 8_192)  # for all our threads together; for each CTranslate2 worker
PROFILED = 4_096
TIMES_A_TURN = 3
FEW_LINES = 1_000
SHOWN = 10  # differing lines to print
# A process's peak memory includes that of the process it was forked from, so fork from a small one.
PEAK_MEMORY = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
Decode = Callable[[int], list[list[int]]]  # source tokens per batch to outputs


class Setting(NamedTuple):
    way: str  # workers x threads per worker
    batch_tokens: int


class IdTokenizer:
    """Texts are ids separated by spaces, so that tokenisation takes no time."""

    def __init__(self, target_vocab_size: int) -> None:
        self.target_vocab_size = target_vocab_size

    def encode_source(self, texts: list[str]) -> list[list[int]]:
        return [[int(piece) for piece in text.split()] for text in texts]

    encode_target = encode_source

    def decode_target(self, ids: Sequence[Sequence[int]]) -> list[str]:
        return [" ".join(map(str, sentence)) for sentence in ids]

    def source_pieces(self, ids: Sequence[int]) -> list[str]:
        return [str(piece) for piece in ids]

    target_pieces = source_pieces


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
    for hidden in ("--competitor", "--way", "--sizes", "--folder"):  # set by `run_turn`
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    return parser.parse_args()


# ---- competitors ----


def search_options(beam_size: int) -> SearchOptions:
    """With CTranslate2's stopping rule."""
    return SearchOptions(beam_size=beam_size, stop=Stop.first, max_length_ratio=0, max_length_extra=MAX_LENGTH)


def our_decoder(run: LoadedRun, sources: list[list[int]], beam_size: int, engine: SearchEngine | None = None) -> Decode:
    translator = LineTranslator(
        run.model, IdTokenizer(run.tokenizer.target_vocab_size), options=search_options(beam_size), engine=engine
    )
    texts = [" ".join(map(str, source)) for source in sources]

    def decode(batch_tokens: int) -> list[list[int]]:
        translator.options = translator.options.changed(batch_tokens=batch_tokens)
        return [[int(piece) for piece in text.split()] for text in translator.translate(texts)]

    return decode


def their_decoder(
    folder: Path, compute_type: str, sources: list[list[int]], beam_size: int, workers: int, num_threads: int
) -> Decode:
    import ctranslate2

    engine = ctranslate2.Translator(
        str(folder), compute_type=compute_type, inter_threads=workers, intra_threads=num_threads
    )
    pieces = [[str(piece) for piece in source[:-1]] for source in sources]  # EOS is added by CTranslate2

    def decode(batch_tokens: int) -> list[list[int]]:
        results = engine.translate_batch(
            pieces,
            beam_size=beam_size,
            length_penalty=1,
            max_decoding_length=MAX_LENGTH,
            max_input_length=0,
            max_batch_size=batch_tokens,
            batch_type="tokens",
        )
        return [[int(piece) for piece in result.hypotheses[0]] for result in results]

    return decode


def ways(competitor: str, num_threads: int) -> list[str]:
    """The thread configurations to try: workers x threads per worker."""
    if competitor in (OURS, ENGINE, ENGINE_INT8) or num_threads == 1:  # each of our threads translates its own batch
        return [f"{num_threads}x1"]
    return [f"{num_threads}x1", f"1x{num_threads}"]


def take_turn(options: argparse.Namespace) -> None:
    """Runs in a separate process: decodes with each beam and batch size and prints the seconds for `run_turn`."""
    folder = Path(options.folder)
    sources = json.loads((folder / "sources.json").read_text())
    workers, num_threads = map(int, options.way.split("x"))
    run, engine = None, None
    if options.competitor in (OURS, ENGINE, ENGINE_INT8):
        torch.set_num_threads(workers * num_threads)
        keep_memory()
        run = load_run(resolve_run(options.model), torch.device("cpu"))
    if run is not None and options.competitor != OURS:
        from translator.engines.ctranslate2 import CTranslate2Engine

        engine = CTranslate2Engine(resolve_run(options.model), run, int8=options.competitor == ENGINE_INT8)
    seconds: dict[int, list[float]] = {}
    for beam_size, sizes in parsed_sizes(options.sizes).items():
        if run is not None:
            decode = our_decoder(run, sources, beam_size, engine)
        else:
            compute_type = options.competitor.split()[-1]
            decode = their_decoder(folder / "converted", compute_type, sources, beam_size, workers, num_threads)
        decode(sizes[0])  # warm-up
        times = seconds[beam_size] = []
        for batch_tokens in sizes:
            start = time.perf_counter()
            outputs = decode(batch_tokens)
            times.append(time.perf_counter() - start)
        (folder / f"{options.competitor} {beam_size}.json").write_text(json.dumps(outputs))
    print(json.dumps(seconds))


Sizes = dict[int, list[int]]  # beam size to the batch sizes to try, in order


def parsed_sizes(text: str) -> Sizes:
    return {int(beam_size): sizes for beam_size, sizes in json.loads(text).items()}


def run_turn(
    competitor: str, way: str, sizes: Sizes, folder: Path, options: argparse.Namespace
) -> dict[int, list[float]]:
    """One turn of a competitor: for each beam size, the seconds per batch size, in order."""
    hidden = ["--competitor", competitor, "--way", way, "--sizes", json.dumps(sizes), "--folder", str(folder)]
    # The default number of threads of both CTranslate2 and torch.
    environment = {**os.environ, "OMP_NUM_THREADS": way.split("x")[1]}
    command = [sys.executable, *sys.argv, *hidden]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout
    return {int(beam_size): times for beam_size, times in json.loads(output.splitlines()[-1]).items()}


# ---- comparison ----


def best_settings(competitor: str, folder: Path, options: argparse.Namespace) -> dict[int, Setting]:
    """The competitor's fastest setting for each beam size."""
    tried: dict[int, dict[Setting, float]] = {}
    for way in ways(competitor, options.threads):
        sizes = {beam_size: list(BATCH_TOKENS) for beam_size in beam_sizes(options)}
        for beam_size, times in run_turn(competitor, way, sizes, folder, options).items():
            settings = [Setting(way, batch_tokens) for batch_tokens in BATCH_TOKENS]
            tried.setdefault(beam_size, {}).update(zip(settings, times, strict=True))
    return {beam_size: min(times, key=lambda setting: times[setting]) for beam_size, times in tried.items()}


def compare_speed(folder: Path, num_lines: int, options: argparse.Namespace) -> None:
    competitors = (OURS, FLOAT32, ENGINE, INT8, ENGINE_INT8)
    settings = {competitor: best_settings(competitor, folder, options) for competitor in competitors}
    seconds: dict[tuple[str, int], list[float]] = {}
    for _ in range(options.rounds):
        for competitor in competitors:
            for beam_size, setting in settings[competitor].items():
                sizes = {beam_size: [setting.batch_tokens] * TIMES_A_TURN}
                times = run_turn(competitor, setting.way, sizes, folder, options)[beam_size]
                seconds.setdefault((competitor, beam_size), []).extend(times)
    for beam_size in beam_sizes(options):
        print("greedy search" if beam_size == 1 else f"beam {beam_size}")
        reference = seconds[FLOAT32, beam_size]
        for competitor in competitors:
            times, setting = seconds[competitor, beam_size], settings[competitor][beam_size]
            outputs = json.loads((folder / f"{competitor} {beam_size}.json").read_text())
            num_tokens = sum(len(output) + 1 for output in outputs)
            best, median = min(times), statistics.median(times)
            print(
                f"  {competitor:<20} {num_lines / best:7,.0f} sentences/s  {num_tokens / best:8,.0f} target tokens/s  "
                f"ratio {min(reference) / best:4.2f}, of the medians {statistics.median(reference) / median:4.2f}  "
                f"({setting.way} threads, batches of {setting.batch_tokens:,} source tokens)"
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
            json.loads((folder / f"{competitor} {beam_size}.json").read_text()) for competitor in (OURS, FLOAT32)
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


def show_profile(run: LoadedRun, sources: list[list[int]], options: argparse.Namespace) -> None:
    """Prints the twenty most expensive operations of our search."""
    torch.set_num_threads(1)  # the profiler does not see other threads
    keep_memory()
    decode = our_decoder(run, sources, options.beam)
    decode(PROFILED)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        decode(PROFILED)
    operations = [event for event in profile.key_averages() if event.self_cpu_time_total > 0]
    total = sum(event.self_cpu_time_total for event in operations)
    for event in sorted(operations, key=lambda event: -event.self_cpu_time_total)[:20]:
        print(f"{event.key[:48]:<48} {event.self_cpu_time_total / total:6.1%} {event.count:7}")


def run_benchmark(options: argparse.Namespace) -> None:
    if options.competitor:
        take_turn(options)
        return
    options.model = resolve_run(options.model)
    run = load_run(options.model, torch.device("cpu"))
    lines = source_lines(run, options)
    sources = run.tokenizer.encode_source(lines)
    if options.profile:
        show_profile(run, sources, options)
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
        compare_speed(folder, len(lines), options)
        compare_outputs(folder, run, sources, options)
        if options.memory:
            compare_memory(lines, folder, options)


if __name__ == "__main__":
    arguments = parse_arguments()
    sys.exit(exit_code("bench_decoding", lambda: run_benchmark(arguments)))
