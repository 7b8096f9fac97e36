"""The command itself, killed without warning and resumed, ends with the same weights as one that was left in peace."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from safetensors.torch import load_file
from training_toys import same

REPOSITORY = Path(__file__).parents[2]
OPTIONS = [
    "experiment=smoke",
    "trainer.max_updates=20",
    "trainer.validate_every=8",
    "trainer.save_every=3",
    "trainer.log_every=1",
    "trainer.ema_decay=0.9",
    "trainer.update_tokens=900",
    "tokenizer.sampling=0.1",
    "trainer.best_metric=loss",
    "trainer.threads=1",
]


def train(folder: Path, *options: str, kill_after: int | None = None) -> str:
    """What the command wrote; with `kill_after` it is killed some moment after it reported that update."""
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "translator.train", *options]
    with (folder / "output.txt").open("w") as output:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + 300
        while process.poll() is None and time.monotonic() < deadline:
            text = (folder / "output.txt").read_text()
            reached = [int(number) for number in re.findall(r"^update (\d+) ", text, re.MULTILINE)]
            if kill_after is not None and max(reached, default=0) >= kill_after:
                time.sleep(random.uniform(0, 0.3))
                break
            time.sleep(0.02)
    finally:
        process.kill()
        code = process.wait()
    text = (folder / "output.txt").read_text()
    assert code == (0 if kill_after is None else -signal.SIGKILL), text
    return text


@pytest.mark.slow
@pytest.mark.parametrize("model", ["transformer_tiny", "lstm_small"])
def test_killed_and_resumed_is_the_same_bit_for_bit(model: str, tmp_path: Path) -> None:
    options = [*OPTIONS, f"model={model}"]
    train(tmp_path, *options, "run_dir=whole")
    first, second = sorted(random.sample(range(3, 19), 2))
    print(f"killed after updates {first} and {second}")  # shown when the test fails
    train(tmp_path, *options, "run_dir=killed", kill_after=first)
    train(tmp_path, "resume=killed", kill_after=second)
    text = train(tmp_path, "resume=killed")
    assert "update 20: validation" in text
    whole, resumed = (tmp_path / name / "checkpoints" / "step-00000020" for name in ("whole", "killed"))
    for name in ("model", "ema", "optimizer"):
        expected, found = (load_file(path / f"{name}.safetensors") for path in (whole, resumed))
        assert expected
        assert same(expected, found), f"{name} differs"
    final = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "killed"))
    assert same(*final)
