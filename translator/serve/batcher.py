"""The queue and the one thread that owns the models: lines of many requests are translated together.

The request that has waited longest determines the task; lines of all waiting requests with the same task join it in
turn, until the batch has as many pieces as the model takes at once. A request with lines left goes to the end of the
queue, so that a long text does not keep short ones waiting. Lines with details are looked at one by one, so each of
them is a turn of its own.
"""

import logging
import threading
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from translator.errors import Interrupted
from translator.serve.jobs import Job
from translator.serve.metrics import Metrics
from translator.serve.models import Result

logger = logging.getLogger(__name__)
SMOOTHING = 0.8  # for the moving average of the speed, from which Retry-After is estimated


class QueueFullError(Exception):
    def __init__(self, retry_after: int) -> None:
        super().__init__()
        self.retry_after = retry_after


@dataclass
class _Share:
    """The lines of a job that are in a batch."""

    job: Job
    start: int
    numbers: list[int] = field(default_factory=list)


class Batcher:
    def __init__(self, metrics: Metrics, *, max_queue: int, wait_seconds: float) -> None:
        self.metrics, self.max_queue, self.wait_seconds = metrics, max_queue, wait_seconds
        self._waiting: list[Job] = []
        self._running: Sequence[Job] = ()
        self._changed = threading.Condition()
        self._is_closed = False
        self._latest_size = 0  # jobs in the latest batch
        self._pieces_per_second = 0.0
        self._thread = threading.Thread(target=self._work, name="translator", daemon=True)
        metrics.queue_length.set_function(lambda: len(self._waiting))

    def start(self) -> None:
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive() and not self._is_closed

    def submit(self, jobs: Sequence[Job]) -> None:
        """Queues all the jobs of a request, or none of them."""
        with self._changed:
            if len(self._waiting) + len(jobs) > self.max_queue and self._waiting:
                raise QueueFullError(self._estimate_wait())
            self._waiting.extend(job for job in jobs if job.lines)
            self._changed.notify()

    def cancel(self, job: Job) -> None:
        """Nobody is waiting for the job any more: it leaves the queue, and a search for it alone is abandoned."""
        with self._changed:
            job.cancelled = True
            if job in self._waiting:
                self._waiting.remove(job)

    def close(self, timeout: float) -> None:
        """Abandons whatever is left and waits for the thread to end."""
        with self._changed:
            self._is_closed = True
            for job in [*self._waiting, *self._running]:
                job.cancelled = True
            self._waiting.clear()
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def _estimate_wait(self) -> int:
        """Estimated seconds until the queue is empty, from 1 to 60."""
        num_pieces = sum(sum(job.sizes[job.num_taken :]) for job in self._waiting)
        return max(1, min(60, round(num_pieces / max(self._pieces_per_second, 1.0))))

    # ---------------------------------------------------------------------------------------- in the worker's thread

    def _work(self) -> None:
        while (batch := self._next_batch()) is not None:
            started = time.perf_counter()
            self._translate(batch)
            num_pieces = sum(share.job.sizes[number] for share in batch for number in share.numbers)
            speed = num_pieces / max(time.perf_counter() - started, 1e-6)
            self._pieces_per_second = SMOOTHING * (self._pieces_per_second or speed) + (1 - SMOOTHING) * speed

    def _next_batch(self) -> list[_Share] | None:
        """What is translated next; None once the server ends."""
        with self._changed:
            self._running = ()
            while not self._waiting:
                if self._is_closed:
                    return None
                self._changed.wait()
            # A single client is served at once. With several, more requests may be about to arrive.
            deadline = self._waiting[0].arrived + self.wait_seconds
            while self._waiting and max(self._latest_size, len(self._waiting)) > 1 and not self._is_full():
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    break
                self._changed.wait(remaining)
            if not self._waiting:  # the client has disconnected
                return []
            batch = self._take()
            self._running = [share.job for share in batch]
            self._latest_size = len(batch)
            return batch

    def _is_full(self) -> bool:
        """Whether waiting for more requests would not fill the next batch any better."""
        first = self._waiting[0]
        if not first.task.can_share:
            return True
        joined = [job for job in self._waiting if job.can_join(first)]
        return sum(sum(job.sizes[job.num_taken :]) for job in joined) >= first.task.options.batch_tokens

    def _take(self) -> list[_Share]:
        first = self._waiting[0]
        shares = [_Share(job, job.num_taken) for job in self._waiting if job.can_join(first)]
        budget = first.task.options.batch_tokens
        num_pieces, open_shares = 0, list(shares)
        while open_shares and num_pieces < budget:
            for share in list(open_shares):
                job = share.job
                size = job.sizes[job.num_taken]
                if num_pieces and num_pieces + size > budget:
                    num_pieces = budget
                    break
                share.numbers.append(job.num_taken)
                job.num_taken += 1
                num_pieces += size
                if not job.num_left or len(share.numbers) >= job.largest_share:
                    open_shares.remove(share)
        chosen = [share for share in shares if share.numbers]
        served = [share.job for share in chosen]
        for job in served:
            job.end_turn()
        others = [job for job in self._waiting if job not in served]
        self._waiting = others + [job for job in served if job.num_left]
        return chosen

    def _translate(self, batch: list[_Share]) -> None:
        """If a batch fails, its requests are retried one by one, so that only the one that caused the failure fails."""
        if not batch:
            return
        started = time.perf_counter()
        try:
            results = self._search(batch)
        except Interrupted:
            return
        except Exception as error:
            if len(batch) > 1:
                for share in batch:
                    self._translate([share])
                return
            self._fail(batch[0].job, error)
            return
        self.metrics.observe_batch(results, num_requests=len(batch), seconds=time.perf_counter() - started)
        position = 0
        for share in batch:
            share.job.deliver(results[position : position + len(share.numbers)])
            position += len(share.numbers)

    def _search(self, batch: list[_Share]) -> list[Result]:
        task = batch[0].job.task
        prefixes = [share.job.prefixes[number] for share in batch for number in share.numbers]
        return task.model.translate(
            [share.job.lines[number] for share in batch for number in share.numbers],
            task.options,
            prefixes=prefixes if any(prefixes) else None,
            split_sentences=task.split_sentences,
            details=task.details,
            need_links=task.need_links,
            first_line=batch[0].start,
            interrupted=lambda: all(share.job.cancelled for share in batch),
        )

    def _fail(self, job: Job, error: Exception) -> None:
        with self._changed:
            if job in self._waiting:
                self._waiting.remove(job)
        job.deliver(error)


def describe(error: BaseException) -> str:
    """The type of an error and where it happened, for the log. Its message might contain text from a request."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return type(error).__name__ + place
