"""One update: the gradient of a token budget, over micro-batches and ranks, clipped and applied."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from translator.data.batching import Batch
from translator.errors import Interrupted
from translator.models.base import Seq2Seq
from translator.training.distributed import Ranks
from translator.training.gradient_norms import GradientNorms
from translator.training.interfaces import Loader, Loss, Moment, Notify
from translator.training.memory import MemoryLimit, batch_size, is_out_of_memory, release_memory
from translator.training.not_finite import suspicious_rows
from translator.training.precision import Execution


@dataclass(frozen=True)
class UpdateOutcome:
    """Sums over all ranks; where something was not finite, the weights are as before and `suspects` names the rows."""

    loss_sum: float
    parts: dict[str, float]  # of the loss, by name
    num_tokens: int
    gradient_norm: float
    padding_share: float  # of this rank's batches
    is_finite: bool
    suspects: list[int] = field(default_factory=list)
    part_norms: dict[str, float] = field(default_factory=dict)  # of the gradient, by part of the model, if measured


class _MicroBatchResult(NamedTuple):
    batch: Batch
    part_names: list[str]
    sums: Tensor  # (1 + number of parts,): the loss and its parts


@dataclass
class Updater:
    """Gathers micro-batches and turns them into one step of the optimizer."""

    model: Seq2Seq
    loss: Loss
    optimizer: torch.optim.Optimizer
    execution: Execution
    ranks: Ranks
    notify: Notify
    clip_norm: float  # 0 = no clipping
    interrupted: Callable[[], bool] = lambda: False  # whether the process was asked to stop

    def __post_init__(self) -> None:
        self.memory = MemoryLimit()
        self.scaler = self.execution.grad_scaler()
        self.gradient_norms = GradientNorms(self.model)
        self._parameters = [p for group in self.optimizer.param_groups for p in group["params"]]

    def collect(self, batches: Iterator[Batch], loader: Loader, *, update_tokens: int, max_epochs: int) -> list[Batch]:
        """This rank's micro-batches of the next update: as many as bring all ranks nearest to the token budget."""
        collected: list[Batch] = []
        num_tokens = 0.0
        while True:
            collected.append(next(batches))
            num_tokens += self.ranks.sum(collected[-1].num_target_tokens)[0]
            half_a_batch = num_tokens / len(collected) / 2
            if num_tokens + half_a_batch >= update_tokens or 0 < max_epochs <= loader.epoch:
                return collected

    def __call__(
        self, batches: list[Batch], *, learning_rate: float, moment: Moment, measure_parts: bool = False
    ) -> UpdateOutcome:
        num_tokens = int(self.ranks.sum(sum(batch.num_target_tokens for batch in batches))[0])
        with self.ranks.interrupted_together():
            results = self._accumulate(batches, num_tokens, moment)
        self.ranks.sum_gradients(self._parameters)
        sums = torch.stack([result.sums for result in results]).sum(0)  # (1 + number of parts,)
        self.ranks.sum_tensors([sums])
        self.scaler.unscale_(self.optimizer)  # before clipping, which must see the true length
        part_norms = self.gradient_norms.measure().to(sums) if measure_parts else sums.new_empty(0)  # (P,)
        norm = self._clip()
        # Here an update waits for the device: no weight may see a gradient that is not finite.
        loss_sum, *figures, gradient_norm = torch.cat([sums, part_norms, norm[None].to(sums)]).tolist()
        is_finite = self._step_if_finite(loss_sum, gradient_norm, learning_rate)
        self.optimizer.zero_grad(set_to_none=True)
        return UpdateOutcome(
            loss_sum=loss_sum,
            parts=dict(zip(results[0].part_names, figures, strict=False)),
            num_tokens=num_tokens,
            gradient_norm=gradient_norm,
            padding_share=sum(batch.padding_share for batch in batches) / len(batches),
            is_finite=is_finite,
            suspects=[] if is_finite else suspicious_rows(((r.batch, r.sums) for r in results), self.ranks),
            part_norms=dict(zip(self.gradient_norms.names, figures[len(sums) - 1 :], strict=False)),
        )

    def _accumulate(self, batches: list[Batch], num_tokens: int, moment: Moment) -> list[_MicroBatchResult]:
        """Leaves the gradient of (sum of the losses) / num_tokens in the parameters; returns each micro-batch's sums.

        Running out of memory leaves a partial gradient, so the update restarts, and from then on uses smaller parts.
        """
        while True:
            parts = [part for batch in batches for part in self.memory.parts(batch)]
            results, failed = self._backward(parts, num_tokens, moment)
            if failed is None:
                return results
            results.clear()
            self.optimizer.zero_grad(set_to_none=True)
            release_memory(self.execution.device)
            self.memory.lower(failed)
            self.notify(
                f"out of memory with {len(failed)} sentence pairs, {batch_size(failed):,} positions: repeated, as all"
                f" larger micro-batches from now on, in parts of at most {self.memory.limit:,}; nothing is dropped"
            )

    def _backward(
        self, parts: list[Batch], num_tokens: int, moment: Moment
    ) -> tuple[list[_MicroBatchResult], Batch | None]:
        results: list[_MicroBatchResult] = []
        for part in parts:
            if results and self.interrupted():  # an update may take minutes, and a stop signal leaves only seconds
                raise Interrupted
            try:
                on_device = part.to(self.execution.device, non_blocking=True)
                with self.execution.autocast():
                    output = self.loss(self.model, on_device, moment)
                self.scaler.scale(output.loss_sum / num_tokens).backward()
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                return results, part
            sums = torch.stack([output.loss_sum.detach(), *output.parts.values()])
            results.append(_MicroBatchResult(part, list(output.parts), sums))
        return results, None

    def _clip(self) -> Tensor:
        if self.clip_norm > 0:
            return torch.nn.utils.clip_grad_norm_(self._parameters, self.clip_norm)
        return torch.nn.utils.get_total_norm([p.grad for p in self._parameters if p.grad is not None])

    def _step_if_finite(self, loss_sum: float, gradient_norm: float, learning_rate: float) -> bool:
        is_finite = math.isfinite(loss_sum) and math.isfinite(gradient_norm)
        # A float16 gradient that overflowed is routine for the scaler: it skips the step and lowers the scale.
        overflowed = math.isfinite(loss_sum) and not is_finite
        overflowed = overflowed and self.scaler.is_enabled() and self.scaler.get_scale() > 1
        if is_finite or overflowed:
            for group in self.optimizer.param_groups:
                group["lr"] = learning_rate
            self.scaler.step(self.optimizer)
        self.scaler.update()
        return is_finite or overflowed
