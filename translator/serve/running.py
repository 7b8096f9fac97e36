"""Runs uvicorn on our own socket until a signal arrives and all accepted requests are answered."""

import errno
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from translator.errors import UserError
from translator.serve.service import Service

SIGNALS = (signal.SIGINT, signal.SIGTERM)
LAST_STEP = 10.0  # seconds in which an abandoned search must end


class Server(uvicorn.Server):
    """After the first signal, ends once all accepted requests are answered; a second one ends the process at once."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit:
            os._exit(128 + sig)
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Unlike uvicorn's, does not raise the signal again at the end, so that the exit code is 0."""
        if threading.current_thread() is not threading.main_thread():  # in tests
            yield
            return
        earlier = {number: signal.signal(number, self.handle_exit) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in earlier.items():
                signal.signal(number, handler)


def listen(host: str, port: int) -> socket.socket:
    """A socket bound to the address, so that a wrong address is reported before the models are loaded."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        if sys.platform != "win32":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
            raise UserError(f"--host {host}: no such address ({error.strerror}); give one of this machine") from None
        raise UserError(
            f"--port {port}: cannot listen on {host} ({error.strerror}); give another port, or 0 for any free one"
        ) from None
    return listener


def address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def configuration(app: ASGIApp, service: Service) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        lifespan="off",
        access_log=False,  # addresses and paths are not logged; the metrics have the counts
        log_config=None,
        log_level="warning",
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=max(1, round(service.options.drain)),
    )


def serve(app: ASGIApp, service: Service, listener: socket.socket) -> None:
    """Serves until a signal arrives."""
    service.batcher.start()
    try:
        Server(configuration(app, service)).run([listener])
    finally:
        service.batcher.close(LAST_STEP)
