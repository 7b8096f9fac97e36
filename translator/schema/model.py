"""Options of the group `model`: one dataclass for each kind of model, its fields the arguments of the model's class."""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from translator.schema.options import LARGEST_SIZE, MOST_LAYERS, Options, option


class ScoreName(StrEnum):
    additive = "additive"
    dot = "dot"
    scaled_dot = "scaled_dot"
    cosine = "cosine"
    gaussian = "gaussian"


class Attend(StrEnum):
    classic = "classic"
    parallel = "parallel"


class DropoutKind(StrEnum):
    ordinary = "ordinary"
    variational = "variational"


class TieEmbeddings(StrEnum):
    none = "none"  # three matrices
    target = "target"  # decoder input and output share one
    all = "all"  # source, decoder input and output share one; needs a joint vocabulary


class SamplingSchedule(StrEnum):
    constant = "constant"
    linear = "linear"
    inverse_sigmoid = "inverse_sigmoid"


class NormOrder(StrEnum):
    pre = "pre"
    post = "post"


class Norm(StrEnum):
    layer = "layer"
    rms = "rms"


class Activation(StrEnum):
    relu = "relu"
    gelu = "gelu"
    swiglu = "swiglu"


class Positions(StrEnum):
    sinusoidal = "sinusoidal"
    learned = "learned"
    rotary = "rotary"
    relative = "relative"
    none = "none"


@dataclass
class TeacherForcing(Options):
    """The probability of feeding the reference's previous piece (Bengio et al. 2015, scheduled sampling)."""

    group: ClassVar[str] = "model.teacher_forcing"

    schedule: SamplingSchedule = option(SamplingSchedule.constant, "how the probability falls during training")
    ratio: float = option(1.0, "where the schedule starts; with `constant`, where it stays", minimum=0, maximum=1)
    final_ratio: float = option(
        0.5, "where `linear` ends, and the lower bound of `inverse_sigmoid`", minimum=0, maximum=1
    )
    updates: int = option(10_000, "length of the linear descent, or the k of k / (k + exp(i / k))", minimum=1)


@dataclass
class LstmConfig(Options):
    group: ClassVar[str] = "model"

    kind: str = option("lstm", "kind of model")
    embedding_size: int = option(256, "size of the embeddings", minimum=1, maximum=LARGEST_SIZE)
    hidden_size: int = option(
        256, "size of the hidden states, in each direction of the encoder", minimum=1, maximum=LARGEST_SIZE
    )
    attention_size: int = option(256, "size of the space in which states are compared", minimum=1, maximum=LARGEST_SIZE)
    encoder_layers: int = option(1, "layers of the encoder", minimum=1, maximum=MOST_LAYERS)
    decoder_layers: int = option(1, "layers of the decoder", minimum=1, maximum=MOST_LAYERS)
    score: ScoreName = option(ScoreName.additive, "how queries and keys are compared")
    attend: Attend = option(Attend.classic, "attention within the recurrence, or for the whole target at once")
    dropout: float = option(0.3, "probability of dropping an activation", minimum=0, below=1)
    dropout_kind: DropoutKind = option(
        DropoutKind.ordinary, "a new mask at every step, or one for the whole sentence (variational)"
    )
    word_dropout: float = option(0.0, "probability of zeroing a source piece's embedding", minimum=0, below=1)
    tie_embeddings: TieEmbeddings = option(TieEmbeddings.target, "which embeddings share a matrix")
    teacher_forcing: TeacherForcing = option(TeacherForcing, "scheduled sampling")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(
            self.attend is Attend.classic
            or (self.teacher_forcing.schedule is SamplingSchedule.constant and self.teacher_forcing.ratio == 1),
            "attend",
            "scheduled sampling needs model.attend=classic, since a parallel decoder sees the whole target at once",
        )


@dataclass
class TransformerConfig(Options):
    group: ClassVar[str] = "model"

    kind: str = option("transformer", "kind of model")
    model_size: int = option(256, "size of embeddings and states", minimum=1, maximum=LARGEST_SIZE)
    feedforward_size: int = option(
        512, "size of the hidden layer of the feed-forward networks", minimum=1, maximum=LARGEST_SIZE
    )
    num_heads: int = option(4, "attention heads", minimum=1, maximum=LARGEST_SIZE)
    encoder_layers: int = option(3, "layers of the encoder", minimum=1, maximum=MOST_LAYERS)
    decoder_layers: int = option(3, "layers of the decoder", minimum=1, maximum=MOST_LAYERS)
    norm_order: NormOrder = option(NormOrder.pre, "normalisation before or after each sublayer")
    norm: Norm = option(Norm.layer, "kind of normalisation")
    activation: Activation = option(Activation.relu, "activation of the feed-forward networks")
    positions: Positions = option(Positions.sinusoidal, "how positions are told apart")
    max_positions: int = option(
        1024,
        "number of learned positions; later ones in a longer sentence share the last",
        minimum=1,
        maximum=1_000_000,
    )
    score: ScoreName = option(ScoreName.scaled_dot, "how queries and keys are compared")
    dropout: float = option(0.1, "probability of dropping an element of embeddings and residuals", minimum=0, below=1)
    attention_dropout: float = option(0.0, "probability of dropping an attention weight", minimum=0, below=1)
    activation_dropout: float = option(
        0.0, "probability of dropping a hidden unit of the feed-forward networks", minimum=0, below=1
    )
    word_dropout: float = option(0.0, "probability of zeroing a source piece's embedding", minimum=0, below=1)
    tie_embeddings: TieEmbeddings = option(TieEmbeddings.all, "which embeddings share a matrix")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(
            self.model_size % self.num_heads == 0,
            "num_heads",
            f"must divide model.model_size={self.model_size}: {_nearest_divisors(self.model_size, self.num_heads)}",
        )
        self.require(self.model_size % 2 == 0, "model_size", "must be even")
        head_size = self.model_size // self.num_heads
        self.require(
            self.positions is not Positions.rotary or head_size % 2 == 0,
            "positions",
            f"rotary positions need an even head size, not {head_size}; change model.num_heads",
        )


def _nearest_divisors(number: int, wanted: int) -> str:
    small = [divisor for divisor in range(1, math.isqrt(number) + 1) if number % divisor == 0]
    divisors = {*small, *(number // divisor for divisor in small)}
    nearest = sorted(sorted(divisors, key=lambda divisor: (abs(divisor - wanted), divisor))[:2])
    return " or ".join(map(str, nearest))
