"""Corpora, tokenizer, tables and batches from a configuration."""

from dataclasses import asdict, dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from translator.build.initial_weights import tokenizer_folder
from translator.config import Config
from translator.data.batching import BatchSampler
from translator.data.cleaning import CleanedSplits, Cleaning, clean
from translator.data.corpus import Corpus, Splits, open_text
from translator.data.examples import Reading, Table, language_tag, read_in_ways, tag_piece
from translator.data.hub import open_hub
from translator.data.loader import BatchLoader, BatchSource, CorpusBatches, fitted_batch_tokens
from translator.data.normalization import normalize_text
from translator.data.streaming import StreamedBatches
from translator.data.tokenize_corpus import tokenize_corpus
from translator.data.tokenized_corpus import TokenizedCorpus, join_tokenized
from translator.data.tokenizer import Tokenizer, TokenizerOptions, train_or_load_tokenizer
from translator.demo.corpus import open_demo
from translator.errors import UserError, require
from translator.files.fingerprints import combined_fingerprint
from translator.progress_display import Watched
from translator.runs.directions import directions_of
from translator.schema.data import DataConfig, DemoDataConfig, Directions, HubDataConfig, TextDataConfig
from translator.schema.training import TrainerConfig
from translator.training.distributed import Ranks

MOST_EPOCHS = 10  # in one update


def open_splits(config: DataConfig) -> Splits:
    """The corpora as they are on the disk or on the hub."""
    languages: dict[str, Any] = {"source": config.source, "target": config.target}
    if isinstance(config, DemoDataConfig):
        sizes = {name: getattr(config, name) for name in ("seed", "num_train", "num_valid", "num_test")}
        return open_demo(folder=config.folder, **languages, **sizes)
    if isinstance(config, TextDataConfig):
        assert config.valid is not None
        return open_text(
            **languages,
            train=config.train_prefixes,
            train_weights=config.train_weights,
            valid=config.valid,
            test=config.test,
        )
    assert isinstance(config, HubDataConfig)
    assert config.path is not None
    names = ("path", "name", "revision", "data_files", "train_split", "valid_split", "test_split")
    columns = ("source_column", "target_column", "translation_column", "streaming")
    return open_hub(**languages, **{name: getattr(config, name) for name in names + columns})


@dataclass(frozen=True)
class PreparedData:
    """Everything a run needs from its corpora."""

    raw: Splits
    cleaned: CleanedSplits
    tokenizer: Tokenizer
    train_tables: list[TokenizedCorpus]  # one for each training corpus; none when streaming
    ways: list[list[Reading]]  # in which the training corpora become examples, with a reading for each of them

    def fingerprints(self) -> dict[str, Any]:
        """What must be unchanged when a run is resumed."""
        test = self.raw.test.fingerprint if self.raw.test else None
        return {
            "train": [corpus.fingerprint for corpus, _ in self.cleaned.train],
            "valid": self.raw.valid.fingerprint,
            "test": test,
            "tokenizer": self.tokenizer.fingerprint,
        }

    def files(self) -> list[dict[str, Any]]:
        corpora = [*(corpus for corpus, _ in self.raw.train), *self.raw.held_out]
        return [asdict(file) for corpus in corpora for file in corpus.files]

    def reports(self) -> list[Any]:
        return [table.cleaning_report for table in self.train_tables if table.cleaning_report is not None]


def prepare_data(config: Config) -> PreparedData:
    """Opens, cleans and tokenises the corpora; cached results are reused."""
    data, cache_dir = config.data, Path(config.data.cache_dir)
    is_streamed = isinstance(data, HubDataConfig) and data.streaming
    raw = open_splits(data)
    if not is_streamed:
        raw.check()
    for corpus in raw.held_out:
        _require_text(corpus)
    cleaned = clean(raw, Cleaning(**vars(data.cleaning)), two_way=data.directions is Directions.both)
    tokenizer = _initial_tokenizer(config) or _tokenizer(config, [corpus for corpus, _ in cleaned.train], cache_dir)
    ways = _ways(config, tokenizer, len(cleaned.train))
    tables = [] if is_streamed else [tokenized(config, corpus, tokenizer) for corpus, _ in cleaned.train]
    return PreparedData(raw, cleaned, tokenizer, tables, ways)


def _require_text(corpus: Corpus) -> None:
    """Refuses validation and test sets without a single pair that has text on both sides: their scores mean nothing."""
    only_blank = Cleaning(drop_blank=True, max_characters=0, max_ratio=0, drop_identical=False)
    if all(only_blank.fault(normalize_text(source), normalize_text(target)) for source, target in corpus):
        raise UserError(f"{corpus.name}: every line is blank on one side at least; a score needs sentences")


def _tokenizer(config: Config, corpora: list[Any], cache_dir: Path) -> Tokenizer:
    options = {name: value for name, value in vars(config.tokenizer).items() if name not in ("sampling", "tags")}
    options["tags"] = tuple(map(tag_piece, _tag_names(config)))
    limit = config.data.tokenizer_sample if isinstance(config.data, HubDataConfig) and config.data.streaming else None
    fingerprint = combined_fingerprint("tokenizer", limit, *(corpus.fingerprint for corpus in corpora))
    pairs = Watched(
        islice(chain.from_iterable(corpora), limit), "reading and cleaning the text for the tokenizer", limit
    )
    return train_or_load_tokenizer(cache_dir, fingerprint, TokenizerOptions(**options), pairs)


