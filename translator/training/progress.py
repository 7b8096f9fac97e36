"""How far a run has progressed, when it must end, and how many updates that allows."""

from dataclasses import dataclass, field
from typing import Any

_FIRST_VALIDATION = 1 / 4  # made by this share of the time after start-up, to learn its cost


@dataclass(frozen=True)
class TrainerSettings:
    """The loop's own options; 0 disables a limit unless stated otherwise."""

    max_updates: int
    max_epochs: int = 0
    batches_per_epoch: int = 0  # of each rank, to fit the schedule to max_epochs; 0 = unknown until the first one ends
    max_seconds: float | None = None
    update_tokens: int = 0  # 0 = one micro-batch for each rank
    validate_every: int = 0  # updates; 0 = once an epoch
    save_every: int = 0  # updates between checkpoints, besides those after a validation
    patience: int = 0
    best_metric: str = "bleu"  # loss, or one of the quick metrics
    average: str = "none"  # none, best or last: which of the kept checkpoints the final model averages
    clip_norm: float = 1.0
    max_skipped: int = 0
    work_after_fit: float = 1.0  # what the caller does afterwards within max_seconds, in units of a validation


@dataclass
class Progress:
    """Everything about the past of a run that decides its future. Stored as JSON."""

    update: int = 0
    seconds: float = 0.0  # since the process was started, and of the processes before it
    startup_seconds: float = 0.0  # of these, before the first update, also after each resume
    epoch: int = 0  # finished ones
    num_batches: int = 0  # micro-batches of each rank
    epoch_batches: int = 0  # … when the last epoch ended
    num_tokens: int = 0
    num_skipped: int = 0
    validated_at: int = 0  # update of the last validation
    validated_epoch: int = 0
    next_validation_seconds: float = 0.0  # an abandoned validation is not repeated before this time
    validation_seconds: float = 0.0  # the slower one of the latest two
    reserve_seconds: float = 0.0  # needed at the end of the run
    last_score: float | None = None
    best_score: float | None = None
    best_update: int = 0
    validations_without_improvement: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)  # metrics of all validations

    def record_update(self, num_batches: int, num_tokens: int, epoch: int) -> None:
        self.update += 1
        self.num_batches += num_batches
        self.num_tokens += num_tokens
        if epoch > self.epoch:
            self.epoch, self.epoch_batches = epoch, self.num_batches

    def record_validation(self, score: float, figures: dict[str, Any]) -> bool:
        """Returns whether it is the best so far."""
        is_best = self.best_score is None or score > self.best_score
        if is_best:
            self.best_score, self.best_update = score, self.update
        self.validations_without_improvement = 0 if is_best else self.validations_without_improvement + 1
        self.validated_at, self.validated_epoch, self.last_score = self.update, self.epoch, score
        self.history.append({"update": self.update, "seconds": round(self.seconds, 3), **figures})
        return is_best


@dataclass(frozen=True)
class Plan:
    """Decisions that follow from the settings and the progress so far."""

    settings: TrainerSettings

    @property
    def num_validations_at_the_end(self) -> float:
        """The last one, that of the average and the test set, which is not part of the loop, in its proportion."""
        return 1 + (self.settings.average != "none") + self.settings.work_after_fit

    def training_seconds(self, progress: Progress) -> float:
        """The part of the given time in which updates are made; the rest is for the final validation and evaluation."""
        assert self.settings.max_seconds is not None
        return self.settings.max_seconds - progress.reserve_seconds

    def expected_updates(self, progress: Progress) -> float:
        """How many updates there will be in all: by the limits, and at the average pace so far."""
        settings, done = self.settings, progress.update
        totals = [float(settings.max_updates)]
        per_epoch = settings.batches_per_epoch or progress.epoch_batches / max(1, progress.epoch)
        if done and settings.max_epochs and per_epoch:
            totals.append(done * settings.max_epochs * per_epoch / progress.num_batches)
        if done and settings.max_seconds and progress.seconds > progress.startup_seconds:
            share_done = (progress.seconds - progress.startup_seconds) / max(
                1e-9, self.training_seconds(progress) - progress.startup_seconds
            )
            totals.append(done / share_done)
        return max(min(totals), done)

    def reason_to_stop(self, progress: Progress) -> str | None:
        settings = self.settings
        if 0 < settings.patience <= progress.validations_without_improvement:
            return "patience"
        if progress.update >= settings.max_updates:
            return "max_updates"
        if 0 < settings.max_epochs <= progress.epoch:
            return "max_epochs"
        # Even if starting up took all the time, one update is made, so that there is a model to validate. After a
        # validation, training on is worthwhile if it lasts longer than the validation that it makes necessary.
        extra = progress.validation_seconds if progress.update == progress.validated_at else 0.0
        if settings.max_seconds and progress.update and progress.seconds + extra >= self.training_seconds(progress):
            return "max_time"
        return None

    def validation_is_due(self, progress: Progress) -> bool:
        if progress.update == progress.validated_at or progress.seconds < progress.next_validation_seconds:
            return False
        if self.settings.max_seconds:
            time_left = self.settings.max_seconds - progress.startup_seconds
            is_unknown = progress.validation_seconds == 0
            if is_unknown and progress.seconds > progress.startup_seconds + _FIRST_VALIDATION * time_left:
                return True
            # One that ends after the last update would take the place of the final one, before the rate has decayed;
            # and at least half of the time that is left is for training.
            if progress.seconds + 2 * progress.validation_seconds > self.training_seconds(progress):
                return False
        if self.settings.validate_every:
            return progress.update % self.settings.validate_every == 0
        return progress.epoch > progress.validated_epoch
