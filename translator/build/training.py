"""The trainer from a configuration."""

from collections.abc import Callable
from functools import partial

from translator.config import Config, ModelConfig
from translator.data.loader import BatchLoader
from translator.models.base import Seq2Seq
from translator.runs.directory import RunDirectory
from translator.schema.model import TransformerConfig
from translator.training.checkpoint import CheckpointStore
from translator.training.distributed import Ranks
from translator.training.ema import ExponentialMovingAverage
from translator.training.monitor import Monitor
from translator.training.objectives import build_loss
from translator.training.optimizer import build_optimizer
from translator.training.precision import Execution
from translator.training.progress import TrainerSettings
from translator.training.schedule import LearningRate
from translator.training.signals import Interruption
from translator.training.teacher_forcing import teacher_forcing_ratio
from translator.training.trainer import Trainer
from translator.training.two_way import AnyValidator
from translator.training.validation_estimate import estimate_validation


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
    validator: AnyValidator,
    monitor: Monitor,
    execution: Execution,
    ranks: Ranks,
    run: RunDirectory,
    interruption: Interruption | None = None,
    work_after_fit: float,
    reserved_seconds: float = 0.0,
    started: float | None = None,
) -> Trainer:
    """`work_after_fit` is how long the test set takes afterwards, in validations; `started` is as for `Trainer`.

    The trainer leaves `reserved_seconds` of `trainer.max_time` for what comes after it.
    """
    trainer, optim = config.trainer, config.optim
    optimizer = build_optimizer(
        model,
        name=optim.name,
        learning_rate=optim.learning_rate,
        betas=optim.betas,
        eps=optim.eps,
        weight_decay=optim.weight_decay,
    )
    learning_rate = LearningRate(
        optim.schedule, optim.learning_rate, optim.warmup_updates, optim.decay_share, optim.final_ratio
    )
    return Trainer(
        model=model,
        loss=build_loss(optim),
        optimizer=optimizer,
        learning_rate=learning_rate,
        loader=loader,
        validator=validator,
        estimate_validation=partial(estimate_validation, validator),
        checkpoints=CheckpointStore(run.checkpoints, keep_best=trainer.keep_best, keep_last=trainer.keep_last),
        weights_file=run.weights,
        monitor=monitor,
        settings=_settings(config, loader.batches_per_epoch, work_after_fit, reserved_seconds),
        execution=execution,
        ranks=ranks,
        interruption=interruption or Interruption(),
        ema=ExponentialMovingAverage(model, trainer.ema_decay) if trainer.ema_decay else None,
        teacher_forcing=teacher_forcing_of(config.model),
        started=started,
    )


def _settings(
    config: Config, batches_per_epoch: int, work_after_fit: float, reserved_seconds: float
) -> TrainerSettings:
    trainer = config.trainer
    return TrainerSettings(
        max_updates=trainer.max_updates,
        max_epochs=trainer.max_epochs,
        batches_per_epoch=batches_per_epoch,
        max_seconds=None if trainer.max_seconds is None else max(0.0, trainer.max_seconds - reserved_seconds),
        update_tokens=trainer.update_tokens,
        validate_every=trainer.validate_every,
        save_every=trainer.save_every,
        patience=trainer.patience,
        best_metric=trainer.best_metric,
        average=trainer.average,
        clip_norm=config.optim.clip_norm,
        max_skipped=trainer.max_skipped,
        work_after_fit=work_after_fit,
    )
