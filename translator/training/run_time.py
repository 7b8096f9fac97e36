"""The time of a run: how much has passed, and how much of `max_time` must be reserved for its end.

The end consists of the last validation, that of an average, the test set and the report. Its duration is estimated from
the validations so far, with a margin that grows if the machine has slowed down or is noisy. If that is not enough,
`Deadline` still ends the run on time.
"""

import math
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from translator.training.distributed import Ranks
from translator.training.progress import Plan, Progress

_SLICE_SECONDS = 1.0  # the pace is averaged over updates of this duration
_NUM_SLICES = 20
_NUM_RECENT = 3  # the current pace is the median of this many slices
_LARGEST_FACTOR = 3.0  # on a machine noisier than this, planning is impossible
_MARGIN = 1.15  # even on a machine without noise
_EXIT_SECONDS = 0.5  # for the summary, closing files and exiting Python …
_EXIT_SHARE = 0.1  # … or, if start-up was slow, this share of it
_LONGEST_EXIT = 5.0
_UNKNOWN_RESERVE = 0.05  # share of max_time, until a validation has been timed or if none fits
_FIRST_ESTIMATE = 1 / 8  # share of the time left after start-up
_OLD_ESTIMATE = 2.0  # an estimate is old once the number of updates has grown by this factor …
_OLD_LATE_ESTIMATE = 1.5  # … or by this one, when time seems to be up, or half of it is over and nothing fits
_WORTH_A_TRY = 1.5  # late validations expected to take up to this multiple of the time left are tried


class Pace:
    """How quickly updates are made, as a measure of the load on the machine."""

    def __init__(self) -> None:
        self._paces: deque[float] = deque(maxlen=_NUM_SLICES)  # seconds per update, slice by slice
        self._slice_seconds = 0.0
        self._slice_updates = 0
        self.first: float | None = None  # of all slices

    def record_update(self, seconds: float) -> None:
        self._slice_seconds += seconds
        self._slice_updates += 1
        if self._slice_seconds >= _SLICE_SECONDS:
            self._paces.append(self._slice_seconds / self._slice_updates)
            self.first = self.first or self._paces[0]
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
        """How much slower than usual the machine gets: the 90th percentile of the measurements."""
        if len(self._paces) < 2:
            return 1.0
        ordered = sorted(self._paces)
        slow = ordered[round(0.9 * (len(ordered) - 1))]
        return min(slow / statistics.median(ordered), _LARGEST_FACTOR)


