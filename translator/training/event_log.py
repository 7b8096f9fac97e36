"""The TensorBoard log of a run, which may stop when the disk is full but never stops the run."""

import threading
from collections.abc import Callable
from pathlib import Path

from torch.utils.tensorboard import SummaryWriter

from translator.files.explain import reason
from translator.training.interfaces import Notify


class EventLog:
    """Writes events as long as the disk allows; the first failure is reported, and nothing is written after it."""

    def __init__(self, folder: Path, notify: Notify, *, purge_step: int | None) -> None:
        self.folder = folder
        self._notify = notify
        self._writer: SummaryWriter | None = None
        _silence_writer_threads()
        try:
            self._writer = SummaryWriter(str(folder), purge_step=purge_step)
        except OSError as error:
            self._give_up(error)

    def write(self, action: Callable[[SummaryWriter], object]) -> None:
        if self._writer is not None:
            try:
                action(self._writer)
            except OSError as error:
                self._give_up(error)

    def flush(self) -> None:
        self.write(SummaryWriter.flush)

    def close(self) -> None:
        self.write(SummaryWriter.close)
        self._writer = None

    def _give_up(self, error: OSError) -> None:
        self._writer = None
        self._notify(f"could not write to {self.folder}: {reason(error)}. Training goes on without TensorBoard")


def _silence_writer_threads() -> None:
    """TensorBoard writes in a thread that keeps its exception for the next call, but also prints its traceback."""
    previous = threading.excepthook
    if getattr(previous, "silences_writer_threads", False):
        return

    def hook(arguments: threading.ExceptHookArgs) -> None:
        is_of_tensorboard = type(arguments.thread).__module__.startswith("tensorboard.")
        if not (is_of_tensorboard and isinstance(arguments.exc_value, OSError)):
            previous(arguments)

    hook.silences_writer_threads = True  # type: ignore[attr-defined]
    threading.excepthook = hook
