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

LossSums = tuple[float, dict[str, float], int]  # the loss, its parts by name, and the number of target tokens


@dataclass
class Validator:
    """Loss over batches and scores over raw lines, each shared out among the ranks."""

    loss: Loss
    batches: Iterable[Batch]  # the same for each pass, on every rank
    execution: Execution
    ranks: Ranks = field(default_factory=Ranks)
    sources: Sequence[str] = ()
    references: Sequence[str] = ()
    translate_lines: Callable[[list[str]], list[str]] | None = None  # with the weights being validated
    score: Callable[[list[str], list[str], list[str]], TextScores] | None = None  # hypotheses, references, sources
    draw_attention: Callable[[list[str]], list[Any]] | None = None  # an image for each source
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

    @torch.no_grad()
    def __call__(self, model: Seq2Seq) -> ValidationResult:
        started = time.monotonic()
        shown = list(self.sources[: self.num_samples]) if self.translate_lines else []
        with evaluation_mode(model):
            loss_sum, part_sums, num_tokens = self._loss(model)
            hypotheses, images = self._translate(shown)
        scores = None
        if hypotheses and self.score:
            scores = self.score(hypotheses, list(self.references), list(self.sources))
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

    def _loss(self, model: Seq2Seq) -> LossSums:
        """Over the batches of all ranks."""
        own_batches = islice(self.batches, self.ranks.rank, None, self.ranks.count)
        of_ranks = self.ranks.gather_work(
            lambda: _sum(self._loss_of_batch(model, batch) for batch in own_batches), self.interrupted
        )
        return _sum(of_ranks)

    def _loss_of_batch(self, model: Seq2Seq, batch: Batch) -> LossSums:
        if self.interrupted():
            raise Interrupted
        with self.execution.autocast():
            output = self.loss(model, batch.to(self.execution.device))
        return output.loss_sum.item(), {name: part.item() for name, part in output.parts.items()}, output.num_tokens

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


def _sum(terms: Iterable[LossSums]) -> LossSums:
    loss_sum, num_tokens = 0.0, 0
    part_sums: dict[str, float] = {}
    for loss, parts, tokens in terms:
        loss_sum, num_tokens = loss_sum + loss, num_tokens + tokens
        for name, value in parts.items():  # none on a rank that had no batch
            part_sums[name] = part_sums.get(name, 0.0) + value
    return loss_sum, part_sums, num_tokens