def _initial_tokenizer(config: Config) -> Tokenizer | None:
    """The tokenizer of the run that `init_from` names; refused if it lacks a tag that is needed now."""
    folder = tokenizer_folder(config)
    if folder is None:
        return None
    tokenizer, needed = Tokenizer.load(folder), _tag_names(config)
    missing = [name for name in needed if tag_piece(name) not in tokenizer.tag_ids]
    if missing:
        raise UserError(
            f"init_from={config.init_from}: its vocabulary has no {' and no '.join(map(tag_piece, missing))}, which "
            f"this run needs; train that run with 'tokenizer.tags=[{','.join(missing)}]', or leave init_from out"
        )
    return tokenizer


def _tag_names(config: Config) -> list[str]:
    """The tags that the tokenizer must reserve, each once."""
    data = config.data
    languages = [data.target, data.source] if data.directions is Directions.both else []
    return list(
        dict.fromkeys([*map(language_tag, languages), *filter(None, _corpus_tags(data)), *config.tokenizer.tags])
    )


def _corpus_tags(data: DataConfig) -> list[str | None]:
    """The tag of each training corpus; an empty list if none has one."""
    return (data.train_tags or []) if isinstance(data, TextDataConfig) else []


def _ways(config: Config, tokenizer: Tokenizer, num_corpora: int) -> list[list[Reading]]:
    """One way for each direction. The tag of a corpus comes after that of the language."""
    tags = [() if tag is None else (tokenizer.tag_ids[tag_piece(tag)],) for tag in _corpus_tags(config.data)]
    return [
        [replace(direction.reading, tags=direction.tags + tag) for tag in tags or [()] * num_corpora]
        for direction in directions_of(config, tokenizer)
    ]


def tokenized(config: Config, corpus: Corpus, tokenizer: Tokenizer, max_pieces: int | None = None) -> TokenizedCorpus:
    """The corpus as rows of ids; `max_pieces` replaces the limit in the configuration."""
    data = config.data
    return tokenize_corpus(
        corpus,
        tokenizer,
        cache_dir=Path(data.cache_dir),
        num_processes=data.num_processes,
        max_pieces=data.max_pieces if max_pieces is None else max_pieces,
        watch=Watched,
    )


def micro_batch_tokens(config: TrainerConfig, num_ranks: int) -> int:
    """`batch_tokens`, or less: every rank takes part in an update, so a micro-batch is at most its share of one."""
    if not config.update_tokens:
        return config.batch_tokens
    return max(1, min(config.batch_tokens, config.update_tokens // num_ranks))


def build_loader(config: Config, data: PreparedData, ranks: Ranks, pin_memory: bool = False) -> BatchLoader:
    """The endless training batches of this rank."""
    sampling, batch_tokens = config.tokenizer.sampling, micro_batch_tokens(config.trainer, ranks.count)
    place = {"seed": config.seed, "rank": ranks.rank, "num_ranks": ranks.count}
    source: BatchSource
    if data.train_tables:
        is_plain = all(reading.is_plain for way in data.ways for reading in way)
        table: Table = join_tokenized(data.train_tables) if is_plain else read_in_ways(data.train_tables, data.ways)
        weights = [weight for _, weight in data.cleaned.train] * len(data.ways)
        parts = data.train_tables * len(data.ways)
        shares = list(zip(parts, weights, strict=True))
        epoch_tokens = sum(weight * int(part.target_lengths.sum()) for part, weight in shares)
        _check_update_tokens(config.trainer.update_tokens, epoch_tokens)
        sampler = BatchSampler(
            table.source_lengths,
            table.target_lengths,
            batch_tokens=fitted_batch_tokens(table, data.tokenizer, sampling, batch_tokens),
            parts=[(len(part), weight) for part, weight in shares],
            **place,
        )
        source = CorpusBatches(
            table, sampler, tokenizer=data.tokenizer, sampling=sampling, reverse_target=config.data.reverse_target
        )
    else:
        assert isinstance(config.data, HubDataConfig)
        source = StreamedBatches(
            data.cleaned.train[0][0],
            data.tokenizer,
            batch_tokens=batch_tokens,
            shuffle_buffer=config.data.shuffle_buffer,
            max_pieces=config.data.max_pieces,
            sampling=sampling,
            readings=[way[0] for way in data.ways],
            reverse_target=config.data.reverse_target,
            **place,
        )
    return BatchLoader(source, pin_memory=pin_memory)


def _check_update_tokens(update_tokens: int, epoch_tokens: float) -> None:
    """Refuses updates of so many epochs that training would seem to stand still."""
    require(
        update_tokens <= MOST_EPOCHS * epoch_tokens,
        "trainer.update_tokens",
        update_tokens,
        f"an epoch has {epoch_tokens:,.0f} target tokens, and an update may take at most {MOST_EPOCHS} epochs; give at "
        f"most {MOST_EPOCHS * epoch_tokens:.0f}",
    )
