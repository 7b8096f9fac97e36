"""Several ranks, each with its own clock and pace, leave out the same work."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest

from support.timed_training import FakeTime
from translator.training.deadline import AVERAGE, TEST, VALIDATION, Deadline
from translator.training.distributed import Ranks
from translator.training.progress import Plan, Progress, TrainerSettings
from translator.training.run_time import RunTime

LIMIT = 100.0
ALL = [VALIDATION, AVERAGE, TEST]


@dataclass
class Table:
    """Where the threads that play ranks exchange values."""

    meeting: threading.Barrier = field(default_factory=lambda: threading.Barrier(2, timeout=20))
    values: dict[int, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ThreadRanks(Ranks):
    table: Table = field(default_factory=Table)

    def maximum(self, *values: float) -> list[float]:
        return [max(column) for column in zip(*self.gather(values), strict=True)]

    def gather(self, value: Any) -> list[Any]:
        self.table.values[self.rank] = value
        self.table.meeting.wait()
        values = [self.table.values[rank] for rank in range(self.count)]
        self.table.meeting.wait()
        return values

    def wait_for_all(self, while_waiting: Callable[[], object] = lambda: None) -> None:
        self.table.meeting.wait()


def leave_out(ranks: Ranks, factor: float, slow_rank: int) -> tuple[list[str], float, list[bool]]:
    """The end of a run on one rank; the slow one was started earlier and has become slower than the other."""
    is_slow = ranks.rank == slow_rank
    clock = FakeTime(validation=0.0)
    settings = TrainerSettings(max_updates=1_000, max_seconds=LIMIT, average="best")
    time = RunTime(Plan(settings), clock, started=997.0 if is_slow else 1000.0, ranks=ranks)
    deadline = Deadline(time, clock.interruption)
    progress = Progress()
    time.begin(progress)
    deadline.begin(progress)
    made = []

    def work(seconds: float) -> bool:
        own = seconds * (factor if is_slow else 1.0)
        return bool(ranks.gather_work(lambda: clock.work(own), clock.interruption.requested))

    clock.now += 20
    made.append(deadline.validation(lambda: work(8.0), is_last=False) is not None)
    if made[-1]:
        progress.history.append({"update": 1})
        time.note_validation(progress, ranks.maximum(8.0)[0], is_over=True)
    for second in range(40):
        time.pace.record_update(1.0 + (0.5 if is_slow and second > 20 else 0.0))
        clock.now += 1.0
    made.append(deadline.validation(lambda: work(8.0), is_last=True) is not None)
    made.append(deadline.has_time_for_average())
    if made[-1]:
        made.append(deadline.average(lambda: work(8.0)) is not None)
    made.append(deadline.test(lambda: work(8.0)) is not None)
    return deadline.left_out, clock.taken, made


@pytest.mark.parametrize("slow_rank", [0, 1])
@pytest.mark.parametrize(("factor", "expected"), [(1.0, []), (2.0, [VALIDATION, AVERAGE]), (20.0, ALL)])
def test_ranks_that_differ_in_speed_decide_the_same(factor: float, expected: list[str], slow_rank: int) -> None:
    table = Table()
    with ThreadPoolExecutor(2) as threads:
        ranks = [ThreadRanks(rank, 2, table=table) for rank in range(2)]
        first, second = threads.map(lambda one: leave_out(one, factor, slow_rank), ranks)
    assert first[0] == second[0]
    assert first[2] == second[2]
    assert max(first[1], second[1]) <= LIMIT
    assert first[0] == expected
