"""Runs the drills: `python -m drill --help`, or `make drill` for all of them.

Every scenario has its own random generator, seeded by the seed, the part and the scenario's number, so that a problem
can be repeated: `--only PART --seed SEED --scenario NUMBER`.
"""

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from drill import corpora, damages, disks, inputs, kills, options, ranks, stops
from drill.lab import Lab, build_references

# Each part and its share of the time.
PARTS: dict[str, tuple[ModuleType, float]] = {
    "kills": (kills, 9),
    "damages": (damages, 5),
    "options": (options, 6),
    "corpora": (corpora, 2.5),
    "inputs": (inputs, 2.5),
    "stops": (stops, 2.5),
    "disks": (disks, 1),
    "ranks": (ranks, 1),
}
MINUTES = 30.0
SHOWN_PROBLEMS = 20


def main() -> int:
    settings = _parse_arguments()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    seed = random.randrange(10**6) if settings.seed is None else settings.seed
    torch.set_num_threads(1)
    workplace = Path(tempfile.mkdtemp(prefix="drill-", dir=settings.folder))
    print(f"seed {seed}, {settings.jobs} at a time, in {workplace}", flush=True)
    found: dict[str, list[dict[str, Any]]] = {}
    try:
        shared = workplace / "shared"
        shared.mkdir()
        started = time.monotonic()
        build_references(shared)
        print(f"undisturbed runs for comparison in {time.monotonic() - started:.0f} s", flush=True)
        end = started + 60 * settings.minutes
        parts = list(settings.only or PARTS)
        for place, part in enumerate(parts):
            started = time.monotonic()
            # Time left over by one part goes to the others.
            share = PARTS[part][1] / sum(PARTS[name][1] for name in parts[place:])
            deadline = started + share * (end - started)
            found[part] = _run_part(part, settings, deadline, seed, workplace)
            print(_summary(part, found[part], time.monotonic() - started), flush=True)
    finally:
        if not settings.keep:
            shutil.rmtree(workplace, ignore_errors=True)
    return _report(found, settings, seed)


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m drill", description=__doc__.partition("\n")[0])
    parser.add_argument("--only", action="append", choices=PARTS, help="this part; can be repeated; default: all")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="the longest time (default: %(default)g)")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the cases (default: all, %(default)g)")
    parser.add_argument("--seed", type=int, help="random seed; default: a new one, which is printed")
    parser.add_argument("--scenario", type=int, help="only this one, to reproduce its problem")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="cases at a time")
    parser.add_argument("--folder", help="where to create the temporary folder; default: the system's")
    parser.add_argument("--keep", action="store_true", help="keep the temporary folder for inspection")
    return parser.parse_args()


def _run_part(
    part: str, settings: argparse.Namespace, deadline: float, seed: int, workplace: Path
) -> list[dict[str, Any]]:
    """All scenarios of a part, shared out among processes; what each of them found."""
    goals = {name: goal * settings.scale / settings.jobs for name, goal in PARTS[part][0].GOALS.items()}
    records = [workplace / f"{part}-{lane}.jsonl" for lane in range(settings.jobs)]
    lanes = []
    for lane, record in enumerate(records):
        if (pid := os.fork()) == 0:
            code = 1
            try:
                numbers = iter([settings.scenario] if lane == 0 else []) if settings.scenario is not None else None
                _run_lane(part, numbers or _numbers(lane, settings.jobs), goals, deadline, seed, workplace, record)
                code = 0
            except Exception:
                traceback.print_exc()
            finally:
                os._exit(code)
        lanes.append(pid)
    try:
        codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in lanes]
    except BaseException:
        for pid in lanes:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        raise
    found = [json.loads(line) for record in records if record.exists() for line in record.open(encoding="utf-8")]
    if any(codes):
        found.append({"scenario": -1, "counts": {}, "problems": ["the drill itself failed, see above"], "seconds": 0.0})
    return found


def _numbers(first: int, step: int) -> Iterator[int]:
    number = first
    while True:
        yield number
        number += step


def _run_lane(
    part: str,
    numbers: Iterator[int],
    goals: dict[str, float],
    deadline: float,
    seed: int,
    workplace: Path,
    record: Path,
) -> None:
    """Runs scenarios until this lane has its share of the cases, or the time is up."""
    run: Callable[[Lab, int], None] = PARTS[part][0].scenario
    total: Counter[str] = Counter()
    with record.open("w", encoding="utf-8") as file:
        for number in numbers:
            folder = workplace / f"{part}-{number}"
            folder.mkdir()
            lab = Lab(workplace / "shared", folder, random.Random(f"{seed} {part} {number}"))
            before = _processor_seconds()
            run(lab, number)
            total += lab.counts
            seconds = _processor_seconds() - before
            result = {"scenario": number, "counts": lab.counts, "problems": lab.problems, "seconds": seconds}
            file.write(json.dumps(result) + "\n")
            file.flush()
            for problem in lab.problems:
                print(f"  {part} {number}: {problem}", file=sys.stderr, flush=True)
            if not lab.problems:
                shutil.rmtree(folder, ignore_errors=True)
            if all(total[name] >= goal for name, goal in goals.items()) or time.monotonic() > deadline:
                return


def _processor_seconds() -> float:
    """Of this process and the cases that it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _summary(part: str, found: list[dict[str, Any]], seconds: float) -> str:
    counts = _counts(found)
    problems = sum(len(result["problems"]) for result in found)
    figures = ", ".join(f"{count:,} {name}" for name, count in counts.items())
    processor = sum(result["seconds"] for result in found)
    return f"{part:<8} {figures}; {problems} problems; {seconds:.0f} s, {processor:.0f} s of processor time"


def _counts(found: list[dict[str, Any]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for result in found:
        total.update(result["counts"])
    return total


def _report(found: dict[str, list[dict[str, Any]]], settings: argparse.Namespace, seed: int) -> int:
    print("\nreport")
    problems = [
        (part, result["scenario"], problem)
        for part, results in found.items()
        for result in results
        for problem in result["problems"]
    ]
    is_short = False
    for part, results in found.items():
        counts = _counts(results)
        for name, goal in PARTS[part][0].GOALS.items():
            wanted = round(goal * settings.scale)
            is_missed = counts[name] < wanted and settings.scenario is None
            is_short |= is_missed
            print(f"  {part:<8} {counts[name]:>6,} of {wanted:,} {name}{'  (the time was up)' if is_missed else ''}")
    for part, number, problem in problems[:SHOWN_PROBLEMS]:
        print(f"  PROBLEM  {problem}\n           again: --only {part} --seed {seed} --scenario {number}")
    print(f"  {len(problems)} problems" if problems else "  nothing lost, undetected, hung or crashed")
    if is_short:
        print("  not complete: some parts had too little time; give it more with --minutes")
    return 1 if problems or is_short else 0


if __name__ == "__main__":
    sys.exit(main())
