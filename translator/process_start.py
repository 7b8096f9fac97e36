"""When this process was started: imports take seconds, which count towards `trainer.max_time` too."""

import os
import time
from contextlib import suppress
from pathlib import Path

_IMPORTED = time.monotonic()  # soon after the start: `translator/__init__.py` imports this module first
_LONGEST_START = 600.0  # seconds until then; a longer time means that the system's value is unusable


def process_started() -> float:
    """On the clock of `time.monotonic`; except on Linux, when the package was imported."""
    with suppress(OSError, ValueError, IndexError, AttributeError):
        fields = Path("/proc/self/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        since_boot = int(fields[19]) / os.sysconf("SC_CLK_TCK")  # field 22 of proc(5), starttime
        started = time.monotonic() - (time.clock_gettime(time.CLOCK_BOOTTIME) - since_boot)
        if started <= _IMPORTED <= started + _LONGEST_START:
            return started
    return _IMPORTED
