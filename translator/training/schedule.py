"""Learning-rate schedules: pure functions of the update, counted from 1, and of the expected number of updates.

They keep no state, so there is nothing to restore when a run is resumed.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

# Warm-up takes at most this share of all updates, for runs that are short, for example because of trainer.max_time.
MAX_WARMUP_SHARE = 0.25


def inverse_sqrt(update: int, warmup: float) -> float:
    """min(u / w, sqrt(w / u)): Vaswani et al. 2017, equation 3, scaled to a peak of 1 at update w."""
    return min(update / warmup, math.sqrt(warmup / update))


def cosine(update: int, total: float, warmup: float, final_ratio: float) -> float:
    """Half a cosine from the end of warm-up down to the last update (Loshchilov and Hutter 2017, equation 5)."""
    share = min(1.0, max(0.0, update - warmup) / max(1.0, total - warmup))
    return min(update / warmup, final_ratio + (1 - final_ratio) * (1 + math.cos(math.pi * share)) / 2)


def warmup_stable_decay(update: int, total: float, warmup: float, decay_share: float, final_ratio: float) -> float:
    """Holds the peak until the last `decay_share` of all updates, then decays linearly (Hu et al. 2024)."""
    decay = max(1.0, min(decay_share * total, total - warmup))
    share = min(1.0, max(0.0, total - update) / decay)
    return min(update / warmup, final_ratio + (1 - final_ratio) * share)


def constant(update: int, warmup: float) -> float:
    return min(update / warmup, 1.0)


@dataclass(frozen=True)
class LearningRate:
    """The learning rate of update u of N: `peak` times one of the factors above."""

    name: str  # inverse_sqrt, cosine, wsd or constant
    peak: float
    warmup_updates: int
    decay_share: float = 0.2
    final_ratio: float = 0.0

    def __call__(self, update: int, total: float) -> float:
        warmup = max(1.0, min(self.warmup_updates, MAX_WARMUP_SHARE * total))
        factors: dict[str, Callable[[], float]] = {
            "inverse_sqrt": lambda: inverse_sqrt(update, warmup),
            "cosine": lambda: cosine(update, total, warmup, self.final_ratio),
            "wsd": lambda: warmup_stable_decay(update, total, warmup, self.decay_share, self.final_ratio),
            "constant": lambda: constant(update, warmup),
        }
        return self.peak * factors[self.name]()
