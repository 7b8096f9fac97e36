"""Measures whether training keeps `trainer.max_time`, from the start of the process to its end.

    python scripts/bench_max_time.py [--runs N] [--limits 60,120,180] [--load K] [OPTION=VALUE …]

Trains on the demo corpus with each limit in turn until there are N runs, one at a time, as fresh processes, while K
other processes use the CPU at random intervals. A run is late if it takes longer than its limit. All runs share one
data cache, which the first run fills. By default there are 6 runs, which take 12 minutes.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import cycle, islice
from pathlib import Path
from typing import NamedTuple

MOST_LATE, LATEST = 1 / 30, 1.05  # share of the runs that may be late, and how much of their limit these may take
# Uses one core for up to eight seconds, then rests for as long.
BURN = """
import random, sys, time
random.seed(int(sys.argv[1]))
while True:
    end = time.monotonic() + random.uniform(0.5, 8)
    while time.monotonic() < end:
        pass
    time.sleep(random.uniform(0.5, 8))
"""


class Run(NamedTuple):
    limit: float
    seconds: float
    load: float  # average of the machine over the minute before the end
    exit_code: int
    num_updates: int
    valid_bleu: float | None
    test_bleu: float | None
    left_out: tuple[str, ...]

    @property
    def is_late(self) -> bool:
        return self.seconds > self.limit

    def __str__(self) -> str:
        verdict = "late" if self.is_late else "in time"
        scores = "  ".join("     -" if bleu is None else f"{bleu:6.2f}" for bleu in (self.valid_bleu, self.test_bleu))
        note = f"  exit code {self.exit_code}" if self.exit_code else f"  without {', '.join(self.left_out)}"
        return (
            f"{self.limit:5.0f} s {self.seconds:7.1f} s  {self.seconds / self.limit:6.1%}  {verdict:<7}"
            f"  load {self.load:4.1f}  {self.num_updates:5,} updates  {scores}{note if note[-1] != ' ' else ''}"
        )


@contextmanager
def burning(seed: int) -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-c", BURN, str(seed)])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def train(folder: Path, name: str, limit: float, options: list[str]) -> Run:
    run = folder / name
    places = [f"run_dir='{run}'", f"data.cache_dir='{folder / 'cache'}'", f"data.folder='{folder / 'demo'}'"]
    command = [sys.executable, "-m", "translator.train", "experiment=demo_transformer", *places, *options]
    with (folder / f"{name}.log").open("w", encoding="utf-8") as log:
        started = time.monotonic()
        process = subprocess.run(
            [*command, f"trainer.max_time={limit}s"], stdout=log, stderr=subprocess.STDOUT, check=False
        )
        seconds = time.monotonic() - started
    metrics = run / "metrics.json"
    figures = json.loads(metrics.read_text(encoding="utf-8")) if metrics.exists() else {}
    if not figures:
        print((folder / f"{name}.log").read_text(encoding="utf-8"), file=sys.stderr)
    valid, test = ((figures.get(split) or {}).get("bleu") for split in ("validation", "test"))
    left_out = tuple(figures.get("left_out", []))
    updates = figures.get("num_updates", 0)
    return Run(limit, seconds, os.getloadavg()[0], process.returncode, updates, valid, test, left_out)


def summary(runs: list[Run]) -> str:
    late = [run for run in runs if run.is_late]
    latest = max((run.seconds / run.limit for run in runs), default=0.0)
    failed = sum(run.exit_code != 0 for run in runs)
    shares = sorted(run.seconds / run.limit for run in runs)
    tested = sum(run.test_bleu is not None for run in runs)
    return (
        f"{len(late)} of {len(runs)} late, wanted: at most {max(1, round(MOST_LATE * len(runs)))}; the slowest used"
        f" {latest:.1%} of its time, wanted: {LATEST:.0%} or less; median {shares[len(shares) // 2]:.1%};"
        f" test set scored in {tested}; {failed} failed"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=6, help="how many in all (default: %(default)s)")
    parser.add_argument("--limits", default="60,120,180", help="seconds, used in turn (default: %(default)s)")
    parser.add_argument("--load", type=int, default=0, metavar="K", help="processes that use the CPU now and then")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="of the load")
    parser.add_argument("options", nargs="*", metavar="OPTION=VALUE", help="further options of translator.train")
    options = parser.parse_args()
    limits = [float(limit) for limit in options.limits.split(",")]
    print(f"load: {options.load} processes, seed {options.seed}", flush=True)
    runs = []
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        for number in range(options.load):
            stack.enter_context(burning(options.seed + number))
        for number, limit in enumerate(islice(cycle(limits), options.runs)):
            runs.append(train(Path(name), f"run-{number}", limit, options.options))
            print(runs[-1], flush=True)
    print(summary(runs))


if __name__ == "__main__":
    main()
