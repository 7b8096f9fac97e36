"""The time of a run: what is over, and how much of `max_time` its end needs.

The end is the last validation, that of an average, the test set and the report. What it takes is estimated from the
validations made so far, with a margin that grows where the machine has become slower or is noisy.
"""

import statistics
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from translator.training.monitor import format_seconds
from translator.training.progress import Plan, Progress

_SLICE_SECONDS = 1.0  # of updates whose average pace is one measurement
_NUM_SLICES = 20
_NUM_RECENT = 3  # slices whose median is the present pace
_LARGEST_FACTOR = 3.0  # a machine that is even noisier cannot be planned for
_MARGIN = 1.15  # on a machine without any noise
_EXIT_SECONDS = 0.5  # closing files and leaving Python …
_EXIT_SHARE = 0.15  # … on a machine where starting Python and reading the data took long, this share of it
_LONGEST_EXIT = 5.0


class Pace:
    """How quickly updates are made, as a measure of what else the machine has to do."""

    def __init__(self) -> None:
        self._paces: deque[float] = deque(maxlen=_NUM_SLICES)  # seconds for each update, by slices
        self._slice_seconds = 0.0
        self._slice_updates = 0

    def record_update(self, seconds: float) -> None:
        self._slice_seconds += seconds
        self._slice_updates += 1
        if self._slice_seconds >= _SLICE_SECONDS:
            self._paces.append(self._slice_seconds / self._slice_updates)
            self._slice_seconds, self._slice_updates = 0.0, 0

    @property
    def present(self) -> float | None:
        return statistics.median(list(self._paces)[-_NUM_RECENT:]) if self._paces else None

    def slowdown(self, since: float | None) -> float:
        """How much slower the machine is than when it had that pace; 1 where it is quicker."""
        now = self.present
        return min(max(now / since, 1.0), _LARGEST_FACTOR) if now and since else 1.0

    @property
    def noise(self) -> float:
        """How much slower than usual the machine is at its slowest, one measurement in ten aside."""
        if len(self._paces) < 2:
            return 1.0
        ordered = sorted(self._paces)
        slow = ordered[round(0.9 * (len(ordered) - 1))]
        return min(slow / statistics.median(ordered), _LARGEST_FACTOR)


class RunTime:
    """`started` is when the time of the run began, by the clock; without it, it begins with `begin`."""

    def __init__(self, plan: Plan, clock: Callable[[], float] = time.monotonic, started: float | None = None) -> None:
        self.plan = plan
        self.clock = clock
        self.pace = Pace()
        self._started = started
        self._zero = 0.0
        self._exit_seconds = 0.0
        self._earlier_validation = 0.0
        self._pace_at_validation: float | None = None

    def begin(self, progress: Progress) -> None:
        """Everything until now was preparation; the time of the processes before this one counts as well."""
        now = self.clock()
        startup_seconds = now - (now if self._started is None else self._started)
        self._zero = now - startup_seconds - progress.seconds
        self._exit_seconds = min(_EXIT_SECONDS + _EXIT_SHARE * startup_seconds, _LONGEST_EXIT)
        self._earlier_validation = progress.validation_seconds
        progress.startup_seconds += startup_seconds

    @property
    def seconds(self) -> float:
        return self.clock() - self._zero

    @contextmanager
    def of_update(self) -> Iterator[None]:
        started = self.clock()
        yield
        self.pace.record_update(self.clock() - started)

    def note_validation(self, progress: Progress, seconds: float, is_over: bool = False) -> None:
        """Takes the time of this validation or of the one before it, whichever is longer.

        Those before are not looked at: a model that has learnt when to end a sentence is validated more quickly.
        """
        progress.validation_seconds = max(self._earlier_validation, seconds)
        if is_over:
            self._earlier_validation = seconds
            self._pace_at_validation = self.pace.present

    def reserve(self, progress: Progress) -> float:
        """Seconds that the end of the run may take; 0 as long as no validation has been timed."""
        if not progress.validation_seconds:
            return 0.0
        margin = _MARGIN * self.pace.slowdown(self._pace_at_validation) * self.pace.noise
        return self.plan.num_validations_at_the_end * progress.validation_seconds * margin + self._exit_seconds

    def delay(self, progress: Progress) -> str:
        """Says after the first validation that not even the rest of the end fits into the given time."""
        limit = self.plan.settings.max_seconds
        if not limit or len(progress.history) != 1:
            return ""
        num_left = self.plan.num_validations_at_the_end - 1
        late = self.seconds + num_left * progress.validation_seconds + self._exit_seconds - limit
        if late <= 0:
            return ""
        validation, over = format_seconds(progress.validation_seconds), format_seconds(self.seconds)
        return (
            f"max_time={format_seconds(limit)} is too short: {over} are over, and the end of the run takes as long as"
            f" {num_left:.1f} validations of {validation}; it will be about {format_seconds(late)} late"
        )
