"""Measures the training loop: speed relative to the bare step, memory, checkpoints and validation.

    python scripts/bench_training.py [--data PREFIX --valid PREFIX] [--run DIR]

The loop is the real one, including data loading and logging; the bare step is forward, backward, clipping and Adam on
prepared batches. They take turns in one process. Without --data it uses Multi30k from the folder given by the
environment variable TRANSLATOR_MULTI30K (train.en.gz, val.en.gz and so on), or the demo corpus if that is not set. An
untrained model decodes up to the length limit, so pass a finished run with --run for a realistic cost of
validation.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import psutil
import torch

from bench_common import DEFAULT_DATA, NUM_WARM_UP, VOCAB_SIZE, multi30k, our_step
from bench_data import MEGABYTE, show
from translator import cli
from translator.build.data import PreparedData, build_loader, prepare_data
from translator.build.training import build_trainer
from translator.build.validation import build_validator
from translator.config import Config
from translator.data.loader import WINDOW
from translator.kernels.allocator import keep_memory
from translator.models.base import Seq2Seq
from translator.runs.directory import RunDirectory
from translator.runs.loading import load_run
from translator.runs.model import build_model
from translator.training.distributed import Ranks
from translator.training.monitor import Monitor, UpdateReport
from translator.training.precision import Execution
from translator.training.random_state import seed_everything
from translator.training.trainer import Trainer

CPU = Execution(torch.device("cpu"))
SMALL_MODEL = ["model.model_size=64", "model.encoder_layers=1", "model.decoder_layers=1", "trainer.batch_tokens=256"]
MEMORY_UPDATES = range(100, 1_101, 250)  # updates after which memory is measured


class TimedMonitor(Monitor):
    """The usual monitor, which then calls `after_update`."""

    def __init__(self, folder: Path, log_every: int) -> None:
        self.terminal = (folder / "terminal.txt").open("w")
        super().__init__(folder / "tensorboard", log_every=log_every, stream=self.terminal)
        self.after_update: Callable[[int], None] = lambda update: None

    def update(self, report: UpdateReport) -> None:
        super().update(report)
        self.after_update(report.update)

    def close(self) -> None:
        super().close()
        self.terminal.close()


class Stopwatch:
    def __init__(self) -> None:
        self.last = time.perf_counter()

    def lap(self) -> float:
        """Seconds since the last lap."""
        before, self.last = self.last, time.perf_counter()
        return self.last - before


def configure(options: argparse.Namespace, *overrides: str) -> Config:
    """The configuration of `transformer_tiny` with 6,000 pieces."""
    text = ["data=text", f"data.train={options.data}", f"data.valid={options.valid}"]
    corpus = text if options.data else ["data=demo"]
    size = f"tokenizer.vocab_size={VOCAB_SIZE if options.data else 2_000}"
    common = ["model=transformer_tiny", size, "trainer.batch_tokens=4096", "trainer.log_every=10"]
    result: Config = cli.main(lambda config: config, [*corpus, *common, *overrides])[0]
    return result


@contextmanager
def training(config: Config, data: PreparedData) -> Iterator[tuple[Trainer, TimedMonitor]]:
    """A new run in a temporary folder, assembled as in `translator.train`."""
    seed_everything(config.seed)
    model = build_model(config.model, data.tokenizer.source_vocab_size, data.tokenizer.target_vocab_size)
    validator = build_validator(config, data, model, CPU, Ranks())
    assert validator is not None
    with tempfile.TemporaryDirectory() as folder, build_loader(config, data, Ranks()) as loader:
        monitor = TimedMonitor(Path(folder), config.trainer.log_every)
        yield (
            build_trainer(
                config,
                model=model,
                loader=loader,
                validator=validator.limited(slice(1)),
                monitor=monitor,
                execution=CPU,
                ranks=Ranks(),
                run=RunDirectory(Path(folder)),
                work_after_fit=0.0,
            ),
            monitor,
        )
        monitor.close()


def measure_memory(options: argparse.Namespace) -> None:
    """Trains a small model with logging and checkpoints. Runs first, before there is freed memory to reuse."""
    first, last = MEMORY_UPDATES[0], MEMORY_UPDATES[-1]
    limits = [f"trainer.max_updates={last}", "trainer.validate_every=10000", "trainer.save_every=100"]
    config = configure(options, *SMALL_MODEL, *limits)
    resident: dict[int, float] = {}

    def read(update: int) -> None:
        if update in MEMORY_UPDATES:
            resident[update] = psutil.Process().memory_info().rss / MEGABYTE

    with training(config, prepare_data(config)) as (trainer, monitor):
        monitor.after_update = read
        trainer.fit()
    print("resident memory, small model, a checkpoint every 100 updates")
    for update, megabytes in resident.items():
        show(f"after update {update:,}", f"{megabytes:,.1f} MB")
    show(f"growth over {last - first:,} updates", f"{resident[last] - resident[first]:+,.1f} MB", "wanted: flat")


def bare_step(config: Config, data: PreparedData) -> Callable[[int], None]:
    """The training step alone, on the prepared batch of the given update."""
    with build_loader(config, data, Ranks()) as loader:
        batches = list(islice(loader, config.trainer.max_updates))
    model = build_model(config.model, data.tokenizer.source_vocab_size, data.tokenizer.target_vocab_size)
    step = our_step(model, config.optim.label_smoothing)
    return lambda update: step(batches[update - 1])


def measure_loop(config: Config, data: PreparedData) -> float:
    """Alternates updates with bare steps, so that noise affects both alike; returns the loop's target tokens/s."""
    step, watch = bare_step(config, data), Stopwatch()
    loop, bare = [], []

    def after_update(update: int) -> None:
        loop.append(watch.lap())
        step(update)
        bare.append(watch.lap())

    with training(config, data) as (trainer, monitor):
        monitor.after_update = after_update
        num_tokens = trainer.fit().progress.num_tokens
    loop, bare = loop[NUM_WARM_UP:], bare[NUM_WARM_UP:]
    rate = num_tokens * len(loop) / config.trainer.max_updates / sum(loop)
    show("target tokens/s of the loop", f"{rate:,.0f}")
    show("the loop as a share of the bare step", f"{sum(bare) / sum(loop):.1%}", "wanted: 95 % or more")
    middle = statistics.median(b / a for a, b in zip(loop, bare, strict=True))
    show("the same, median of the updates", f"{middle:.1%}")
    return rate


