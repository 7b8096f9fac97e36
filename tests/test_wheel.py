"""The package works when installed from a wheel, outside the repository."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]


@pytest.mark.slow
def test_training_from_a_wheel_in_an_empty_directory(tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path / "dist", REPOSITORY],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if built.returncode != 0:
        pytest.skip(f"the wheel cannot be built here: {built.stderr.strip().splitlines()[-1:]}")
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    site = tmp_path / "site"
    subprocess.run([sys.executable, "-m", "pip", "install", "--no-deps", "--target", site, wheel], check=True)
    empty = tmp_path / "empty"
    empty.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(site)}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments], cwd=empty, env=environment, capture_output=True, text=True, check=False
        )

    assert run("-c", "import translator; print(translator.__file__)").stdout.startswith(str(site))
    trained = run("-m", "translator.train", "experiment=smoke", "model=lstm_small")
    assert trained.returncode == 0, trained.stderr
    assert (empty / "runs" / "latest" / "metrics.json").exists()
