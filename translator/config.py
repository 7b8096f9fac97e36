"""The types of every configuration value and the ranges they must lie in. Values themselves live in `configs/`.

Hydra composes plain YAML; `load` then merges each group into its dataclass, so a mistyped key, a wrong type and a value out
of range are all refused here, by name, before any data is read.
"""

import re
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import Enum, StrEnum
from pathlib import Path
from typing import Any, get_type_hints

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigKeyError, ValidationError

from translator.errors import UserError
from translator.ids import NUM_SPECIAL

# SentencePiece's byte fallback adds one piece for each of the 256 bytes to the special ids.
NUM_BYTES = 256


def require(condition: bool, option: str, value: object, remedy: str) -> None:
    """Refuses an option's value with a message that says what to do instead."""
    if not condition:
        raise UserError(f"{option}={value}: {remedy}")


def _require_positive(group: str, options: object, *names: str) -> None:
    for name in names:
        value = getattr(options, name)
        require(value > 0, f"{group}.{name}", value, "must be greater than 0")


def _require_probability(group: str, options: object, *names: str) -> None:
    for name in names:
        value = getattr(options, name)
        require(0 <= value < 1, f"{group}.{name}", value, "must be at least 0 and less than 1")


def parse_duration(option: str, text: str) -> float:
    """Seconds in a duration such as 90s, 20m, 1.5h or 1h30m."""
    match = re.fullmatch(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?", text.strip())
    require(bool(text.strip()) and match is not None, option, text, "give a duration such as 90s, 20m, 1.5h or 1h30m")
    assert match is not None
    hours, minutes, seconds = (float(part or 0) for part in match.groups())
    total = 3600 * hours + 60 * minutes + seconds
    require(total > 0, option, text, "must be longer than 0s")
    return total


class Score(StrEnum):
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
    none = "none"


class TokenizerKind(StrEnum):
    bpe = "bpe"
    unigram = "unigram"
    char = "char"


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


class Metric(StrEnum):
    bleu = "bleu"
    chrf = "chrf"
    loss = "loss"


class Average(StrEnum):
    none = "none"
    best = "best"  # the trainer.keep_best best checkpoints
    last = "last"  # the trainer.keep_last newest ones


class LengthPenalty(StrEnum):
    none = "none"
    average = "average"
    gnmt = "gnmt"


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
        _require_positive("model.teacher_forcing", self, "updates")


@dataclass
class LstmConfig:
    kind: str = "lstm"
    embedding_size: int = 256
    hidden_size: int = 256
    attention_size: int = 256
    encoder_layers: int = 1
    decoder_layers: int = 1
    score: Score = Score.additive
    attend: Attend = Attend.classic
    dropout: float = 0.2
    dropout_kind: DropoutKind = DropoutKind.ordinary
    tie_embeddings: TieEmbeddings = TieEmbeddings.target
    teacher_forcing: TeacherForcing = field(default_factory=TeacherForcing)

    def __post_init__(self) -> None:
        _require_positive(
            "model", self, "embedding_size", "hidden_size", "attention_size", "encoder_layers", "decoder_layers"
        )
        _require_probability("model", self, "dropout")
        require(
            self.attend is Attend.classic
            or (self.teacher_forcing.schedule is SamplingSchedule.constant
            and self.teacher_forcing.ratio == 1),
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
    score: Score = Score.scaled_dot
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    tie_embeddings: TieEmbeddings = TieEmbeddings.all

    def __post_init__(self) -> None:
        _require_positive(
            "model",
            self,
            "model_size",
            "feedforward_size",
            "num_heads",
            "encoder_layers",
            "decoder_layers",
            "max_positions",
        )
        _require_probability("model", self, "dropout", "attention_dropout", "activation_dropout")
        require(
            self.model_size % self.num_heads == 0,
            "model.num_heads",
            self.num_heads,
            f"must divide model.model_size={self.model_size}; {_nearest_divisors(self.model_size, self.num_heads)} would",
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


@dataclass
class CleaningConfig:
    """Each step can be switched off; the report tells how many pairs each one removed."""

    normalize: bool = True  # Unicode NFC, control characters to spaces
    drop_blank: bool = True
    max_characters: int = 2_000  # 0 switches the limit off
    max_ratio: float = 9.0  # between the longer and the shorter side, in characters; 0 switches it off
    drop_identical: bool = True  # source and target are the same sentence
    drop_duplicates: bool = True  # the same pair again
    drop_leaked: bool = True  # training pairs that are also in validation or test

    def __post_init__(self) -> None:
        require(self.max_characters >= 0, "data.cleaning.max_characters", self.max_characters, "must not be negative")
        require(
            self.max_ratio == 0 or self.max_ratio >= 1,
            "data.cleaning.max_ratio",
            self.max_ratio,
            "must be at least 1, or 0 to switch the limit off",
        )


@dataclass
class DataConfig:
    """What every kind of corpus has."""

    kind: str = "text"
    source: str = "en"
    target: str = "de"
    max_pieces: int = 256  # longer training pairs are left out, and counted; 0 switches the limit off
    cache_dir: str = "data/cache"  # tokenizers and tokenised corpora, named by their content
    num_processes: int = 0  # for tokenising; 0 takes one for each core
    cleaning: CleaningConfig = field(default_factory=CleaningConfig)

    def __post_init__(self) -> None:
        for name in ("source", "target"):
            value = getattr(self, name)
            require(
                bool(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", value)),
                f"data.{name}",
                value,
                "give a language code such as en, de or zh",
            )
        require(self.max_pieces >= 0, "data.max_pieces", self.max_pieces, "must not be negative")
        require(self.num_processes >= 0, "data.num_processes", self.num_processes, "must not be negative")


@dataclass
class DemoDataConfig(DataConfig):
    kind: str = "demo"
    folder: str = "data/demo"
    seed: int = 1
    num_train: int = 20_000
    num_valid: int = 1_000
    num_test: int = 1_000

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_positive("data", self, "num_train", "num_valid", "num_test")
        for name in ("source", "target"):
            value = getattr(self, name)
            require(value in ("en", "de", "zh"), f"data.{name}", value, "the demo corpus has en, de and zh")
        require(self.source != self.target, "data.target", self.target, "must differ from data.source")


@dataclass
class TextDataConfig(DataConfig):
    """Parallel text: PREFIX.en and PREFIX.de, each perhaps with .gz, or one tab-separated file NAME.tsv[.gz]."""

    train: Any = None  # one prefix or a list of them
    train_weights: list[float] | None = None  # how often each training corpus is seen in an epoch, 1 = once
    valid: str | None = None
    test: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.source != self.target, "data.target", self.target, "must differ from data.source")
        require(
            self.train is not None, "data.train", None, "give the prefix of the training files (PREFIX.en, PREFIX.de)"
        )
        require(self.valid is not None, "data.valid", None, "give the prefix of the validation files")
        prefixes = self.train_prefixes
        require(
            bool(prefixes) and all(isinstance(prefix, str) and prefix for prefix in prefixes),
            "data.train",
            self.train,
            "give one prefix or a list of them: 'data.train=[corpora/a,corpora/b]'",
        )
        if self.train_weights is not None:
            require(
                len(self.train_weights) == len(prefixes) and all(weight > 0 for weight in self.train_weights),
                "data.train_weights",
                self.train_weights,
                f"give one positive number for each of the {len(prefixes)} training corpora",
            )

    @property
    def train_prefixes(self) -> list[str]:
        return [self.train] if isinstance(self.train, str) else list(self.train)


@dataclass
class HubDataConfig(DataConfig):
    """Anything that `datasets.load_dataset` loads: a name on the hub, or `parquet`, `json`, `csv` with local files."""

    kind: str = "hf"
    path: str | None = None
    name: str | None = None  # the dataset's configuration, for example de-en
    revision: str | None = None
    data_files: dict[str, Any] | None = None  # split: file, pattern or list of them
    train_split: str = "train"
    valid_split: str = "validation"
    test_split: str | None = "test"
    source_column: str | None = None  # default: the language code
    target_column: str | None = None
    translation_column: str | None = None  # a nested column such as {"translation": {"en": …, "de": …}}
    streaming: bool = False  # read while training; nothing is stored
    shuffle_buffer: int = 50_000  # pairs among which a streamed corpus is shuffled and bucketed by length
    tokenizer_sample: int = 2_000_000  # pairs of a streamed corpus that the tokenizer is trained on

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.path is not None,
            "data.path",
            None,
            "give a dataset's name, or parquet, json or csv with data.data_files",
        )
        _require_positive("data", self, "shuffle_buffer", "tokenizer_sample")
        source, target = self.source_column or self.source, self.target_column or self.target
        require(
            source != target,
            "data.target_column" if self.target_column else "data.target",
            target,
            "source and target would be read from the same column",
        )


@dataclass
class TokenizerConfig:
    kind: TokenizerKind = TokenizerKind.bpe
    vocab_size: int = 8_000  # of each vocabulary; ignored by nothing: `char` takes at most so many characters
    joint: bool = True  # one vocabulary for both languages
    byte_fallback: bool = True
    character_coverage: float = 1.0
    sampling: float = 0.0  # BPE-dropout probability, or the unigram model's sampling temperature; 0 = off

    def __post_init__(self) -> None:
        smallest = NUM_SPECIAL + 1 + (NUM_BYTES if self.byte_fallback else 0)
        require(
            self.vocab_size >= smallest,
            "tokenizer.vocab_size",
            self.vocab_size,
            f"must be at least {smallest}: the special pieces{' and the 256 bytes' if self.byte_fallback else ''} come first",
        )
        require(
            0.9 <= self.character_coverage <= 1,
            "tokenizer.character_coverage",
            self.character_coverage,
            "must lie between 0.9 and 1",
        )
        _require_probability("tokenizer", self, "sampling")
        require(
            self.sampling == 0 or self.kind is not TokenizerKind.char,
            "tokenizer.sampling",
            self.sampling,
            "characters can be split in one way only; use tokenizer.kind=bpe or unigram",
        )


@dataclass
class OptimConfig:
    name: OptimizerName = OptimizerName.adamw
    learning_rate: float = 1e-3
    betas: list[float] = field(default_factory=lambda: [0.9, 0.98])
    eps: float = 1e-9
    weight_decay: float = 0.0
    clip_norm: float = 1.0  # 0 switches clipping off
    label_smoothing: float = 0.1
    schedule: Schedule = Schedule.inverse_sqrt
    warmup_updates: int = 1_000  # but never more than a quarter of all updates
    decay_share: float = 0.2  # of all updates, at the end of `wsd`
    final_ratio: float = 0.0  # of the peak, where `cosine` and `wsd` end

    def __post_init__(self) -> None:
        _require_positive("optim", self, "learning_rate", "eps")
        _require_probability("optim", self, "label_smoothing", "final_ratio")
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
    best_metric: Metric = Metric.bleu
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
        _require_positive("trainer", self, "max_updates", "batch_tokens", "log_every", "keep_best")
        names = ("max_epochs", "update_tokens", "validate_every", "save_every", "patience", "threads", "max_skipped")
        for name in (*names, "num_samples"):
            value = getattr(self, name)
            require(value >= 0, f"trainer.{name}", value, "must not be negative")
        require(self.keep_last >= 2, "trainer.keep_last", self.keep_last, "must be at least 2")
        _require_probability("trainer", self, "ema_decay")
        require(
            bool(re.fullmatch(r"auto|cpu|mps|(cuda|xpu)(:\d+)?", self.device)),
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
    min_length_ratio: float = 0.0
    no_repeat_ngram: int = 0
    repetition_penalty: float = 1.0
    batch_tokens: int = 4_096  # source tokens translated together

    def __post_init__(self) -> None:
        _require_positive("decode", self, "beam_size", "max_length_ratio", "repetition_penalty", "batch_tokens")
        for name in ("alpha", "max_length_extra", "min_length_ratio", "no_repeat_ngram"):
            value = getattr(self, name)
            require(value >= 0, f"decode.{name}", value, "must not be negative")


ModelConfig = LstmConfig | TransformerConfig
SCHEMAS: dict[str, dict[str, type]] = {
    "model": {"lstm": LstmConfig, "transformer": TransformerConfig},
    "data": {"demo": DemoDataConfig, "text": TextDataConfig, "hf": HubDataConfig},
    "tokenizer": {"": TokenizerConfig},
    "optim": {"": OptimConfig},
    "trainer": {"": TrainerConfig},
    "decode": {"": DecodeConfig},
}


@dataclass
class Config:
    """A whole run."""

    model: ModelConfig
    data: DataConfig
    tokenizer: TokenizerConfig
    optim: OptimConfig
    trainer: TrainerConfig
    decode: DecodeConfig
    seed: int = 1
    run_dir: str | None = None
    resume: Any = False  # true continues run_dir or the newest run; a path continues that one

    def __post_init__(self) -> None:
        require(
            self.model.tie_embeddings is not TieEmbeddings.all or self.tokenizer.joint,
            "model.tie_embeddings",
            self.model.tie_embeddings,
            "source and target share a matrix only with tokenizer.joint=true; use target or none",
        )
        require(0 <= self.seed < 2**63, "seed", self.seed, "must lie between 0 and 2^63 - 1")
        require(
            isinstance(self.resume, bool | str), "resume", self.resume, "give true, false or the directory of a run"
        )


@dataclass
class RunOptions:
    """The options that belong to no group."""

    seed: int = 1
    run_dir: str | None = None
    resume: Any = False


def load(composed: DictConfig) -> Config:
    """Checks a composed configuration against the schema and turns it into dataclasses."""
    unknown = [str(key) for key in composed if key not in SCHEMAS and key not in RunOptions.__dataclass_fields__]
    for key in unknown:
        raise UserError(f"{key}: unknown option; {did_you_mean(key, [*SCHEMAS, *RunOptions.__dataclass_fields__])}")
    groups = {name: _load_group(name, composed) for name in SCHEMAS}
    top = OmegaConf.masked_copy(composed, [key for key in composed if key not in SCHEMAS])
    options = _merge("", RunOptions, top)
    return Config(**groups, seed=options.seed, run_dir=options.run_dir, resume=options.resume)


def load_file(path: Path) -> Config:
    """The configuration that a run has saved."""
    return load(OmegaConf.create(OmegaConf.to_yaml(OmegaConf.load(path))))


def save_file(config: Config, path: Path) -> None:
    """Writes the whole configuration as YAML."""
    path.write_text(to_yaml(config), encoding="utf-8")


def to_yaml(config: Config) -> str:
    groups = {name: OmegaConf.structured(getattr(config, name)) for name in SCHEMAS}
    top = {name: getattr(config, name) for name in RunOptions.__dataclass_fields__}
    return OmegaConf.to_yaml(OmegaConf.create({**groups, **top}))


def _load_group(name: str, composed: DictConfig) -> Any:
    node = composed.get(name)
    if not isinstance(node, DictConfig):
        raise UserError(f"{name}={node}: choose a configuration of the group, see --help")
    kinds = SCHEMAS[name]
    kind = node.get("kind") if "" not in kinds else ""
    if kind not in kinds:
        raise UserError(f"{name}.kind={kind}: unknown; {did_you_mean(str(kind), list(kinds))}")
    return _merge(name, kinds[kind], node)


def _merge(group: str, schema: type, node: DictConfig) -> Any:
    """The node as an instance of the schema; unknown keys and wrong types are refused by their full name."""
    try:
        return OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(schema), node))
    except ConfigKeyError as error:
        key = ".".join(part for part in (group, str(error.full_key)) if part)
        names = [f"{group}.{name}" if group else name for name in schema.__dataclass_fields__]
        raise UserError(f"{key}: unknown option; {did_you_mean(key, names)}") from error
    except ValidationError as error:
        key = ".".join(part for part in (group, str(error.full_key)) if part)
        value = OmegaConf.select(node, str(error.full_key), throw_on_missing=False)
        raise UserError(f"{key}={value}: {_expected_type(schema, str(error.full_key), value, error)}") from error


_TYPE_NAMES = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}


