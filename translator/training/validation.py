"""How good the model is now: loss on held-out pairs, and scores of real translations."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Self

import torch

from translator.data.batching import Batch
from translator.errors import Interrupted
from translator.models.base import Seq2Seq, evaluation_mode
from translator.training.distributed import Ranks
from translator.training.interfaces import Loss
from translator.training.precision import Execution
from translator.training.validation_result import Sample, TextScores, ValidationResult

_NUM_ESTIMATED = 64  # sentences whose translation is timed to estimate that of all


@dataclass
class Validator:
    """Loss over batches and scores over raw lines, each shared out among the ranks.

    `translate_lines` translates with the very model that is validated (its weights may be swapped in place meanwhile);
    `score(hypotheses, references, sources)` knows the metrics; `draw_attention(sources)` makes one image for each.
    """

    loss: Loss
    batches: Iterable[Batch]  # the same for each pass, on every rank
    execution: Execution
    ranks: Ranks = field(default_factory=Ranks)
    sources: Sequence[str] = ()
    references: Sequence[str] = ()
    translate_lines: Callable[[list[str]], list[str]] | None = None
    score: Callable[[list[str], list[str], list[str]], TextScores] | None = None
    draw_attention: Callable[[list[str]], list[Any]] | None = None
    num_samples: int = 4
    interrupted: Callable[[], bool] = lambda: False  # polled; if it is True on any rank, all raise `Interrupted`

    @property
    def size(self) -> int:
        """A measure of the work: the characters of all sources."""
        return sum(map(len, self.sources))

    def limited(self, sentences: slice) -> Self:
        """Only these sentences and the first batch, for callers that need a validation but not its result."""
        first_batch = list(islice(self.batches, 1))
        return replace(
            self, batches=first_batch, sources=self.sources[sentences], references=self.references[sentences]
        )

    def estimate_seconds(self, model: Seq2Seq) -> float:
        """About how long a validation would take, from a few sentences spread over the set; the same on all ranks."""
        step = max(1, len(self.sources) // _NUM_ESTIMATED)
        spread = replace(self.limited(slice(None, None, step)), num_samples=0)
        translating = spread(model).seconds * self.size / max(1, spread.size)
        # The pictures are timed by themselves: there are as many of them however few sentences are translated.
        pictures = self.limited(slice(self.num_samples))
        return translating + pictures(model).seconds

    @torch.no_grad()
    def __call__(self, model: Seq2Seq) -> ValidationResult:
        started = time.monotonic()
        shown = list(self.sources[: self.num_samples]) if self.translate_lines else []
        with evaluation_mode(model):
            loss_sum, part_sums, num_tokens = self._loss(model)
            hypotheses, images = self._translate(shown)
        scores = (
            self.score(hypotheses, list(self.references), list(self.sources)) if hypotheses and self.score else None
        )
        (seconds,) = self.ranks.maximum(time.monotonic() - started)
        return ValidationResult(
            loss=loss_sum / max(1, num_tokens),
            parts={name: value / max(1, num_tokens) for name, value in part_sums.items()},
            num_tokens=num_tokens,
            scores=scores,
            samples=[Sample(*texts) for texts in zip(shown, self.references, hypotheses, strict=False)],
            images=images,
            seconds=seconds,
        )

    def _loss(self, model: Seq2Seq) -> tuple[float, dict[str, float], int]:
        """The loss, its parts and the target tokens, each summed over the batches of all ranks."""
        loss_sum, num_tokens = 0.0, 0
        parts: dict[str, float] = {}
        for of_rank in self.ranks.gather_work(lambda: self._own_loss(model), self.interrupted):
            loss_sum, num_tokens = loss_sum + of_rank[0], num_tokens + of_rank[2]
            _add(parts, of_rank[1])  # a rank without a batch does not know the names
        return loss_sum, parts, num_tokens

    def _own_loss(self, model: Seq2Seq) -> tuple[float, dict[str, float], int]:
        """The same over the batches of this rank."""
        loss_sum, num_tokens = 0.0, 0
        parts: dict[str, float] = {}
        for batch in islice(self.batches, self.ranks.rank, None, self.ranks.count):
            if self.interrupted():
                raise Interrupted
            with self.execution.autocast():
                output = self.loss(model, batch.to(self.execution.device))
            loss_sum, num_tokens = loss_sum + output.loss_sum.item(), num_tokens + output.num_tokens
            _add(parts, {name: part.item() for name, part in output.parts.items()})
        return loss_sum, parts, num_tokens

    def _translate(self, shown: list[str]) -> tuple[list[str], list[Any]]:
        """The translations of all lines, on every rank, and on the first rank the images of the lines to be shown."""
        translate = self.translate_lines
        if translate is None:
            return [], []
        images: list[Any] = []

        def work() -> list[str]:
            share = translate(list(self.sources[self.ranks.rank :: self.ranks.count]))
            if shown and self.draw_attention and self.ranks.is_main:
                images.extend(self.draw_attention(shown))
            return share

        hypotheses = [""] * len(self.sources)
        for rank, share in enumerate(self.ranks.gather_work(work, self.interrupted)):
            hypotheses[rank :: self.ranks.count] = share
        return hypotheses, images


def _add(sums: dict[str, float], values: dict[str, float]) -> None:
    for name, value in values.items():
        sums[name] = sums.get(name, 0.0) + value
