"""Options of the groups `data` and `tokenizer`."""

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from translator.errors import require
from translator.ids import NUM_BYTES, NUM_SPECIAL
from translator.schema.checks import require_positive, require_probability


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
        require_positive("data", self, "num_train", "num_valid", "num_test")
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
            bool(prefixes) and all(prefixes),
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
        return [str(prefix) for prefix in (self.train if isinstance(self.train, list) else [self.train])]


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
        require_positive("data", self, "shuffle_buffer", "tokenizer_sample")
        source, target = self.source_column or self.source, self.target_column or self.target
        require(
            source != target,
            "data.target_column" if self.target_column else "data.target",
            target,
            "source and target would be read from the same column",
        )


class TokenizerKind(StrEnum):
    bpe = "bpe"
    unigram = "unigram"
    char = "char"


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
            f"must be at least {smallest}, since special pieces {'and bytes ' if self.byte_fallback else ''}come first",
        )
        require(
            0.9 <= self.character_coverage <= 1,
            "tokenizer.character_coverage",
            self.character_coverage,
            "must lie between 0.9 and 1",
        )
        require_probability("tokenizer", self, "sampling")
        require(
            self.sampling == 0 or self.kind is not TokenizerKind.char,
            "tokenizer.sampling",
            self.sampling,
            "characters can be split in one way only; use tokenizer.kind=bpe or unigram",
        )
