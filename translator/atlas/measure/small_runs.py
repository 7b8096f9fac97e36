"""Small Transformers trained on the demo corpus, one after the other, for measurements that compare trainings.

Each run is an ordinary `python -m translator.train`; its options are kept with the figures, so anybody can repeat it.
"""

import argparse
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from translator.build.data import open_splits
from translator.errors import UserError
from translator.files.explain import require_folder
from translator.runs.directory import RunDirectory
from translator.schema.data import DemoDataConfig

NUM_TRAIN, NUM_VALID, NUM_TEST = 20_000, 200, 4_000
COMMON = (
    "experiment=demo_transformer",
    "data=text",
    "model.model_size=64",
    "model.feedforward_size=128",
    "decode=greedy",
    "trainer.max_time=null",
    "trainer.threads=1",
    "trainer.num_samples=0",
    "trainer.report=false",
    "trainer.keep_best=1",
)


@dataclass(frozen=True)
class SmallRun:
    """`name` is its folder within the working folder; `options` are those besides `COMMON`."""

    name: str
    options: tuple[str, ...]


def add_work_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--work", type=Path, required=True, metavar="DIR", help="corpus and runs go there; finished runs are used again"
    )


def prepare_corpus(work: Path) -> Path:
    """The folder of the demo corpus within the working folder, generated if it is not there yet."""
    require_folder("--work", work)
    folder = work / "demo"
    open_splits(DemoDataConfig(folder=str(folder), num_train=NUM_TRAIN, num_valid=NUM_VALID, num_test=NUM_TEST))
    return folder


def train(work: Path, run: SmallRun) -> RunDirectory:
    """The finished run; one that is finished already is used as it is, one that was interrupted goes on."""
    directory = RunDirectory(work / run.name)
    if directory.metrics.exists():
        return directory
    places = (
        f"data.train={work}/demo/train",
        f"data.valid={work}/demo/valid",
        f"data.cache_dir={work}/cache",
        f"run_dir={directory.path}",
        "resume=auto",
    )
    print(f"{directory.path}: training with {' '.join(run.options)}", file=sys.stderr, flush=True)
    code = subprocess.run([sys.executable, "-m", "translator.train", *COMMON, *run.options, *places]).returncode
    if code:
        raise UserError(f"{directory.path}: training ended with exit code {code}; the reason is above")
    return directory


def command(run: SmallRun) -> str:
    """The training command as it is shown to readers: without the places of files."""
    return " ".join(["python -m translator.train", *COMMON, *run.options])
