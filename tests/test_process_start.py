"""The moment from which `trainer.max_time` counts."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.processes import environment
from translator import process_start


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux says when a process was started")
def test_the_time_before_the_import_counts() -> None:
    program = (
        "import time; time.sleep(1); from translator.process_start import process_started as started;"
        "print(time.monotonic() - started())"
    )
    before = time.monotonic()
    result = subprocess.run(
        [sys.executable, "-c", program], env=environment(), capture_output=True, text=True, check=True
    )
    assert 1.0 <= float(result.stdout) <= time.monotonic() - before + 0.05


def test_on_other_systems_time_begins_with_the_import(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(path: Path, **options: object) -> str:
        raise FileNotFoundError(path)

    monkeypatch.setattr(Path, "read_text", absent)
    assert process_start.process_started() == process_start._IMPORTED


def test_an_implausible_start_time_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = ["R", *["0"] * 60]  # started at boot
    monkeypatch.setattr(Path, "read_text", lambda path, **options: f"1 (a name) {' '.join(fields)}")
    monkeypatch.setattr(process_start.time, "clock_gettime", lambda clock: 1e6)
    assert process_start.process_started() == process_start._IMPORTED
