"""The one place where configuration becomes objects."""

import gc
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from translator.api import Translator
from translator.config import Config, ModelConfig
from translator.config import load_file as load_config
from translator.data.batching import BatchSampler
from translator.data.cleaning import CleanedSplits, Cleaning, clean
from translator.data.corpus import Corpus, Splits, open_text
from translator.data.hub import open_hub
from translator.data.loader import BatchLoader, BatchSource, CorpusBatches, fitted_batch_tokens, ordered_batches
from translator.data.streaming import StreamedBatches
from translator.data.tokenize_corpus import tokenize_corpus
from translator.data.tokenized_corpus import TokenizedCorpus, join_tokenized
from translator.data.tokenizer import Tokenizer, TokenizerOptions, train_or_load_tokenizer
from translator.demo.corpus import open_demo
from translator.errors import UserError
from translator.evaluation.diagnostics import diagnose
from translator.evaluation.metrics import score_corpus
from translator.files.fingerprints import combined_fingerprint
from translator.models.base import Seq2Seq
from translator.models.lstm import LstmSeq2Seq
from translator.models.transformer import Transformer
from translator.plots.attention import attention_figure, figure_pixels
from translator.plots.fonts import warn_of_missing
from translator.runs.directory import RunDirectory, find_weights
from translator.runs.weights import restore_weights
from translator.schema.data import DataConfig, DemoDataConfig, HubDataConfig, TextDataConfig
from translator.schema.model import LstmConfig, TransformerConfig
from translator.training.checkpoint import CheckpointStore
from translator.training.distributed import Ranks
from translator.training.ema import ExponentialMovingAverage
from translator.training.loss import TranslationLoss
from translator.training.monitor import Monitor
from translator.training.optimizer import build_optimizer
from translator.training.precision import Execution
from translator.training.progress import TrainerSettings
from translator.training.schedule import LearningRate
from translator.training.teacher_forcing import teacher_forcing_ratio
from translator.training.trainer import Trainer
from translator.training.validation import TextScores, Validator

# ---- models ----


def build_model(config: ModelConfig, source_vocab_size: int, target_vocab_size: int) -> Seq2Seq:
    """A new model; the options of a model's group are the arguments of its class."""
    options = {name: value for name, value in vars(config).items() if name not in ("kind", "teacher_forcing")}
    model_class: type[Seq2Seq] = LstmSeq2Seq if isinstance(config, LstmConfig) else Transformer
    try:
        return model_class(source_vocab_size, target_vocab_size, **options)
    except ValueError as error:
        raise UserError(f"model: {error}") from error


@dataclass(frozen=True)
class LoadedRun:
    config: Config
    tokenizer: Tokenizer
    model: Seq2Seq


def load_run(run_dir: Path, device: torch.device) -> LoadedRun:
    """The finished model of a run. Nothing that is read can contain code."""
    weights = find_weights(run_dir)
    config = load_config(run_dir / "config.yaml")
    tokenizer = Tokenizer.load(run_dir / "tokenizer")
    model = build_model(config.model, tokenizer.source_vocab_size, tokenizer.target_vocab_size)
    try:
        restore_weights(model, load_file(weights), str(weights))
    except SafetensorError as error:
        raise UserError(f"{weights}: damaged ({error}); copy the run again") from error
    return LoadedRun(config, tokenizer, model.to(device).eval())


# ---- data ----


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
    """Everything a run needs of its corpora."""

    raw: Splits
    cleaned: CleanedSplits
    tokenizer: Tokenizer
    train_tables: list[TokenizedCorpus]  # one for each training corpus; none when streaming

    def fingerprints(self) -> dict[str, Any]:
        """What a run that is resumed must find unchanged."""
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
    """Opens, cleans and tokenises the corpora; what was made before is reused."""
    data, cache_dir = config.data, Path(config.data.cache_dir)
    is_streamed = isinstance(data, HubDataConfig) and data.streaming
    raw = open_splits(data)
    if not is_streamed:
        raw.check()
    cleaned = clean(raw, Cleaning(**vars(data.cleaning)))
    tokenizer = _tokenizer(config, [corpus for corpus, _ in cleaned.train], cache_dir)
    tables = [] if is_streamed else [_table(config, corpus, tokenizer) for corpus, _ in cleaned.train]
    return PreparedData(raw, cleaned, tokenizer, tables)


def _tokenizer(config: Config, corpora: list[Any], cache_dir: Path) -> Tokenizer:
    options = {name: value for name, value in vars(config.tokenizer).items() if name != "sampling"}
    limit = config.data.tokenizer_sample if isinstance(config.data, HubDataConfig) and config.data.streaming else None
    fingerprint = combined_fingerprint("tokenizer", limit, *(corpus.fingerprint for corpus in corpora))
    pairs = islice(chain.from_iterable(corpora), limit)
    return train_or_load_tokenizer(cache_dir, fingerprint, TokenizerOptions(**options), pairs)


def _table(config: Config, corpus: Corpus, tokenizer: Tokenizer, max_pieces: int | None = None) -> TokenizedCorpus:
    data = config.data
    return tokenize_corpus(
        corpus,
        tokenizer,
        cache_dir=Path(data.cache_dir),
        num_processes=data.num_processes,
        max_pieces=data.max_pieces if max_pieces is None else max_pieces,
    )


