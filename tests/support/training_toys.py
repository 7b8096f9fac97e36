"""A small model, a small corpus and a resumable loader, to run the real training loop on."""

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from translator.data.batching import Batch
from translator.models.base import Decoded, Kept, Memory, Seq2Seq, State, Step
from translator.training.checkpoint import CheckpointStore
from translator.training.distributed import Ranks
from translator.training.ema import ExponentialMovingAverage
from translator.training.monitor import Monitor, UpdateReport
from translator.training.objectives.consistency import ConsistencyLoss
from translator.training.objectives.cross_entropy import CrossEntropy
from translator.training.optimizer import build_optimizer
from translator.training.precision import Execution
from translator.training.progress import TrainerSettings
from translator.training.schedule import LearningRate
from translator.training.signals import Interruption
from translator.training.trainer import Trainer
from translator.training.validation import Validator
from translator.training.validation_result import TextScores

VOCAB_SIZE = 23


class ToyModel(Seq2Seq):
    """The mean of the source plus the previous piece, through one hidden layer; embedding and output are tied."""

    def __init__(self, size: int = 12, dropout: float = 0.0) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCAB_SIZE, size)
        self.hidden = nn.Linear(size, size)
        self.norm = nn.LayerNorm(size)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(size, VOCAB_SIZE)
        self.output.weight = self.embedding.weight

    def encode(self, source: Tensor, source_mask: Tensor) -> Memory:
        return Memory(self.embedding(source), source_mask)

    def forward(
        self,
        source: Tensor,
        source_mask: Tensor,
        target_in: Tensor,
        *,
        teacher_forcing: float = 1.0,
        kept: Kept | None = None,
        need_weights: bool = False,
    ) -> Decoded:
        memory = self.encode(source, source_mask)
        previous = self.embedding(target_in)
        if kept is not None:
            memory = memory._replace(states=memory.states * kept.source.unsqueeze(-1))
            previous = previous * kept.target.unsqueeze(-1)
        mask = memory.mask.unsqueeze(-1).to(memory.states)
        mean = (memory.states * mask).sum(1) / mask.sum(1)  # (B, D)
        hidden = torch.tanh(self.hidden(self.dropout(previous + mean[:, None])))
        return Decoded(self.norm(hidden))

    def project(self, states: Tensor) -> Tensor:
        return self.output(states)

    @property
    def output_weight(self) -> Tensor:
        return self.output.weight

    @property
    def output_bias(self) -> Tensor | None:
        return self.output.bias

    def start(self, memory: Memory) -> State:
        raise NotImplementedError

    def step(self, tokens: Tensor, state: State, *, need_weights: bool = False) -> Step:
        raise NotImplementedError


class CutByContent(ConsistencyLoss):
    """Cuts every third piece of the vocabulary, so that what is cut does not depend on the batch it is in."""

    def _kept(self, batch: Any) -> Kept:
        sides = (batch.source, batch.target_in)
        return Kept(*(torch.cat([torch.ones_like(ids, dtype=torch.bool), ids % 3 > 0]) for ids in sides))


def make_model(seed: int = 1, **options: Any) -> ToyModel:
    torch.manual_seed(seed)
    return ToyModel(**options)


def make_batch(rows: range, seed: int = 0) -> Batch:
    """Sentences that depend only on their row, so that any split of the rows is the same corpus."""
    sources, targets = [], []
    for row in rows:
        rng = np.random.default_rng([seed, row])
        source = rng.integers(4, VOCAB_SIZE, rng.integers(1, 7))
        sources.append(np.append(source, 3))
        targets.append(source[::-1][: rng.integers(1, 7)])
    return Batch.from_rows(sources, targets, np.array(rows))


class ToyLoader:
    """Batches of equal size in an order set by (seed, epoch); the ranks split the rows of each batch."""

    def __init__(self, num_batches: int = 6, rows: int = 8, seed: int = 0, ranks: Ranks | None = None) -> None:
        self.num_batches, self.rows, self.seed = num_batches, rows, seed
        self.ranks = ranks or Ranks()
        self.epoch, self.position = 0, 0

    def __iter__(self) -> Iterator[Batch]:
        while True:
            order = np.random.default_rng([self.seed, self.epoch]).permutation(self.num_batches)
            first = int(order[self.position]) * self.rows
            share = self.rows // self.ranks.count
            first += share * self.ranks.rank
            self.position += 1
            if self.position == self.num_batches:
                self.epoch, self.position = self.epoch + 1, 0
            yield make_batch(range(first, first + share), self.seed)

    def state_dict(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "position": self.position}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.epoch, self.position = state["epoch"], state["position"]


