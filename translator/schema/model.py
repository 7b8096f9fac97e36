"""Options of the group `model`: one dataclass for each kind of model, its fields the arguments of the model's class."""

from dataclasses import dataclass, field
from enum import StrEnum

from translator.errors import require
from translator.schema.checks import require_positive, require_probability


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
class TeacherForcing:
    """The probability of feeding the reference's previous piece (Bengio et al. 2015, scheduled sampling)."""

    schedule: SamplingSchedule = SamplingSchedule.constant
    ratio: float = 1.0  # where the schedule starts; with `constant`, where it stays
    final_ratio: float = 0.5  # where `linear` ends and what `inverse_sigmoid` does not fall below
    updates: int = 10_000  # length of the linear descent, or the k of k / (k + exp(i / k))

    def __post_init__(self) -> None:
        for name in ("ratio", "final_ratio"):
            value = getattr(self, name)
            require(0 <= value <= 1, f"model.teacher_forcing.{name}", value, "must lie between 0 and 1")
        require_positive("model.teacher_forcing", self, "updates")


@dataclass
class LstmConfig:
    kind: str = "lstm"
    embedding_size: int = 256
    hidden_size: int = 256
    attention_size: int = 256
    encoder_layers: int = 1
    decoder_layers: int = 1
    score: ScoreName = ScoreName.additive
    attend: Attend = Attend.classic
    dropout: float = 0.2
    dropout_kind: DropoutKind = DropoutKind.ordinary
    tie_embeddings: TieEmbeddings = TieEmbeddings.target
    teacher_forcing: TeacherForcing = field(default_factory=TeacherForcing)

    def __post_init__(self) -> None:
        require_positive(
            "model", self, "embedding_size", "hidden_size", "attention_size", "encoder_layers", "decoder_layers"
        )
        require_probability("model", self, "dropout")
        require(
            self.attend is Attend.classic
            or (self.teacher_forcing.schedule is SamplingSchedule.constant and self.teacher_forcing.ratio == 1),
            "model.attend",
            self.attend,
            "scheduled sampling needs model.attend=classic, since a parallel decoder sees the whole target at once",
        )


@dataclass
class TransformerConfig:
    kind: str = "transformer"
    model_size: int = 256
    feedforward_size: int = 1024
    num_heads: int = 4
    encoder_layers: int = 3
    decoder_layers: int = 3
    norm_order: NormOrder = NormOrder.pre
    norm: Norm = Norm.layer
    activation: Activation = Activation.relu
    positions: Positions = Positions.sinusoidal
    max_positions: int = 1024  # of learned positions; longer sentences keep the last one
    score: ScoreName = ScoreName.scaled_dot
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    tie_embeddings: TieEmbeddings = TieEmbeddings.all

    def __post_init__(self) -> None:
        require_positive(
            "model",
            self,
            "model_size",
            "feedforward_size",
            "num_heads",
            "encoder_layers",
            "decoder_layers",
            "max_positions",
        )
        require_probability("model", self, "dropout", "attention_dropout", "activation_dropout")
        require(
            self.model_size % self.num_heads == 0,
            "model.num_heads",
            self.num_heads,
            f"must divide model.model_size={self.model_size}: {_nearest_divisors(self.model_size, self.num_heads)}",
        )
        require(self.model_size % 2 == 0, "model.model_size", self.model_size, "must be even")
        require(
            self.positions is not Positions.rotary or (self.model_size // self.num_heads) % 2 == 0,
            "model.positions",
            self.positions,
            f"rotary positions need an even head size, not {self.model_size // self.num_heads}; change model.num_heads",
        )


def _nearest_divisors(number: int, wanted: int) -> str:
    divisors = [d for d in range(1, number + 1) if number % d == 0]
    nearest = sorted(sorted(divisors, key=lambda d: abs(d - wanted))[:2])
    return " or ".join(map(str, nearest))