def build_loader(config: Config, data: PreparedData, ranks: Ranks, pin_memory: bool = False) -> BatchLoader:
    """The endless training batches of this rank."""
    sampling, batch_tokens = config.tokenizer.sampling, config.trainer.batch_tokens
    place = {"seed": config.seed, "rank": ranks.rank, "num_ranks": ranks.count}
    source: BatchSource
    if data.train_tables:
        table = join_tokenized(data.train_tables)
        weights = [weight for _, weight in data.cleaned.train]
        sampler = BatchSampler(
            table.source_lengths,
            table.target_lengths,
            batch_tokens=fitted_batch_tokens(table, data.tokenizer, sampling, batch_tokens),
            parts=[(len(part), weight) for part, weight in zip(data.train_tables, weights, strict=True)],
            **place,
        )
        source = CorpusBatches(table, sampler, tokenizer=data.tokenizer, sampling=sampling)
    else:
        assert isinstance(config.data, HubDataConfig)
        source = StreamedBatches(
            data.cleaned.train[0][0],
            data.tokenizer,
            batch_tokens=batch_tokens,
            shuffle_buffer=config.data.shuffle_buffer,
            max_pieces=config.data.max_pieces,
            sampling=sampling,
            **place,
        )
    return BatchLoader(source, pin_memory=pin_memory)


# ---- training ----


def build_validator(
    config: Config,
    data: PreparedData,
    model: Seq2Seq,
    execution: Execution,
    ranks: Ranks,
    split: str = "valid",
) -> Validator | None:
    """Loss and scores on the validation or test set; None where there is no such set."""
    raw, cleaned = getattr(data.raw, split), getattr(data.cleaned, split)
    if raw is None:
        return None
    table = _table(config, cleaned, data.tokenizer, max_pieces=0)
    translator = Translator.from_config(config, model, data.tokenizer, execution.device)
    sources, references = zip(*raw, strict=True)
    return Validator(
        loss=TranslationLoss(config.optim.label_smoothing),
        batches=ordered_batches(table, config.trainer.batch_tokens),
        execution=execution,
        ranks=ranks,
        sources=sources,
        references=references,
        translate_lines=translator.translate,
        score=_scorer(config.data.target),
        draw_attention=lambda lines: list(_attention_images(translator, lines)),
        num_samples=config.trainer.num_samples,
    )


def _scorer(target_language: str) -> Callable[[list[str], list[str], list[str]], TextScores]:
    def score(hypotheses: list[str], references: list[str], sources: list[str]) -> TextScores:
        scores = score_corpus(hypotheses, references, target_language)
        found = diagnose(sources, hypotheses)
        rates = {"empty": found.empty, "copied": found.copied, "repeating": found.repeating}
        return TextScores(scores.bleu, scores.chrf, scores.signatures, rates)

    return score


def _attention_images(translator: Translator, lines: list[str]) -> Iterator[np.ndarray]:
    for translation in translator.translate_fully(lines, need_attention=True):
        for part in (translation.outputs[0].attention or [])[:1]:
            warn_of_missing("".join([*part.source_pieces, *part.target_pieces]))
            yield figure_pixels(attention_figure(part.source_pieces, part.target_pieces, part.weights.numpy()))
    gc.collect()  # figures hold themselves in cycles; left to Python's own time they were 85 MB after a few validations


def teacher_forcing_of(config: ModelConfig) -> Callable[[int], float]:
    if isinstance(config, TransformerConfig):
        return lambda update: 1.0
    options = config.teacher_forcing
    return lambda update: teacher_forcing_ratio(
        options.schedule, update, ratio=options.ratio, final_ratio=options.final_ratio, updates=options.updates
    )


def build_trainer(
    config: Config,
    *,
    model: Seq2Seq,
    loader: BatchLoader,
    validator: Validator,
    monitor: Monitor,
    execution: Execution,
    ranks: Ranks,
    run: RunDirectory,
    work_after_fit: float,
) -> Trainer:
    """`work_after_fit` is the time that the test set takes afterwards, in validations."""
    trainer, optim = config.trainer, config.optim
    return Trainer(
        model=model,
        loss=TranslationLoss(optim.label_smoothing),
        optimizer=build_optimizer(
            model,
            name=optim.name,
            learning_rate=optim.learning_rate,
            betas=optim.betas,
            eps=optim.eps,
            weight_decay=optim.weight_decay,
        ),
        learning_rate=LearningRate(
            optim.schedule, optim.learning_rate, optim.warmup_updates, optim.decay_share, optim.final_ratio
        ),
        loader=loader,
        validator=validator,
        checkpoints=CheckpointStore(run.checkpoints, keep_best=trainer.keep_best, keep_last=trainer.keep_last),
        weights_file=run.weights,
        monitor=monitor,
        settings=TrainerSettings(
            max_updates=trainer.max_updates,
            max_epochs=trainer.max_epochs,
            batches_per_epoch=loader.batches_per_epoch,
            max_seconds=trainer.max_seconds,
            update_tokens=trainer.update_tokens,
            validate_every=trainer.validate_every,
            save_every=trainer.save_every,
            patience=trainer.patience,
            best_metric=trainer.best_metric,
            average=trainer.average,
            clip_norm=optim.clip_norm,
            max_skipped=trainer.max_skipped,
            work_after_fit=work_after_fit,
        ),
        execution=execution,
        ranks=ranks,
        ema=ExponentialMovingAverage(model, trainer.ema_decay) if trainer.ema_decay else None,
        teacher_forcing=teacher_forcing_of(config.model),
    )
