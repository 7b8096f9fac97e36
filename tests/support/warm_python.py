"""Programs that run in separate processes, but with torch and the package already imported.

Importing them takes seconds of processor time in every process that is started. Here a server imports them once, and
each program runs in a copy of the server made by fork. It has its own arguments, environment, folder, standard streams
and signals, and ends as any interpreter does. Programs that depend on when something is imported, or on the state of a
fresh process, should be started with `subprocess`.
"""

import array
import atexit
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import IO, Any

from support.processes import environment

CLOSED = -1
PRELOADED = (
    "support.fake_command",
    "support.numbered_batches",
    "support.training_toys",
    "torch._dynamo",  # otherwise imported with the first optimizer
    "translator.train",
)


class Program:
    """A running program with nothing to read, a pipe as its output and a file for its messages, unless given others.

    The streams are given as file descriptors, or as `CLOSED`.
    """

    def __init__(
        self,
        code: str,
        *arguments: str,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: int | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
    ) -> None:
        request: dict[str, Any] = {
            "code": code,
            "arguments": ["-c", *arguments],
            "folder": str(cwd or Path.cwd()),
            "environment": dict(env or environment()),
        }
        reading, writing = os.pipe()
        self.stdout: IO[bytes] = os.fdopen(reading, "rb")
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115, closed when the program has ended
        self._connection, theirs = socket.socketpair()
        with Path(os.devnull).open("rb") as nothing, os.fdopen(writing, "wb") as output, theirs:
            defaults = [nothing.fileno(), output.fileno(), self._stderr.fileno()]
            given = [stdin, stdout, stderr]
            request["closed"] = [number for number, stream in enumerate(given) if stream == CLOSED]
            streams = [b if a in (None, CLOSED) else a for a, b in zip(given, defaults, strict=True)]
            with tempfile.TemporaryFile() as file:
                file.write(json.dumps(request).encode())
                file.seek(0)
                socket.send_fds(_server(), [b"!"], [file.fileno(), theirs.fileno(), *streams])
            self.pid = self._receive(timeout=600)  # the server may have to start first, on a busy machine
        self.returncode: int | None = None

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        """Ends the program if it is still running."""
        if self.returncode is None:
            self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float) -> int:
        """The exit code, or the negative number of the signal that ended the program."""
        if self.returncode is None:
            try:
                self.returncode = self._receive(timeout)
            except TimeoutError:
                self.kill()
                raise
        return self.returncode

    def messages(self) -> str:
        """What has been written to standard error so far."""
        self._stderr.seek(0)
        return self._stderr.read().decode()

    def finish(self, timeout: float = 120) -> "subprocess.CompletedProcess[str]":
        """Waits for the end. Programs that write more than a pipe holds must have been read before."""
        code = self.wait(timeout)
        with self.stdout, self._stderr, self._connection:
            return subprocess.CompletedProcess([], code, self.stdout.read().decode(), self.messages())

    def _receive(self, timeout: float) -> int:
        ready, _, _ = select.select([self._connection], [], [], timeout)
        if not ready:
            raise TimeoutError(f"the program did not answer within {timeout} s")
        number = array.array("q")
        number.frombytes(self._connection.recv(number.itemsize))
        return number[0]


def run(code: str, *arguments: str, timeout: float = 120, **options: Any) -> "subprocess.CompletedProcess[str]":
    return Program(code, *arguments, **options).finish(timeout)


@cache
def _server() -> socket.socket:
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-m", "support.warm_python", str(theirs.fileno())]
    process = subprocess.Popen(command, env=environment(), pass_fds=[theirs.fileno()])
    theirs.close()
    atexit.register(process.wait)  # called after the next one, which ends the server
    atexit.register(ours.close)
    return ours


# ------------------------------------------------------------------------------------------------- in the server


def serve(requests: socket.socket) -> dict[str, Any]:
    """Makes a copy of this process for each request. Returns the request in the copy, and never in the server."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(requests, 1, 5)
        if not message:
            sys.exit()  # the tests are over
        while _has_ended_copies():
            pass
        if os.fork() == 0:
            requests.close()
            return _supervise(*descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def _has_ended_copies() -> bool:
    try:
        return os.waitpid(-1, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return False


def _supervise(file: int, connection: int, *streams: int) -> dict[str, Any]:
    """Starts the copy that runs the program, reports its number and how it ended."""
    with os.fdopen(file, "rb") as stored, socket.socket(fileno=connection) as answers:
        pid = os.fork()
        if pid:
            for stream in streams:
                os.close(stream)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            answers.send(array.array("q", [pid]).tobytes())
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            answers.send(array.array("q", [code]).tobytes())
            os._exit(0)
        request: dict[str, Any] = json.load(stored)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    return request


def become(request: dict[str, Any]) -> None:
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.argv = request["arguments"]
    for number in request["closed"]:
        os.close(number)
        setattr(sys, ("stdin", "stdout", "stderr")[number], None)  # as Python does when it starts with a closed one


if __name__ == "__main__":
    for name in PRELOADED:
        importlib.import_module(name)
    gc.freeze()  # no copy needs to look for garbage in what it shares with the server
    request = serve(socket.socket(fileno=int(sys.argv[1])))
    become(request)
    exec(request["code"], {"__name__": "__main__"})