def make_validator(model: nn.Module, ranks: Ranks | None = None, scores: list[float] | None = None) -> Validator:
    """A real loss on held-out rows; `scores` are the fake BLEU values of successive validations."""
    values = iter(scores or [])

    def score(hypotheses: list[str], references: list[str], sources: list[str]) -> TextScores:
        torch.rand(3)  # a metric that uses the global RNG must not affect training
        return TextScores({"bleu": next(values, 1.0), "chrf": 2.0}, {"bleu": "signature"}, {"empty": 0.0})

    return Validator(
        loss=CrossEntropy(0.1),
        batches=[make_batch(range(1000 + 7 * i, 1007 + 7 * i)) for i in range(3)],
        execution=Execution(torch.device("cpu")),
        ranks=ranks or Ranks(),
        sources=["a b", "c", "d e f"],
        references=["A B", "C", "D E F"],
        translate_lines=lambda lines: [line.upper() for line in lines],
        score=score,
        num_samples=2,
    )


def make_trainer(folder: Path, **changes: Any) -> Trainer:
    """A trainer with everything enabled that a checkpoint must save; `changes` replaces parts or settings."""
    options: dict[str, Any] = {"max_updates": 12, "validate_every": 5, "best_metric": "loss", "update_tokens": 60}
    fields = set(TrainerSettings.__dataclass_fields__)
    options |= {key: changes.pop(key) for key in list(changes) if key in fields}
    ranks = changes.pop("ranks", Ranks())
    model = changes.pop("model", None) or make_model(dropout=0.2)
    learning_rate = changes.pop("learning_rate", None) or LearningRate("cosine", 1e-2, 3)
    stream: Any = changes.pop("stream", None)
    parts: dict[str, Any] = {
        "model": model,
        "loss": CrossEntropy(0.1),
        "optimizer": build_optimizer(
            model, name="adamw", learning_rate=1e-2, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.1
        ),
        "learning_rate": learning_rate,
        "loader": ToyLoader(ranks=ranks),
        "validator": make_validator(model, ranks),
        "checkpoints": CheckpointStore(folder / "checkpoints", keep_best=2),
        "weights_file": folder / "model.safetensors",
        "monitor": Monitor(None, log_every=100, rank=ranks.rank, stream=stream),
        "settings": TrainerSettings(**options),
        "execution": Execution(torch.device("cpu")),
        "ranks": ranks,
        "ema": ExponentialMovingAverage(model, 0.9),
    }
    return Trainer(**(parts | changes))


def make_scored_trainer(folder: Path, scores: list[float], **changes: Any) -> Trainer:
    """A trainer that validates after every second update, with these BLEU scores in turn."""
    model = make_model()
    options: dict[str, Any] = {"best_metric": "bleu", "validate_every": 2, "max_updates": 20, "ema": None}
    return make_trainer(folder, model=model, validator=make_validator(model, scores=scores), **(options | changes))


def gradients(model: nn.Module) -> dict[str, Tensor]:
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def weights(model: nn.Module) -> dict[str, Tensor]:
    return copy.deepcopy(dict(model.state_dict()))


def same(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


class Stop(Exception):  # noqa: N818
    """Raised by tests where a real run would be killed."""


def stop_after(count: int) -> Callable[..., None]:
    """A function that raises `Stop` once it has been called `count` times."""
    calls = iter(range(count))

    def call(*arguments: object) -> None:
        if next(calls, None) is None:
            raise Stop

    return call


DOUBLE_SETTINGS: dict[str, Any] = {"max_updates": 8, "validate_every": 4, "update_tokens": 60}


class LossKeeper(Monitor):
    def __init__(self, losses: list[float], rank: int) -> None:
        super().__init__(None, log_every=1000, rank=rank)
        self.losses = losses

    def update(self, report: UpdateReport) -> None:
        self.losses.append(report.outcome.loss_sum / report.outcome.num_tokens)


def make_double_trainer(
    folder: Path, ranks: Ranks, interruption: Interruption | None = None, *, consistency: bool = False
) -> tuple[Trainer, list[float]]:
    """The trainer of one rank in float64, and the losses of its updates."""
    losses: list[float] = []
    model = make_model(seed=1 + ranks.rank).double()  # rank 0's weights are used, whatever the others start with
    monitor = LossKeeper(losses, ranks.rank)
    parts = {"model": model, "ranks": ranks, "monitor": monitor, "interruption": interruption or Interruption()}
    if consistency:  # plain at first
        parts["loss"] = CutByContent(0.1, 1.7, cutoff=0.5, start=0.2, ramp=0.4)
    trainer = make_trainer(folder, **parts, **DOUBLE_SETTINGS)
    trainer.validator.interrupted = trainer.interruption.requested
    return trainer, losses
