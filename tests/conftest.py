"""Settings for all tests and for the commands that they start.

Every process computes in one thread: several of them run side by side, and on busy cores torch's threads would spend
most of their time waiting for each other. Ctrl-C is enabled, because shells let background jobs ignore it.
"""

import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from support.fake_command import TranslateCommand

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


@pytest.fixture(scope="session")
def bfloat16_products() -> None:
    """Skips where they kill the process: virtual machines may advertise instructions that they do not have.

    Torch multiplies small matrices itself; 64 x 64 is large enough for its library, oneDNN.
    """
    product = "import torch; a = torch.ones(64, 64, dtype=torch.bfloat16); a @ a"
    code = subprocess.run([sys.executable, "-c", product], check=False).returncode
    if code < 0:
        pytest.skip(f"products of bfloat16 matrices end with {signal.Signals(-code).name} on this machine")
    assert code == 0


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    from support.page_visits import CHROMIUM, FLAGS

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture
def translate(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> "TranslateCommand":
    """Runs the `translate` command in this process, in an empty folder, with a model that copies in capitals."""
    from support.fake_command import SlowTranslator
    from translator import translate_files
    from translator.translate import main

    monkeypatch.setattr(translate_files, "Translator", SlowTranslator)
    monkeypatch.setattr(translate_files, "find_weights", lambda run_dir, option: Path(__file__))
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object, stdin: bytes = b"") -> tuple[int, bytes, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as ending:  # argparse
            code = int(str(ending.code))
        sys.stdout.flush()
        captured = capfdbinary.readouterr()
        return code, captured.out, captured.err.decode()

    return run
