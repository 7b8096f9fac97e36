"""What holds for all tests, and for the commands that they start.

Every process computes in one thread: several of them run side by side, and threads of torch that wait for each other on
busy cores are many times slower than no threads at all. Ctrl-C is not ignored, as shells arrange for background jobs.
"""

import os
import signal
from pathlib import Path

import pytest

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is loaded
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def multi30k() -> Path:
    """The folder with train.en.gz, train.de.gz, val.en.gz and so on."""
    folder = os.environ.get("TRANSLATOR_MULTI30K")
    if not folder:
        pytest.skip("TRANSLATOR_MULTI30K does not name a folder with the files of Multi30k (train.en.gz …)")
    return Path(folder)
