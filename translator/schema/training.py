"""Options of the groups `optim`, `trainer` and `decode`."""

import re
from dataclasses import dataclass, field
from enum import StrEnum

from translator.errors import require
from translator.schema.checks import parse_duration, require_positive, require_probability


class OptimizerName(StrEnum):
    adamw = "adamw"
    adam = "adam"


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


class LengthPenalty(StrEnum):
    none = "none"
    average = "average"
    gnmt = "gnmt"


@dataclass
class OptimConfig:
    name: OptimizerName = OptimizerName.adamw
    learning_rate: float = 1e-3
    betas: list[float] = field(default_factory=lambda: [0.9, 0.98])
    eps: float = 1e-9
    weight_decay: float = 0.0
    clip_norm: float = 1.0  # 0 switches clipping off
    loss: str = "cross_entropy"  # a module of translator/training/objectives/
    label_smoothing: float = 0.1
    schedule: Schedule = Schedule.inverse_sqrt
    warmup_updates: int = 1_000  # but never more than a quarter of all updates
    decay_share: float = 0.2  # of all updates, at the end of `wsd`
    final_ratio: float = 0.0  # of the peak, where `cosine` and `wsd` end

    def __post_init__(self) -> None:
        require_positive("optim", self, "learning_rate", "eps")
        require_probability("optim", self, "label_smoothing", "final_ratio")
        require(
            len(self.betas) == 2 and all(0 <= beta < 1 for beta in self.betas),
            "optim.betas",
            self.betas,
            "give two numbers of at least 0 and less than 1",
        )
        require(self.weight_decay >= 0, "optim.weight_decay", self.weight_decay, "must not be negative")
        require(self.clip_norm >= 0, "optim.clip_norm", self.clip_norm, "must not be negative; 0 switches clipping off")
        require(self.warmup_updates >= 0, "optim.warmup_updates", self.warmup_updates, "must not be negative")
        require(0 < self.decay_share <= 1, "optim.decay_share", self.decay_share, "must be above 0 and at most 1")


@dataclass
class TrainerConfig:
    max_updates: int = 10_000
    max_epochs: int = 0  # 0 = no limit but max_updates
    max_time: str | None = None  # such as 20m: the schedule is fitted to it
    batch_tokens: int = 4_096  # target tokens in a (micro-)batch
    update_tokens: int = 0  # target tokens in an update; more than batch_tokens accumulates gradients; 0 = one batch
    validate_every: int = 500  # updates; 0 = once an epoch
    log_every: int = 50
    patience: int = 0  # validations without improvement before stopping; 0 = never
    best_metric: str = "bleu"  # loss, or a metric of translator/evaluation/metrics.py
    keep_best: int = 3
    keep_last: int = 2  # newest checkpoints kept besides the best; one is in case the newest is damaged
    save_every: int = 0  # updates between checkpoints, besides those after a validation; 0 = only those
    average: Average = Average.none  # the final model is the average of these checkpoints where that is not worse
    ema_decay: float = 0.0  # exponential moving average of the weights; 0 = off
    device: str = "auto"
    precision: Precision = Precision.auto
    compile: bool = False
    threads: int = 0  # 0 = torch's choice
    max_skipped: int = 0  # updates with a loss or gradient that is not finite, before the run stops
    num_samples: int = 4  # validation sentences whose translation and attention are shown

    def __post_init__(self) -> None:
        require_positive("trainer", self, "max_updates", "batch_tokens", "log_every", "keep_best")
        names = ("max_epochs", "update_tokens", "validate_every", "save_every", "patience", "threads", "max_skipped")
        for name in (*names, "num_samples"):
            value = getattr(self, name)
            require(value >= 0, f"trainer.{name}", value, "must not be negative")
        require(self.keep_last >= 2, "trainer.keep_last", self.keep_last, "must be at least 2")
        require_probability("trainer", self, "ema_decay")
        require(
            bool(re.fullmatch(r"auto|cpu|mps|cuda(:\d+)?", self.device)),
            "trainer.device",
            self.device,
            "give auto, cpu, cuda, cuda:N or mps",
        )
        if self.max_time is not None:
            parse_duration("trainer.max_time", self.max_time)

    @property
    def max_seconds(self) -> float | None:
        return None if self.max_time is None else parse_duration("trainer.max_time", self.max_time)


@dataclass
class DecodeConfig:
    beam_size: int = 5
    length_penalty: LengthPenalty = LengthPenalty.average
    alpha: float = 1.0  # exponent of the length penalty
    max_length_ratio: float = 2.0  # pieces of the output for each piece of the source …
    max_length_extra: int = 20  # … and so many more
    min_length: int = 1  # the fewest pieces of an output; 0 allows an empty one
    min_length_ratio: float = 0.0  # the same for each piece of the source; the larger of the two counts
    no_repeat_ngram: int = 0
    repetition_penalty: float = 1.0
    batch_tokens: int = 4_096  # source tokens translated together

    def __post_init__(self) -> None:
        require_positive("decode", self, "beam_size", "max_length_ratio", "repetition_penalty", "batch_tokens")
        for name in ("alpha", "max_length_extra", "min_length", "min_length_ratio", "no_repeat_ngram"):
            value = getattr(self, name)
            require(value >= 0, f"decode.{name}", value, "must not be negative")
