"""The time of a run: how much has passed, and how much of `max_time` must be reserved for its end.

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
_LARGEST_FACTOR = 3.0  # no planning is possible on a machine noisier than this
_MARGIN = 1.15  # on a machine without any noise
_EXIT_SECONDS = 0.5  # closing files and leaving Python …
_EXIT_SHARE = 0.15  # … on a machine where starting Python and reading the data took long, this share of it
_LONGEST_EXIT = 5.0
_FIRST_ESTIMATE = 1 / 8  # of the time that is left after the start
_OLD_ESTIMATE = 1.5  # an estimate is old once the number of updates has grown by this factor


class Pace:
    """How quickly updates are made, as a measure of the load on the machine."""

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
        self._estimated_at = 0  # update of the latest validation that was timed or estimated
        self._expected_end: float | None = None  # by the latest estimate, if the last update had been made then
        self._is_improving = False
        self._has_warned = False

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

        Earlier ones are ignored: a model that has learnt when to end a sentence is validated more quickly.
        """
        progress.validation_seconds = max(self._earlier_validation, seconds)
        if is_over:
            self._is_improving = False
            self._remember(progress, seconds)

    def estimate_is_due(self, progress: Progress) -> bool:
        """Whether to estimate a validation: once early, and again when the time seems to be up and the guess is old."""
        limit = self.plan.settings.max_seconds
        if not limit or not progress.update or progress.update == progress.validated_at:
            return False
        if not progress.validation_seconds:
            return progress.seconds - progress.startup_seconds >= _FIRST_ESTIMATE * (limit - progress.startup_seconds)
        return self._is_late(progress) and self._is_old(progress)

    def note_estimate(self, progress: Progress, seconds: float) -> None:
        end_before, self._expected_end = self._expected_end, self.seconds + self._needed(_MARGIN * seconds)
        is_late = self._expected_end > (self.plan.settings.max_seconds or 0.0)
        self._is_improving = is_late and (end_before is None or self._expected_end < end_before)
        progress.validation_seconds = seconds
        self._remember(progress, seconds)

    def _remember(self, progress: Progress, seconds: float) -> None:
        self._earlier_validation, self._estimated_at = seconds, progress.update
        self._pace_at_validation = self.pace.present

    def reserve(self, progress: Progress) -> float:
        """Seconds that the end of the run may take; 0 as long as that is not known.

        A model that has just begun to learn writes endless sentences, and each second of training saves more than one
        of validation. While that is so, a run with little time finishes earlier if it continues training.
        """
        if not progress.validation_seconds or (self._is_improving and not self._is_old(progress)):
            return 0.0
        margin = _MARGIN * self.pace.slowdown(self._pace_at_validation) * self.pace.noise
        return self._needed(progress.validation_seconds * margin)

    def delay(self, progress: Progress) -> str:
        """Says, once, that not even the work at the end fits into the given time."""
        limit = self.plan.settings.max_seconds
        made = progress.validation_seconds if progress.update == progress.validated_at else 0.0
        end = self.seconds + self._needed(progress.validation_seconds) - made
        if not limit or self._has_warned or self._is_improving or end <= limit:
            return ""
        self._has_warned = True
        over, validation, late = map(format_seconds, (self.seconds, progress.validation_seconds, end - limit))
        return (
            f"max_time={format_seconds(limit)} is too short: {over} are over, and a validation takes {validation}, the"
            f" end of a run {self.plan.num_validations_at_the_end:.1f} times as long; it will be about {late} late"
        )

    def _needed(self, validation_seconds: float) -> float:
        return self.plan.num_validations_at_the_end * validation_seconds + self._exit_seconds

    def _is_late(self, progress: Progress) -> bool:
        return progress.seconds >= self.plan.training_seconds(progress)

    def _is_old(self, progress: Progress) -> bool:
        return progress.update >= _OLD_ESTIMATE * self._estimated_at
