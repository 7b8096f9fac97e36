"""Measures the startup time and memory of `translate` on a single line.

    python scripts/bench_startup.py [--run DIR] [--rounds N]

The baseline is the minimum any such program must do: import torch and load the same weights. Both run in turn as fresh
processes, and the medians are compared. Without --run, a tiny model is trained first.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

# This process imports nothing large: on Linux a process's peak memory includes that of its parent at the fork.

LINE = "A dog runs through the snow.\n"
LOAD_WEIGHTS = "import sys, torch; from safetensors.torch import load_file; load_file(sys.argv[1])"
MAX_TIME_RATIO, MAX_MEMORY_RATIO = 1.4, 1.3


class Cost(NamedTuple):
    seconds: float
    megabytes: float  # peak


def cost_of(command: list[str]) -> Cost:
    """Runs a command to completion and measures its cost."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    if status:
        raise SystemExit(f"{' '.join(command)}: ended with exit code {os.waitstatus_to_exitcode(status)}")
    unit = 1 if sys.platform == "darwin" else 1_024  # ru_maxrss: bytes on macOS, kilobytes on Linux
    return Cost(seconds, usage.ru_maxrss * unit / 2**20)


def train_tiny_run(folder: Path) -> Path:
    run = folder / "run"
    command = [sys.executable, "-m", "translator.train", "experiment=smoke", f"run_dir='{run}'"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return run


def measure(run: Path, rounds: int, folder: Path) -> None:
    line = folder / "line.en"
    line.write_text(LINE, encoding="utf-8")
    translate = ["-m", "translator.translate", "--quiet", "--model", str(run), str(line)]
    commands = {
        "torch and the weights": [sys.executable, "-c", LOAD_WEIGHTS, str(run / "model.safetensors")],
        "translate, one line": [sys.executable, *translate],
    }
    for command in commands.values():
        cost_of(command)  # warm-up: fills the file system cache
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            costs[name].append(cost_of(command))
    print(f"start-up, medians of {rounds} rounds")
    medians = [Cost(*map(statistics.median, zip(*costs[name], strict=True))) for name in commands]
    for name, median in zip(commands, medians, strict=True):
        print(f"  {name:<24} {median.seconds:6.2f} s {median.megabytes:8.0f} MB")
    least, ours = medians
    print(f"  {'time, as a ratio':<24} {ours.seconds / least.seconds:6.2f}  wanted: {MAX_TIME_RATIO} or less")
    print(f"  {'memory, as a ratio':<24} {ours.megabytes / least.megabytes:6.2f}  wanted: {MAX_MEMORY_RATIO} or less")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, metavar="DIR", help="a finished run; without it a tiny one is trained")
    parser.add_argument("--rounds", type=int, default=9, help="turns of each (default: %(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        measure(options.run or train_tiny_run(folder), options.rounds, folder)


if __name__ == "__main__":
    main()
