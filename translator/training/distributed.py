"""Several processes that train one model, started by `torchrun`.

Gradients are summed by explicit all-reduces once an update is complete, not by DistributedDataParallel. DDP counts on
every rank running the same number of backward passes through its own forward; here a rank that runs out of memory
splits its micro-batch and takes more of them, and the loss uses the output matrix outside of forward. With the true
token count of all ranks known beforehand, the sum of the ranks' gradients is the gradient of the whole update.
"""

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NoReturn, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from translator.errors import Interrupted, UserError

Result = TypeVar("Result")
_BUCKET_BYTES = 32 * 2**20
_PATIENCE_SECONDS = 2.0  # time for the other ranks to report why they ended
_NO_LIMIT = timedelta(days=365)
_POLL_SECONDS = 0.02
_STOP_KEY = "stop"


@dataclass(frozen=True)
class Ranks:
    """This process among all ranks. With a single process every method returns its arguments unchanged."""

    rank: int = 0
    count: int = 1
    patient_group: Any = None  # a process group without a timeout
    store: Any = None  # of keys and values, shared by all ranks

    @property
    def is_main(self) -> bool:
        return self.rank == 0

    def sum(self, *values: float) -> list[float]:
        return self._reduce(values, dist.ReduceOp.SUM)

    def maximum(self, *values: float) -> list[float]:
        return self._reduce(values, dist.ReduceOp.MAX)

    def sum_tensors(self, tensors: Sequence[Tensor]) -> None:
        """Sums each tensor over the ranks in place, in buckets so that small tensors are sent together."""
        if self.count == 1:
            return
        work = []
        for bucket in _buckets(tensors):
            flat = torch.cat([tensor.flatten() for tensor in bucket])
            work.append((flat, bucket, dist.all_reduce(flat, async_op=True)))
        for flat, bucket, handle in work:
            handle.wait()
            for tensor, part in zip(bucket, flat.split([tensor.numel() for tensor in bucket]), strict=True):
                tensor.copy_(part.view_as(tensor))

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        if self.count == 1:
            return
        gradients = []
        for parameter in parameters:
            if parameter.grad is None:  # not used by this rank's sentences
                parameter.grad = torch.zeros_like(parameter)
            gradients.append(parameter.grad)
        self.sum_tensors(gradients)

    def wait_for_all(self, while_waiting: Callable[[], object] = lambda: None) -> None:
        """Returns when every rank has called it, however long one of them takes.

        Polls, because Python handles no signal while a collective operation blocks.
        """
        if self.count == 1:
            return
        arrival = dist.barrier(self.patient_group, async_op=True)
        while not arrival.is_completed():
            while_waiting()
            time.sleep(_POLL_SECONDS)
        arrival.wait()  # raises if a rank was lost

    def gather_work(self, work: Callable[[], Result], interrupted: Callable[[], bool]) -> list[Result]:
        """Every rank's result of work that may be interrupted, in order of rank, on every rank.

        `interrupted` says whether this process should stop; the work polls it and raises `Interrupted`. Where one rank
        has given up, all of them raise `Interrupted`, so that they remain in step.
        """
        results: list[Result] = []
        with suppress(Interrupted):
            results.append(work())
        self.wait_for_all(while_waiting=interrupted)
        gathered = self.gather(results)
        if not all(gathered):
            raise Interrupted
        return [result for of_rank in gathered for result in of_rank]

    @contextmanager
    def interrupted_together(self) -> Iterator[None]:
        """Raises `Interrupted` on every rank, once all have done what is within, if it was raised on one of them."""
        is_interrupted = False
        try:
            yield
        except Interrupted:
            is_interrupted = True
        if self.maximum(is_interrupted)[0]:
            raise Interrupted

    def tell_to_stop(self) -> None:
        """Leaves a message for the other ranks, which may be busy for a long time and poll for it."""
        if self.store is not None:
            self.store.set(_STOP_KEY, "")

    def were_told_to_stop(self) -> bool:
        return self.store is not None and self.store.check([_STOP_KEY])

    def gather(self, value: Any) -> list[Any]:
        """Every rank's value, in order of rank, on every rank."""
        if self.count == 1:
            return [value]
        values: list[Any] = [None] * self.count
        dist.all_gather_object(values, value)
        return values

    def broadcast_weights(self, model: nn.Module) -> None:
        """All ranks start from the weights of the first."""
        if self.count > 1:
            for tensor in model.state_dict().values():
                dist.broadcast(tensor, 0)

    def _reduce(self, values: Sequence[float], operation: Any) -> list[float]:
        if self.count == 1:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(tensor, operation)
        return tensor.tolist()


