"""Runs the drills: `python -m drill --help`, or `make drill` for all of them.

Every scenario has its own random generator, seeded by the seed, the part and the scenario's number, so that a problem
can be repeated: `--only PART --seed SEED --scenario NUMBER`.
"""

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import torch

from drill import corpora, damages, disks, inputs, kills, options, ranks, stops
from drill.lab import build_references
from drill.lanes import Finding, Lanes, counts_of

PARTS: dict[str, ModuleType] = {
    "kills": kills,
    "damages": damages,
    "options": options,
    "corpora": corpora,
    "inputs": inputs,
    "stops": stops,
    "disks": disks,
    "ranks": ranks,
}
MINUTES = 35.0
SHOWN_PROBLEMS = 20


def main() -> int:
    settings = _parse_arguments()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    seed = random.randrange(10**6) if settings.seed is None else settings.seed
    torch.set_num_threads(1)
    workplace = Path(tempfile.mkdtemp(prefix="drill-", dir=settings.folder))
    started = time.monotonic()
    print(f"seed {seed}, {settings.jobs} at a time, in {workplace}", flush=True)
    parts = {part: PARTS[part] for part in settings.only or PARTS}
    goals = {
        part: {name: max(1, round(goal * settings.scale)) for name, goal in module.GOALS.items()}
        for part, module in parts.items()
    }
    deadline = started + 60 * settings.minutes
    lanes = Lanes(parts, goals, seed, workplace, deadline, settings.jobs, settings.scenario)
    try:
        (workplace / "shared").mkdir()
        build_references(workplace / "shared")
        print(f"undisturbed reference runs made in {_passed(started)}", flush=True)
        found = lanes.run(lambda so_far: print(f"{_passed(started)}: {_progress(so_far, goals)}", flush=True))
    finally:
        if not settings.keep:
            shutil.rmtree(workplace, ignore_errors=True)
    is_whole = _report(found, goals, is_complete_wanted=settings.scenario is None)
    print(f"  seed {seed}, {settings.jobs} at a time, {_passed(started)}")
    return _report_problems(found, seed) or (0 if is_whole else 1)


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m drill", description=__doc__.partition("\n")[0])
    parser.add_argument("--only", action="append", choices=PARTS, help="this part; can be repeated; default: all")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="time limit (default: %(default)g)")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the cases (default: all, %(default)g)")
    parser.add_argument("--seed", type=int, help="random seed; default: a new one, which is printed")
    parser.add_argument("--scenario", type=int, help="only this one, to reproduce its problem")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="cases at a time")
    parser.add_argument("--folder", help="where to create the temporary folder; default: the system's")
    parser.add_argument("--keep", action="store_true", help="keep the temporary folder for inspection")
    return parser.parse_args()


def _passed(started: float) -> str:
    minutes, seconds = divmod(round(time.monotonic() - started), 60)
    return f"{minutes}m{seconds:02d}s"


def _progress(found: Sequence[Finding], goals: dict[str, dict[str, int]]) -> str:
    figures = [
        f"{counts_of(found, part)[name]:,} of {goal:,} {name}"
        for part, wanted in goals.items()
        for name, goal in wanted.items()
    ]
    return ", ".join([*figures, f"{sum(len(finding['problems']) for finding in found)} problems"])


def _report(found: Sequence[Finding], goals: dict[str, dict[str, int]], *, is_complete_wanted: bool) -> bool:
    """Prints what was done; returns whether all goals were reached."""
    print("\nreport")
    is_whole = True
    for part, wanted in goals.items():
        counts = counts_of(found, part)
        seconds = sum(finding["seconds"] for finding in found if finding["part"] == part)
        for name, goal in wanted.items():
            is_missed = counts[name] < goal and is_complete_wanted
            is_whole &= not is_missed
            late = "  (out of time)" if is_missed else ""
            print(f"  {part:<8} {counts[name]:>6,} of {goal:,} {name}, {seconds:.0f} s of CPU time{late}")
        if others := ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items()) if name not in wanted):
            print(f"  {'':<15} {others}")
    if not is_whole:
        print("  INCOMPLETE: out of time; allow more with --minutes")
    return is_whole


def _report_problems(found: Sequence[Finding], seed: int) -> int:
    problems = [(finding["part"], finding["scenario"], problem) for finding in found for problem in finding["problems"]]
    for part, number, problem in problems[:SHOWN_PROBLEMS]:
        print(f"  PROBLEM  {problem}\n           repeat with: --only {part} --seed {seed} --scenario {number}")
    print(f"  {len(problems)} problems" if problems else "  0 problems: nothing lost, undetected, hung or crashed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