def _expected_type(schema: type, key: str, value: object, error: ValidationError) -> str:
    expected = getattr(error, "ref_type", None)
    for name in key.split("."):
        expected = get_type_hints(schema).get(name, expected)
        schema = expected if isinstance(expected, type) else schema
    if isinstance(expected, type) and issubclass(expected, Enum):
        choices = [member.name for member in expected]
        return f"must be one of {', '.join(choices)}; {did_you_mean(str(value), choices)}"
    if expected in _TYPE_NAMES:
        return f"must be {_TYPE_NAMES[expected]}"
    return str(error).splitlines()[0]


def did_you_mean(wrong: str, valid: list[str]) -> str:
    """'did you mean …?' with the nearest valid name, or the list of all where none is near.

    Names of the same group are compared without it: `model.foo` is not near to `model.norm`.
    """
    group, _, name = wrong.rpartition(".")
    siblings = {known.rpartition(".")[2]: known for known in valid if known.rpartition(".")[0] == group}
    near = [siblings[leaf] for leaf in get_close_matches(name, siblings, n=1)]
    near = near or (get_close_matches(wrong, valid, n=1) if not siblings else [])
    valid = list(siblings.values()) or valid
    return f"did you mean {near[0]}?" if near else f"choose one of {', '.join(valid)}"