def measure_sampled_loop(config: Config, data: PreparedData) -> None:
    """Runs all bare steps before the loop, which would otherwise resample sentences during a bare step."""
    step, watch = bare_step(config, data), Stopwatch()
    bare = []
    for update in range(1, config.trainer.max_updates + 1):
        step(update)
        bare.append(watch.lap())
    loop: list[float] = []
    with training(config, data) as (trainer, monitor):
        monitor.after_update = lambda update: loop.append(watch.lap())
        trainer.fit()
    share = sum(bare[NUM_WARM_UP:]) / sum(loop[NUM_WARM_UP:])
    show("the loop as a share of the bare step", f"{share:.1%}", "wanted: 95 % or more")


def measure_checkpoint(trainer: Trainer) -> None:
    store = trainer.checkpoints
    newest = store.newest(print)
    assert newest is not None
    tensors = {path.stem: newest.tensors(path.stem) for path in newest.path.glob("*.safetensors")}
    start = time.perf_counter()
    saved = store.save(newest.step + 1, tensors, newest.state, None)
    show("seconds to save, flushed to the disk", f"{time.perf_counter() - start:.2f}")
    start = time.perf_counter()
    trainer.resume()
    show("seconds to load, checksums included", f"{time.perf_counter() - start:.2f}")
    size = sum(path.stat().st_size for path in saved.iterdir()) / MEGABYTE
    count = sum(parameter.numel() for parameter in trainer.model.parameters())
    show(f"size, {count:,} parameters with Adam's moments", f"{size:,.1f} MB")


def measure_validation(config: Config, data: PreparedData, model: Seq2Seq, tokens_per_second: float) -> None:
    """A full validation: loss, beam search, scores and attention plots."""
    validator = build_validator(config, data, model, CPU, Ranks())
    assert validator is not None
    result = validator(model)
    assert result.scores is not None
    num_sentences, bleu = len(validator.sources), result.scores.values["bleu"]
    print(f"a validation, {num_sentences:,} sentences, beam {config.decode.beam_size}, BLEU {bleu:.1f}")
    show("seconds for 1,000 sentences", f"{result.seconds * 1_000 / num_sentences:.1f}")
    epoch = sum(int(table.target_lengths.sum()) for table in data.train_tables) / tokens_per_second
    show("the whole as a share of an epoch's time", f"{result.seconds / epoch:.1%}", f"(an epoch: {epoch:.0f} s)")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", default=multi30k("train"), metavar="PREFIX", help=f"PREFIX.en and PREFIX.de ({DEFAULT_DATA})"
    )
    parser.add_argument("--valid", default=multi30k("val"), metavar="PREFIX", help="the same for validation")
    parser.add_argument("--run", type=Path, metavar="DIR", help="a finished run, whose validation is timed")
    parser.add_argument("--batches", type=int, default=50, help="timed turns of the loop (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


def main() -> None:
    options = parse_arguments()
    keep_memory()
    torch.set_num_threads(options.threads)
    measure_memory(options)

    config = configure(options, f"trainer.max_updates={NUM_WARM_UP + options.batches}")
    data = prepare_data(config)
    print(f"the loop, {options.batches} updates, {options.threads} threads")
    tokens_per_second = measure_loop(config, data)
    # One window of updates: sentences are resampled a window at a time, so its cost is counted about once.
    sampled = configure(options, f"trainer.max_updates={NUM_WARM_UP + WINDOW}", "tokenizer.sampling=0.1")
    print(f"with BPE-dropout of 0.1, {WINDOW} updates")
    measure_sampled_loop(sampled, data)
    with training(configure(options, "trainer.max_updates=2"), data) as (trainer, _):
        trainer.fit()
        print("a checkpoint")
        measure_checkpoint(trainer)
        if options.run:
            finished = load_run(options.run, CPU.device)
            measure_validation(finished.config, prepare_data(finished.config), finished.model, tokens_per_second)
        else:
            measure_validation(config, data, trainer.model, tokens_per_second)


if __name__ == "__main__":
    main()