class RunTime:
    """`started` is when the time of the run began, by the clock; without it, it begins with `begin`.

    All ranks must call the methods that note something at the same time, so that they make the same plan.
    """

    def __init__(
        self,
        plan: Plan,
        clock: Callable[[], float] = time.monotonic,
        started: float | None = None,
        ranks: Ranks | None = None,
    ) -> None:
        self.plan = plan
        self.clock = clock
        self.ranks = ranks or Ranks()
        self.pace = Pace()
        self.saving_seconds: float | None = None  # from the latest validation's result until it is on disk
        self._without_saving = 0.0
        self._started = started
        self._zero = 0.0
        self._exit_seconds = 0.0
        self._earlier_validation = 0.0
        self._pace_at_validation: float | None = None
        self._estimated_at = 0  # update of the latest validation that was timed or estimated
        self._num_planned: float | None = None  # validations at the end that will fit; None if nothing is known or fits

    def begin(self, progress: Progress) -> None:
        """Everything until now was preparation; the time of the processes before this one counts as well."""
        now = self.clock()
        (startup_seconds,) = self.ranks.maximum(now - (now if self._started is None else self._started))
        self._zero = now - startup_seconds - progress.seconds
        self._exit_seconds = min(_EXIT_SECONDS + _EXIT_SHARE * startup_seconds, _LONGEST_EXIT)
        self._earlier_validation = progress.validation_seconds if progress.history else 0.0  # measured, not estimated
        progress.startup_seconds += startup_seconds
        if progress.validation_seconds:
            self._plan_end(progress)

    @property
    def seconds(self) -> float:
        return self.clock() - self._zero

    @property
    def limit(self) -> float | None:
        return self.plan.settings.max_seconds

    @property
    def exit_seconds(self) -> float:
        """From the end of the last evaluation to that of the process."""
        return self._exit_seconds * self.pace.slowdown(self.pace.first)

    @contextmanager
    def of_update(self) -> Iterator[None]:
        started = self.clock()
        yield
        self.pace.record_update(self.clock() - started)

    def expected_validation(self, progress: Progress) -> float:
        """Seconds that a validation takes at the present pace of the machine."""
        return progress.validation_seconds * self.pace.slowdown(self._pace_at_validation)

    def note_validation(self, progress: Progress, seconds: float, is_over: bool = False) -> None:
        """Takes the time of this validation or of the one before it, whichever is longer.

        Earlier ones are ignored: a model that has learnt when to end a sentence is validated more quickly.
        """
        longer = max(self._earlier_validation, seconds)
        progress.validation_seconds = longer
        if is_over:
            self.saving_seconds = seconds - self._without_saving
            self._earlier_validation = seconds
            self._remember(progress, longer)
        self._without_saving = seconds

    def note_abandoned(self, progress: Progress, seconds: float) -> None:
        """Notes that a validation was abandoned after so many seconds, so it must be estimated again.

        The next one waits for at least as much training as this one took, or was known to take.
        """
        known = progress.validation_seconds
        self._remember(progress, 2 * (known or seconds))
        self._estimated_at = 0
        progress.next_validation_seconds = progress.seconds + seconds + max(seconds, known)

    def estimate_is_due(self, progress: Progress) -> bool:
        """Whether to estimate a validation: once early, and again when the estimate is old."""
        if not self.limit or not progress.update or progress.update == progress.validated_at:
            return False
        if not progress.validation_seconds:
            share = _FIRST_ESTIMATE * (self.limit - progress.startup_seconds)
            return progress.seconds - progress.startup_seconds >= share
        is_late = progress.seconds >= self.plan.training_seconds(progress)
        if is_late and self._num_planned is None:
            return False  # nothing can fit any more, whatever the estimate
        is_second_half = progress.seconds - progress.startup_seconds >= self.limit - progress.seconds
        is_soon_old = is_late or (is_second_half and self._num_planned is None)
        return progress.update >= (_OLD_LATE_ESTIMATE if is_soon_old else _OLD_ESTIMATE) * self._estimated_at

    def note_estimate(self, progress: Progress, seconds: float) -> None:
        self._remember(progress, seconds)

    def _remember(self, progress: Progress, seconds: float) -> None:
        progress.validation_seconds = seconds
        self._estimated_at, self._pace_at_validation = progress.update, self.pace.present
        self._plan_end(progress)

    def _plan_end(self, progress: Progress) -> None:
        """Decides what will fit: everything, or all but an average, or only the final validation.

        If not even that fits, training continues: a model that has just begun to learn never ends its sentences and can
        be validated faster later. Once there are validated weights, though, updates that can no longer be validated are
        useless, so at least a validation and the test are always reserved.
        """
        if self.limit is None:
            return
        choices = [self.plan.num_validations_at_the_end, 1 + self.plan.settings.work_after_fit, 1.0]
        (end,) = self.ranks.maximum(self.seconds + self.exit_seconds)
        largest = (self.limit - end) / max(1e-9, _MARGIN * progress.validation_seconds)
        fitting = next((choice for choice in choices if choice <= largest), None)
        is_second_half = end - progress.startup_seconds >= self.limit - end
        is_worth_a_try = is_second_half and _WORTH_A_TRY * largest >= 1
        self._num_planned = fitting or (1.0 if is_worth_a_try else None)
        if progress.history:
            self._num_planned = max(self._num_planned or 0.0, choices[1])

    def reserve(self, progress: Progress) -> float:
        """Seconds that the end of the run may take."""
        if self.limit is None:
            return 0.0
        end_of_update = self.exit_seconds + (self.pace.present or 0.0)
        if not self._num_planned:
            return max(_UNKNOWN_RESERVE * self.limit, end_of_update)
        # Some of the noise averages out over a whole validation, and an apparent slowdown may be only noise.
        slower = max(math.sqrt(self.pace.noise), self.pace.slowdown(self._pace_at_validation))
        return self._num_planned * _MARGIN * slower * progress.validation_seconds + end_of_update
