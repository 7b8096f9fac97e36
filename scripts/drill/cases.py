"""One case of a drill: a command in a process of its own, with a time limit, disturbed at a chosen moment.

Importing torch takes seconds and a case only milliseconds, so most cases are forks of a process that has imported
everything. It has used neither threads nor torch's kernels, so a fork is as good as a fresh process, and killing one is
a real SIGKILL.
"""

import os
import resource
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import psutil

LIMIT_SECONDS = 120.0  # a case takes a second or two; this one hangs
LEFTOVER_SECONDS = 10.0  # for the workers of a killed process to notice
_POLL_SECONDS = 0.002  # until it has been disturbed
_REST_SECONDS = 0.01  # when there is nothing to do but wait
_TRACEBACK = "Traceback (most recent call last)"


@dataclass(frozen=True)
class Disturbance:
    """A signal for the process, some seconds after it was started or after it has said something."""

    seconds: float
    signal: int = signal.SIGKILL
    after: str = ""
    listen_to: Path | None = None  # the file in which it must be said; default: this process's standard error


@dataclass(frozen=True)
class Ending:
    """How a process ended, and what it left behind."""

    code: int  # negative: the number of the signal that ended it
    said: str  # on its standard error
    wrote: bytes  # to its standard output
    seconds: float
    seconds_after_disturbance: float | None = None  # None: it ended before
    is_hung: bool = False
    num_leftovers: int = 0  # processes that it started and that are still there

    @property
    def was_disturbed(self) -> bool:
        return self.seconds_after_disturbance is not None

    def fault(self) -> str:
        """What no process may ever do, in words; empty if it has not."""
        if self.is_hung:
            return f"still running after {self.seconds:.0f} s"
        if _TRACEBACK in self.said:
            return f"traceback: {self.said.strip().splitlines()[-1][:300]}"
        if self.num_leftovers:
            return f"{self.num_leftovers} worker processes left behind"
        return ""

    def refusal(self) -> str | None:
        """The one line that says why, if it ended with exit code 2 and such a line; None otherwise."""
        lines = self.said.strip("\n").split("\n")
        marked = [line for line in lines if line.startswith(("train: ", "translate: "))]
        if self.code != 2 or len(marked) != 1 or lines[-1] != marked[0]:
            return None
        return marked[0].partition(": ")[2]


class Case:
    """A process, its output in files, and everything it starts in a session of its own."""

    def __init__(self, folder: Path, name: str, start: Callable[[int, int, int], int]) -> None:
        """`start` gets descriptors for standard input, output and error, and returns the process's number."""
        self.paths = [folder / f"{name}.{stream}" for stream in ("out", "err")]
        files = [path.open("wb") for path in self.paths]
        with open(os.devnull, "rb") as nothing:  # noqa: PTH123
            self.pid = start(nothing.fileno(), *(file.fileno() for file in files))
        for file in files:
            file.close()
        self.started = time.monotonic()

    def wait(self, disturbance: Disturbance | None = None, limit: float = LIMIT_SECONDS) -> Ending:
        try:
            status, ended, disturbed_at, is_hung = self._watch(disturbance, limit)
        except BaseException:  # the drill itself is stopped
            self._end_leftovers(patience=0.0)
            raise
        return Ending(
            code=os.waitstatus_to_exitcode(status),
            said=self._said(),
            wrote=self.paths[0].read_bytes(),
            seconds=ended - self.started,
            seconds_after_disturbance=None if disturbed_at is None else ended - disturbed_at,
            is_hung=is_hung,
            num_leftovers=self._end_leftovers(),
        )

    def _watch(self, disturbance: Disturbance | None, limit: float) -> tuple[int, float, float | None, bool]:
        """Its status and when it ended; when it was disturbed, if it was; and whether it had to be killed."""
        disturbed_at, said_at = None, None
        is_hung = False
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            now = time.monotonic()
            if pid:
                return status, now, disturbed_at, is_hung
            is_waiting = disturbance is not None and disturbed_at is None
            if disturbance and disturbed_at is None:
                if said_at is None and not disturbance.after:
                    said_at = self.started
                elif said_at is None and disturbance.after in self._said(disturbance.listen_to):
                    said_at = now
                if said_at is not None and now - said_at >= disturbance.seconds:
                    os.kill(self.pid, disturbance.signal)
                    disturbed_at = now
            if now - self.started > limit and not is_hung:
                is_hung = True
                os.kill(self.pid, signal.SIGKILL)
            time.sleep(_POLL_SECONDS if is_waiting else _REST_SECONDS)

    def _said(self, file: Path | None = None) -> str:
        return (file or self.paths[1]).read_text(encoding="utf-8", errors="replace")

    def _end_leftovers(self, patience: float | None = None) -> int:
        """Ends what is left of the session, once it has had the time to end by itself; returns how many there were."""
        deadline = time.monotonic() + (LEFTOVER_SECONDS if patience is None else patience)
        while (leftovers := _session(self.pid)) and time.monotonic() < deadline:
            time.sleep(0.02)
        for pid in leftovers:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return len(leftovers)


def forked(folder: Path, name: str, work: Callable[[], int], environment: dict[str, str] | None = None) -> Case:
    """A fork of this process that does the work in the folder and ends with the exit code it returns."""

    def start(*descriptors: int) -> int:
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            _become(folder, descriptors, environment or {}, work)
        return pid

    return Case(folder, name, start)


def fresh(folder: Path, name: str, arguments: Sequence[str]) -> Case:
    """A new Python process, as a user starts it."""

    def start(stdin: int, stdout: int, stderr: int) -> int:
        command = [sys.executable, *arguments]
        process = subprocess.Popen(
            command, cwd=folder, stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=True
        )
        process.returncode = 0  # waited for by its number
        return process.pid

    return Case(folder, name, start)


def _become(folder: Path, descriptors: Sequence[int], environment: dict[str, str], work: Callable[[], int]) -> NoReturn:
    code = 1
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
            signal.signal(number, signal.SIG_DFL if number != signal.SIGINT else signal.default_int_handler)
        for target, descriptor in enumerate(descriptors):
            os.dup2(descriptor, target)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.chdir(folder)
        os.environ.update(environment)
        code = work()
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _session(leader: int) -> list[int]:
    """The processes of a session, without those that have ended and only wait to be noticed."""
    members = []
    for pid in psutil.pids():
        with suppress(ProcessLookupError, psutil.Error):
            if os.getsid(pid) == leader and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                members.append(pid)
    return members
