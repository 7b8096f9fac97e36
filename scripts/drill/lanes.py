"""Scenarios side by side: each lane is a process that always continues with the part that is farthest from its goal.

So all parts finish at about the same time, and if time runs out, each has had its share.
"""

import json
import os
import random
import shutil
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from drill.lab import Lab

PROGRESS_SECONDS = 60.0
LATEST_SECONDS = 400.0  # for a scenario that a lane has started before time was up
_POLL_SECONDS = 0.2
Finding = dict[str, Any]  # part, scenario, counts, problems, CPU seconds


@dataclass(frozen=True)
class Lanes:
    """`parts` are the modules with scenarios; `goals` says how many cases of each kind all lanes together make."""

    parts: Mapping[str, ModuleType]
    goals: Mapping[str, Mapping[str, float]]
    seed: int
    workplace: Path
    deadline: float  # by `time.monotonic`: no scenario begins after it
    count: int
    scenario: int | None = None  # only this one, of the first part
    _pids: list[int] = field(default_factory=list)

    def run(self, tell: Callable[[list[Finding]], None]) -> list[Finding]:
        """What all lanes have found; `tell` is called with what they have so far, every minute."""
        for lane in range(self.count if self.scenario is None else 1):
            if (pid := os.fork()) == 0:
                self._become_lane(lane)
            self._pids.append(pid)
        try:
            codes = self._wait(tell)
        except BaseException:
            for pid in self._pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
            raise
        found = self._findings()
        if any(codes):
            failure = "the drill itself failed, see above"
            found.append({"part": "drill", "scenario": -1, "counts": {}, "problems": [failure], "seconds": 0.0})
        return found

    def _wait(self, tell: Callable[[list[Finding]], None]) -> list[int]:
        codes: dict[int, int] = {}
        told_at = time.monotonic()
        while len(codes) < len(self._pids):
            for pid in set(self._pids) - codes.keys():
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    codes[pid] = os.waitstatus_to_exitcode(status)
                elif time.monotonic() > self.deadline + LATEST_SECONDS:
                    os.kill(pid, signal.SIGTERM)
            if time.monotonic() - told_at >= PROGRESS_SECONDS:
                told_at = time.monotonic()
                tell(self._findings())
            time.sleep(_POLL_SECONDS)
        return list(codes.values())

    def _findings(self) -> list[Finding]:
        """Complete lines only: a lane may be writing the next one."""
        files = sorted(self.workplace.glob("lane-*.jsonl"))
        texts = [file.read_text(encoding="utf-8").rpartition("\n")[0] for file in files]
        return [json.loads(line) for text in texts for line in text.splitlines()]

    def _become_lane(self, lane: int) -> None:
        code = 1
        try:
            self._run_lane(lane)
            code = 0
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(code)

    def _run_lane(self, lane: int) -> None:
        done: dict[str, Counter[str]] = {part: Counter() for part in self.parts}
        numbers = dict.fromkeys(self.parts, lane)
        with (self.workplace / f"lane-{lane}.jsonl").open("w", encoding="utf-8") as record:
            while time.monotonic() < self.deadline:
                part = min(self.parts, key=lambda name: self._share_done(name, done[name]))
                if self._share_done(part, done[part]) >= 1:
                    return
                finding = self._run_scenario(part, numbers[part] if self.scenario is None else self.scenario)
                done[part].update(finding["counts"])
                numbers[part] += self.count
                record.write(json.dumps(finding) + "\n")
                record.flush()
                if self.scenario is not None:
                    return

    def _share_done(self, part: str, counts: Mapping[str, int]) -> float:
        return min(self.count * counts.get(name, 0) / max(goal, 1e-9) for name, goal in self.goals[part].items())

    def _run_scenario(self, part: str, number: int) -> Finding:
        """Its random numbers depend only on the seed, the part and its number, so that it can be repeated."""
        folder = self.workplace / f"{part}-{number}"
        folder.mkdir()
        lab = Lab(self.workplace / "shared", folder, random.Random(f"{self.seed} {part} {number}"))
        before = _processor_seconds()
        self.parts[part].scenario(lab, number)
        for problem in lab.problems:
            print(f"  {part} {number}: {problem}", file=sys.stderr, flush=True)
        if not lab.problems:
            shutil.rmtree(folder, ignore_errors=True)
        seconds = _processor_seconds() - before
        return {
            "part": part,
            "scenario": number,
            "counts": dict(lab.counts),
            "problems": lab.problems,
            "seconds": seconds,
        }


def _processor_seconds() -> float:
    """Of this process and the cases that it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def counts_of(found: Sequence[Finding], part: str) -> Counter[str]:
    total: Counter[str] = Counter()
    for finding in found:
        if finding["part"] == part:
            total.update(finding["counts"])
    return total
