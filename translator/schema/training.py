"""Options of the groups `optim` and `trainer`."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from translator.schema.checks import parse_duration
from translator.schema.options import MOST_TOKENS, Options, option


class OptimizerName(StrEnum):
    adamw = "adamw"
    adam = "adam"
    muon = "muon"


class Schedule(StrEnum):
    inverse_sqrt = "inverse_sqrt"
    cosine = "cosine"
    wsd = "wsd"
    constant = "constant"


class Precision(StrEnum):
    auto = "auto"
    float32 = "float32"
    bfloat16 = "bfloat16"
    float16 = "float16"


class Average(StrEnum):
    none = "none"
    best = "best"  # the trainer.keep_best best checkpoints
    last = "last"  # the trainer.keep_last newest ones


SMALLEST_CLIP_NORM = 1e-6  # gradients scaled down further would be zeros in float32


@dataclass
class Consistency(Options):
    """Of `optim.loss=consistency`: two passes over each pair should predict the same (Liang et al. 2021, R-Drop)."""

    group: ClassVar[str] = "optim.consistency"

    weight: float = option(1.0, "half the α of R-Drop: weight of half the divergence", minimum=1e-6, maximum=1_000)
    cutoff: float = option(
        0.0, "share of pieces whose embeddings are zeroed in the second pass (SimCut); 0 = R-Drop", minimum=0, below=1
    )
    start: float = option(0.0, "share of the run with the plain loss, before consistency begins", minimum=0, below=1)
    ramp: float = option(0.0, "share of the run over which the weight grows from 0, once begun", minimum=0, maximum=1)


@dataclass
class OptimConfig(Options):
    group: ClassVar[str] = "optim"

    name: OptimizerName = option(OptimizerName.adamw, "optimizer")
    learning_rate: float = option(1e-3, "peak learning rate, reached at the end of warm-up", minimum=1e-12, maximum=100)
    betas: list[float] = option([0.9, 0.98], "decay rates of Adam's two moving averages")
    eps: float = option(1e-9, "added to Adam's denominator", minimum=1e-30, maximum=1)
    weight_decay: float = option(0.0, "of matrices, not of biases, norms and embeddings", minimum=0, maximum=1_000)
    clip_norm: float = option(
        1.0, "norm to which larger gradients are scaled down; 0 = no clipping", minimum=0, maximum=1e9
    )
    loss: str = option("cross_entropy", "a module of translator/training/objectives/")
    label_smoothing: float = option(0.1, "share of the probability spread over all pieces", minimum=0, below=1)
    schedule: Schedule = option(Schedule.inverse_sqrt, "learning-rate schedule")
    warmup_updates: int = option(1_000, "length of warm-up, at most a quarter of all updates", minimum=0)
    decay_share: float = option(0.2, "share of all updates in the decay at the end of `wsd`", minimum=1e-6, maximum=1)
    final_ratio: float = option(0.0, "share of the peak at which `cosine` and `wsd` end", minimum=0, below=1)
    consistency: Consistency = option(Consistency, "of `optim.loss=consistency`")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(
            len(self.betas) == 2 and all(0 <= beta < 1 for beta in self.betas),
            "betas",
            "give two numbers of at least 0 and less than 1",
        )
        self.require(
            self.clip_norm == 0 or self.clip_norm >= SMALLEST_CLIP_NORM,
            "clip_norm",
            f"must be at least {SMALLEST_CLIP_NORM}, or 0 to switch clipping off",
        )


@dataclass
class TrainerConfig(Options):
    group: ClassVar[str] = "trainer"

    max_updates: int = option(10_000, "updates after which training ends", minimum=1)
    max_epochs: int = option(0, "epochs after which training ends; 0 = no limit", minimum=0)
    max_time: str | None = option(None, "of the whole run, such as 20m or 1h30m; the schedule fits it")
    batch_tokens: int = option(4_096, "target tokens in a micro-batch", minimum=1, maximum=MOST_TOKENS)
    update_tokens: int = option(
        0,
        "target tokens in an update, over micro-batches and processes; 0 = one micro-batch of each process",
        minimum=0,
        maximum=100_000_000,
    )
    validate_every: int = option(500, "updates between validations; 0 = once an epoch", minimum=0)
    save_every: int = option(0, "updates between checkpoints, besides those after a validation; 0 = none", minimum=0)
    log_every: int = option(50, "updates between logged values", minimum=1)
    patience: int = option(0, "validations without improvement before stopping; 0 = never stop early", minimum=0)
    best_metric: str = option(
        "bleu",
        "what decides which checkpoint is the best: loss, bleu, chrf or chrf_pp; of two directions, the mean",
    )
    keep_best: int = option(3, "number of best checkpoints to keep", minimum=1)
    keep_last: int = option(2, "number of newest checkpoints to keep; one may turn out to be damaged", minimum=2)
    average: Average = option(
        Average.none, "the final model is the average of these checkpoints, unless that is worse than the best one"
    )
    ema_decay: float = option(0.0, "decay of the moving average of the weights; 0 = off", minimum=0, below=1)
    device: str = option("auto", "auto, cpu, cuda, cuda:N or mps; auto = cuda, then mps, then cpu")
    precision: Precision = option(Precision.auto, "auto = bfloat16 or float16 on GPUs, float32 elsewhere")
    compile: bool = option(False, "compile the model with torch.compile; not for model.kind=lstm")
    threads: int = option(0, "CPU threads; 0 = torch's choice", minimum=0, maximum=4_096)
    max_skipped: int = option(0, "updates with a loss or gradient that is not finite before the run stops", minimum=0)
    num_samples: int = option(
        4, "validation sentences whose translation and attention are shown", minimum=0, maximum=1_000
    )

    report: bool = option(True, "write report.html into the folder of the run when training ends")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(
            bool(re.fullmatch(r"auto|cpu|mps|cuda(:\d+)?", self.device)),
            "device",
            "give auto, cpu, cuda, cuda:N or mps",
        )
        if self.max_time is not None:
            parse_duration("trainer.max_time", self.max_time)

    @property
    def max_seconds(self) -> float | None:
        return None if self.max_time is None else parse_duration("trainer.max_time", self.max_time)
