"""Options of the groups `data` and `tokenizer`."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from translator.ids import NUM_BYTES, NUM_SPECIAL
from translator.schema.options import LARGEST_SEED, Options, option

MOST_SENTENCES = 1_000_000  # of each split of the demo corpus
TAG_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
TAKEN_NAMES = re.compile(r"pad|unk|s|0x[0-9A-F]{2}")  # <pad>, <s>, <0x0A> …: pieces of every vocabulary
TAG_REMEDY = "give names of letters and digits, such as bt for the piece <bt>"


def is_tag_name(name: str) -> bool:
    return bool(TAG_NAME.fullmatch(name)) and not TAKEN_NAMES.fullmatch(name)


class Directions(StrEnum):
    forward = "forward"
    both = "both"


@dataclass
class CleaningConfig(Options):
    """Each step can be switched off; the report says how many pairs each one removed."""

    group: ClassVar[str] = "data.cleaning"

    normalize: bool = option(True, "Unicode NFC; control characters become spaces")
    drop_blank: bool = option(True, "drop pairs with a blank side")
    max_characters: int = option(2_000, "longest side of a pair, in characters; 0 = no limit", minimum=0)
    max_ratio: float = option(
        9.0,
        "largest ratio of the longer to the shorter side, where the longer has more than 20 characters; 0 = no limit",
        minimum=0,
    )
    drop_identical: bool = option(True, "drop pairs whose source and target are the same sentence")
    drop_duplicates: bool = option(True, "drop pairs that have occurred before")
    drop_leaked: bool = option(True, "drop training pairs that are also in validation or test")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(
            self.max_ratio == 0 or self.max_ratio >= 1, "max_ratio", "must be at least 1, or 0 to switch the limit off"
        )


@dataclass
class DataConfig(Options):
    """Options common to all kinds of corpora."""

    group: ClassVar[str] = "data"

    kind: str = option("text", "kind of corpus: demo, text or hf")
    source: str = option("en", "code of the source language")
    target: str = option("de", "code of the target language")
    directions: Directions = option(
        Directions.forward,
        "both = one model for both directions: each pair is used both ways, and a tag such as <2de> in front of the"
        " source names the target language",
    )
    reverse_target: bool = option(
        False,
        "the model writes every target from right to left, the last piece first, to judge the translations of other"
        " runs; what it translates is ordinary text",
    )
    max_pieces: int = option(
        256,
        "longest side of a training pair, in pieces; longer ones are left out and counted; 0 = no limit",
        minimum=0,
    )
    cache_dir: str = option("data/cache", "where tokenizers and tokenised corpora are kept, named by their content")
    num_processes: int = option(0, "processes that tokenise; 0 = one for each core", minimum=0, maximum=4_096)
    cleaning: CleaningConfig = option(CleaningConfig, "what is removed from the training text")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("source", "target"):
            is_code = bool(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", getattr(self, name)))
            self.require(is_code, name, "give a language code such as en, de or zh")
        self.require(
            self.directions is Directions.forward or self.source != self.target,
            "directions",
            f"data.source and data.target are both {self.source}; directions are told apart by their language codes",
        )


@dataclass
class DemoDataConfig(DataConfig):
    """The generated corpus that ships with the package."""

    kind: str = option("demo", "kind of corpus")
    folder: str = option("data/demo", "where the generated files are written")
    seed: int = option(1, "random seed of the generated sentences", minimum=0, maximum=LARGEST_SEED)
    num_train: int = option(20_000, "training pairs", minimum=1, maximum=MOST_SENTENCES)
    num_valid: int = option(1_000, "validation pairs", minimum=1, maximum=MOST_SENTENCES)
    num_test: int = option(1_000, "test pairs", minimum=1, maximum=MOST_SENTENCES)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("source", "target"):
            self.require(getattr(self, name) in ("en", "de", "zh"), name, "the demo corpus has en, de and zh")
        self.require(self.source != self.target, "target", "must differ from data.source")


@dataclass
class TextDataConfig(DataConfig):
    """Parallel text: PREFIX.en and PREFIX.de, each perhaps with .gz, or one tab-separated file NAME.tsv[.gz]."""

    train: Any = option(None, "prefix of the training files, or a list of prefixes")
    train_weights: list[float] | None = option(
        None, "how often an epoch sees each training corpus; 1 = once", minimum=1e-6, maximum=1_000_000
    )
    train_tags: list[str | None] | None = option(
        None, "a tag in front of the sources of each training corpus, such as bt for <bt>; null = none"
    )
    valid: str | None = option(None, "prefix of the validation files")
    test: str | None = option(None, "prefix of the test files, if there are any")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.source != self.target, "target", "must differ from data.source")
        self.require(self.train is not None, "train", "give the prefix of the training files (PREFIX.en, PREFIX.de)")
        self.require(self.valid is not None, "valid", "give the prefix of the validation files")
        prefixes = self.train_prefixes
        self.require(
            bool(prefixes) and all(isinstance(prefix, str) and prefix for prefix in prefixes),
            "train",
            "give one prefix or a list of them: 'data.train=[corpora/a,corpora/b]'",
        )
        self.require(
            self.train_weights is None or len(self.train_weights) == len(prefixes),
            "train_weights",
            f"give one positive number for each of the {len(prefixes)} training corpora",
        )
        tags = self.train_tags if self.train_tags is not None else [None] * len(prefixes)
        self.require(
            len(tags) == len(prefixes),
            "train_tags",
            f"give one tag, or null, for each of the {len(prefixes)} training corpora",
        )
        self.require(all(is_tag_name(tag) for tag in tags if tag is not None), "train_tags", TAG_REMEDY)
        languages = [f"2{language}" for language in (self.source, self.target)]
        self.require(
            not set(languages) & set(tags),
            "train_tags",
            f"{' and '.join(languages)} name the language to translate into (data.directions=both); use another tag",
        )

    @property
    def train_prefixes(self) -> list[str]:
        prefixes: list[str] = self.train if isinstance(self.train, list) else [self.train]
        return prefixes


@dataclass
class HubDataConfig(DataConfig):
    """Anything that `datasets.load_dataset` loads: a name on the hub, or `parquet`, `json`, `csv` with local files."""

    kind: str = option("hf", "kind of corpus")
    path: str | None = option(None, "the dataset's name on the hub, or parquet, json or csv")
    name: str | None = option(None, "the dataset's configuration, for example de-en")
    revision: str | None = option(None, "branch, tag or commit of the dataset")
    data_files: dict[str, Any] | None = option(None, "for each split a file, a pattern or a list of them")
    train_split: str = option("train", "name of the training split")
    valid_split: str = option("validation", "name of the validation split")
    test_split: str | None = option("test", "name of the test split; null where there is none")
    source_column: str | None = option(None, "column of the source; null = the language code")
    target_column: str | None = option(None, "column of the target; null = the language code")
    translation_column: str | None = option(
        None, 'column in which both are nested, as in {"translation": {"en": …, "de": …}}; null = translation, if any'
    )
    streaming: bool = option(False, "read while training and store nothing")
    shuffle_buffer: int = option(
        50_000,
        "pairs among which a streamed corpus is shuffled and bucketed by length; they are in memory",
        minimum=1,
        maximum=10_000_000,
    )
    tokenizer_sample: int = option(2_000_000, "pairs of a streamed corpus that the tokenizer is trained on", minimum=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(
            self.path is not None, "path", "give a dataset's name, or parquet, json or csv with data.data_files"
        )
        source, target = self.source_column or self.source, self.target_column or self.target
        self.require(
            source != target,
            "target_column" if self.target_column else "target",
            "source and target would be read from the same column",
        )


class TokenizerKind(StrEnum):
    bpe = "bpe"
    unigram = "unigram"
    char = "char"


@dataclass
class TokenizerConfig(Options):
    group: ClassVar[str] = "tokenizer"

    kind: TokenizerKind = option(TokenizerKind.bpe, "how text is split into pieces")
    vocab_size: int = option(
        8_000, "pieces of each vocabulary; of `char`, the largest number of characters", minimum=1, maximum=1_000_000
    )
    joint: bool = option(True, "one vocabulary for both languages")
    byte_fallback: bool = option(True, "write characters outside the vocabulary as bytes")
    character_coverage: float = option(
        1.0, "share of the characters of the text that get pieces", minimum=0.98, maximum=1
    )
    tags: list[str] = option([], "further tags to reserve, for runs that will start from this one (init_from)")
    sampling: float = option(
        0.0, "BPE-dropout probability, or the unigram model's sampling temperature; 0 = off", minimum=0, below=1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        smallest = NUM_SPECIAL + 1 + (NUM_BYTES if self.byte_fallback else 0)
        self.require(
            self.vocab_size >= smallest,
            "vocab_size",
            f"must be at least {smallest}, since special pieces come first"
            f"{', and bytes with tokenizer.byte_fallback=true' if self.byte_fallback else ''}",
        )
        self.require(all(map(is_tag_name, self.tags)), "tags", TAG_REMEDY)
        self.require(
            self.sampling == 0 or self.kind is not TokenizerKind.char,
            "sampling",
            "characters can be split in one way only; use tokenizer.kind=bpe or unigram",
        )
