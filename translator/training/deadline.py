"""The deadline of a run with `trainer.max_time`: work that does not fit is skipped, so that the program ends on time.

`RunTime` plans the end so that everything fits. If the machine becomes too slow for that, or the limit was too short to
begin with, work is skipped in this order: the average of checkpoints, the final validation if an earlier one has found
good weights, the test set, and last the only validation, in which case the weights are published as they are. Work in
progress is abandoned when its time is up, as it would be after a signal; the weights are not affected.
"""

import math
from collections.abc import Callable
from typing import TypeVar

from translator.errors import Interrupted
from translator.training.progress import Progress
from translator.training.run_time import RunTime
from translator.training.signals import Interruption

Result = TypeVar("Result")

AVERAGE, VALIDATION, TEST = "the average of checkpoints", "the final validation", "the test set"

_HOPELESS = 0.5  # work is not started with less than this share of its expected time
_OVERRUN = 2.0  # a validation during training is abandoned after this multiple of its expected time …
_SHARE_OF_TRAINING = 1 / 4  # … unless that is less than this share of the time left for training
_ESTIMATE_SHARE = 0.05  # share of max_time that estimating a validation may take
_UNKNOWN_SAVING = 0.1  # of a validation, for saving its pictures, checkpoint and weights; until measured
_UNKNOWN_TAIL = 0.15  # share of a validation that cannot be interrupted; until measured
_TAIL_MARGIN = 1.5


class Deadline:
    """Runs the evaluations of a run within its time. All ranks must call the same methods in the same order."""

    def __init__(self, time: RunTime, interruption: Interruption) -> None:
        self.time = time
        self.interruption = interruption
        self.left_out: list[str] = []
        self._progress = Progress()
        self._over_at: int | None = None  # the update at which this process started with no time left
        self._tail_share = _UNKNOWN_TAIL

    def begin(self, progress: Progress) -> None:
        """`progress` is the run's own object, which keeps changing."""
        self._progress = progress
        if self.time.limit is not None and progress.update:
            (end,) = self.time.ranks.maximum(self.time.seconds + self.time.reserve(progress))
            self._over_at = progress.update if end >= self.time.limit else None

    @property
    def is_binding(self) -> bool:
        """A resumed run that has no time left to train makes up for what was left out, however long that takes."""
        return self.time.limit is not None and self._progress.update != self._over_at

    def estimate(self, work: Callable[[], float]) -> float:
        """The seconds of a validation as estimated by the work; all remaining time if estimating takes too long."""
        limit = self.time.limit or math.inf
        seconds = self._attempt(work, min(self._now() + _ESTIMATE_SHARE * limit, self._end()))
        return limit if seconds is None else seconds

    def validation(self, work: Callable[[], Result], *, is_last: bool) -> Result | None:
        """None if there was no time for it."""
        progress = self._progress
        now, expected = self._now(), self._expected()
        if is_last and not progress.history:  # the only one is tried, even if an old estimate says that it cannot fit
            expected = min(expected, max(0.0, self._end() - now))
        saving = self.time.saving_seconds
        until = self._end() - (_UNKNOWN_SAVING * expected if saving is None else saving)
        if progress.history:  # the best weights so far can be tested
            until -= self._expected_test()
        if not is_last and self.is_binding:
            training = self.time.plan.training_seconds(progress) - now
            until = min(until, now + max(_OVERRUN * expected, _SHARE_OF_TRAINING * training))
        is_hopeless = bool(progress.history) and until - now < _HOPELESS * expected
        result = None if is_hopeless else self._attempt(work, until, expected)
        if result is None and is_last:
            self.left_out.append(VALIDATION)
        elif result is None:
            self.time.note_abandoned(progress, self._now() - now)
        return result

    def has_time_for_average(self) -> bool:
        expected = self._expected() + self._expected_test()
        has_time = self._now() + expected <= self._end() and VALIDATION not in self.left_out
        if not has_time:
            self.left_out.append(AVERAGE)
        return has_time

    def average(self, work: Callable[[], Result]) -> Result | None:
        """The validation of an average of checkpoints; None if it could not be completed in time."""
        result = self._attempt(work, self._end() - self._expected_test(), self._expected())
        if result is None:
            self.left_out.append(AVERAGE)
        return result

    def test(self, work: Callable[[], Result]) -> Result | None:
        """None if there was no time for it."""
        until, expected = self._end(), self._expected_test()
        is_hopeless = until - self._now() < _HOPELESS * expected
        result = None if is_hopeless else self._attempt(work, until, expected)
        if result is None:
            self.left_out.append(TEST)
        return result

    def _now(self) -> float:
        """The same on all ranks, like all the times below."""
        return self.time.ranks.maximum(self.time.seconds)[0]

    def _end(self) -> float:
        """When the last evaluation must have ended."""
        if not self.is_binding:
            return math.inf
        assert self.time.limit is not None
        return self.time.limit - self.time.ranks.maximum(self.time.exit_seconds)[0]

    def _expected(self) -> float:
        return self.time.ranks.maximum(self.time.expected_validation(self._progress))[0]

    def _expected_test(self) -> float:
        return self.time.plan.settings.work_after_fit * self._expected()

    def _attempt(self, work: Callable[[], Result], until: float, expected: float | None = None) -> Result | None:
        """The result of work that polls `interruption.requested`, or None if it is not over in time.

        The last part of the work is done without polling; it must be over by then as well. A signal raises
        `Interrupted`.
        """
        if not self.is_binding:
            return work()
        left = until - self._now() - _TAIL_MARGIN * self._tail_share * (expected or 0.0)
        if left <= 0:
            return None
        started = self.time.clock()
        try:
            with self.interruption.time_limit(started + left):
                result = work()
        except Interrupted:
            if self.interruption.agreed():
                raise
            return None
        if expected is not None:
            self._measure_tail(started)
        return result

    def _measure_tail(self, started: float) -> None:
        now, polled_at = self.time.clock(), self.interruption.polled_at
        share = (now - polled_at) / (now - started) if started < polled_at < now else 0.0
        self._tail_share = self.time.ranks.maximum(share)[0] or self._tail_share