def local_rank() -> int:
    """Which of the processes on this machine this one is, as `torchrun` numbers them."""
    return int(os.environ.get("LOCAL_RANK", "0"))


def num_restarts() -> int:
    """How often `torchrun --max-restarts` has restarted the processes."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


@contextmanager
def connect(device_type: str, *, timeout_minutes: float = 30.0) -> Iterator[Ranks]:
    """Joins the other processes if `torchrun` started several, and explains why when the job fails."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield Ranks()
        return
    store, rank, count = next(iter(rendezvous("env://")))
    # torchrun --max-restarts keeps the store, in which the addresses of the processes that died are still written.
    store = PrefixStore(f"attempt-{num_restarts()}", store)
    dist.init_process_group(
        "cpu:gloo,cuda:nccl" if device_type == "cuda" else "gloo",
        store=store,
        rank=rank,
        world_size=count,
        timeout=timedelta(minutes=timeout_minutes),
    )
    ranks = Ranks(rank, count, dist.new_group(backend="gloo", timeout=_NO_LIMIT), store)
    try:
        yield ranks
    except Exception as error:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # torchrun ends all ranks at once; explain first
        # Skip destroy_process_group: it would block on dead ranks. The exit code makes torchrun end the others.
        explanation = _explain_failure(store, ranks, error)
        if _lost_contact(error):  # the fault is elsewhere, so this process's traceback does not matter
            raise UserError(explanation) from error
        if not isinstance(error, UserError):  # which the command shows
            print(explanation, file=sys.stderr, flush=True)
        raise
    dist.destroy_process_group()


def refuse_together(ranks: Ranks, message: str) -> NoReturn:
    """Ends all ranks, which have all detected the same error; the first one reports it."""
    raise UserError(message) if ranks.is_main else SystemExit(2)


def _lost_contact(error: Exception) -> bool:
    """Whether the error is that another rank no longer answers."""
    is_of_gloo = isinstance(error, RuntimeError) and "gloo" in str(error).lower()
    return isinstance(error, dist.DistError) or is_of_gloo


def _explain_failure(store: Any, ranks: Ranks, error: Exception) -> str:
    """Names the rank that failed and why, or the ranks that no longer respond, from what they leave in the store."""
    here = f"rank {ranks.rank} of {ranks.count} (process {os.getpid()} on {socket.gethostname()})"
    message = f"{type(error).__name__}: {str(error).strip() or 'no message'}"
    try:
        if not _lost_contact(error):
            store.set(f"failed/{ranks.rank}", message)
            return f"{here} failed and ends the job: {message}"
        store.set(f"lost/{ranks.rank}", "")
        time.sleep(_PATIENCE_SECONDS)
        causes = []
        for rank in (other for other in range(ranks.count) if other != ranks.rank):
            if store.check([f"failed/{rank}"]):
                causes.append(f"rank {rank} failed: {store.get(f'failed/{rank}').decode()}")
            elif not store.check([f"lost/{rank}"]):
                causes.append(f"rank {rank} does not respond: it was killed (out of memory?) or its machine is gone")
        return f"{here} stops: {'; '.join(causes) or message}"
    except Exception:  # the store died with the process that hosts it
        return f"{here} stops: {message} (rank 0, which coordinates the others, may be the one that died)"


def _buckets(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Neighbouring tensors of one type and device, up to a size."""
    bucket: list[Tensor] = []
    size = 0
    for tensor in tensors:
        like_first = not bucket or (tensor.dtype, tensor.device) == (bucket[0].dtype, bucket[0].device)
        if bucket and (not like_first or size + tensor.nbytes > _BUCKET_BYTES):
            yield bucket
            bucket, size = [], 0
        bucket.append(tensor)
        size += tensor.nbytes
    if bucket:
        yield bucket
