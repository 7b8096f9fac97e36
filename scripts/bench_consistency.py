"""Measures what optim.loss=consistency costs: CPU time of an update relative to one with the plain loss.

    python scripts/bench_consistency.py [--data PREFIX] [--batches N] [--rounds N] [--threads N]

Whole updates (forward, backward, clipping, optimizer) of both Multi30k recipes, with their model, optimizer, batch size
and 6,000 pieces. Each loss has a model of its own; they take turns on the same batches. Process time is hardly affected
by other programs, but with several threads it includes their waiting for each other.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch

from bench_common import NUM_WARM_UP, VOCAB_SIZE, load_batches, parse_arguments
from translator import cli
from translator.config import Config
from translator.data.batching import Batch
from translator.kernels.allocator import keep_memory
from translator.runs.model import build_model
from translator.training.distributed import Ranks
from translator.training.interfaces import Moment
from translator.training.objectives import build_loss
from translator.training.optimizer import build_optimizer
from translator.training.precision import Execution
from translator.training.random_state import seed_everything
from translator.training.updater import Updater

RECIPES = ["multi30k_transformer", "multi30k_lstm"]
LOSSES = ["cross_entropy", "consistency"]


def make_update(config: Config) -> Callable[[Batch], float]:
    """An update as training makes it; it returns its CPU seconds."""
    seed_everything(config.seed)
    model, optim = build_model(config.model, VOCAB_SIZE, VOCAB_SIZE).train(), config.optim
    options = {name: getattr(optim, name) for name in ("name", "learning_rate", "betas", "eps", "weight_decay")}
    updater = Updater(
        model=model,
        loss=build_loss(optim),
        optimizer=build_optimizer(model, **options),
        execution=Execution(torch.device("cpu")),
        ranks=Ranks(),
        notify=print,
        clip_norm=optim.clip_norm,
    )

    def update(batch: Batch) -> float:
        start = time.process_time()
        updater([batch], learning_rate=1e-4, moment=Moment(share_done=1.0))
        return time.process_time() - start

    return update


def measure(recipe: str, options: argparse.Namespace) -> None:
    configs: list[Config] = [
        cli.main(lambda config: config, [f"experiment={recipe}", f"optim.loss={loss}"])[0] for loss in LOSSES
    ]
    batches, _ = load_batches(options, batch_tokens=configs[0].trainer.batch_tokens)
    plain, consistency = (make_update(config) for config in configs)
    for batch in batches[:NUM_WARM_UP]:
        plain(batch), consistency(batch)
    timed = batches[NUM_WARM_UP:]
    rounds = [[(plain(batch), consistency(batch)) for batch in timed] for _ in range(options.rounds)]
    best = [[min(pair[which] for pair in turns) for turns in zip(*rounds, strict=True)] for which in (0, 1)]
    ratios = [doubled / single for one in rounds for single, doubled in one]
    seconds, tokens = sum(best[0]) / len(timed), sum(batch.num_target_tokens for batch in timed) / len(timed)
    print(
        f"  {recipe:<21} {sum(best[1]) / sum(best[0]):4.2f} with the best times, {statistics.median(ratios):4.2f} in "
        f"the median (plain: {seconds:.3f} s for {tokens:,.0f} target tokens; wanted: at most 2.10)"
    )


def main() -> None:
    options = parse_arguments(__doc__)
    torch.set_num_threads(options.threads)
    keep_memory()
    print(
        f"CPU time of an update with consistency, relative to a plain one; {options.threads} threads, "
        f"{options.batches} batches, {options.rounds} rounds"
    )
    for recipe in RECIPES:
        measure(recipe, options)


if __name__ == "__main__":
    main()
