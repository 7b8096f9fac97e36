"""Muon: the momentum of every matrix is orthogonalised before it is applied (Jordan et al. 2024).

It is for the matrices of linear maps; embeddings, biases and norms keep AdamW.
torch.optim.Muon takes one matrix at a time and computes in bfloat16, which most CPUs only emulate; here all blocks of
one shape are multiplied as one batch, in the precision of the weights.
"""

from collections import defaultdict
from typing import Any

import torch
from torch import Tensor

MOMENTUM = 0.95
UPDATE_RMS = 0.2  # that of a typical update of Adam, so that both can share a learning rate (Liu et al. 2025, eq. 4)
ITERATIONS = 5
COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # maximise the slope at 0; singular values end between 0.7 and 1.2


def orthogonalized(matrices: Tensor) -> Tensor:
    """About U Vᵀ for each matrix U S Vᵀ of a batch, by a quintic Newton–Schulz iteration on its singular values."""
    is_tall = matrices.size(-2) > matrices.size(-1)
    x = matrices.mT if is_tall else matrices  # (number, m, n), m ≤ n
    x = x / x.norm(dim=(-2, -1), keepdim=True).clamp(min=1e-7)
    a, b, c = COEFFICIENTS
    for _ in range(ITERATIONS):
        gram = x @ x.mT  # (number, m, m)
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)  # a x + (b xxᵀ + c (xxᵀ)²) x
    return x.mT if is_tall else x


def square_blocks(matrix: Tensor) -> Tensor:
    """The square blocks of a matrix, (number, size, size), or all of it where they do not fit: (1, rows, columns).

    Stacked projections fall into their parts: queries, keys and values, or the gates of an LSTM.
    """
    rows, columns = matrix.shape
    size = min(rows, columns)
    if max(rows, columns) % size:
        return matrix[None]
    return matrix.view(-1, size, size) if rows >= columns else matrix.view(size, -1, size).transpose(0, 1)


class Muon(torch.optim.AdamW):
    """Muon for the groups marked `orthogonalize=True`, AdamW with the same learning rate for all others."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._step_supports_amp_scaling = False  # an overflow must skip both kinds of group

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        for group in self.param_groups:
            if group.get("orthogonalize"):
                self._step_matrices(group)
                for matrix in group["params"]:
                    matrix.grad = None  # AdamW passes over it
        return super().step(closure)

    def _step_matrices(self, group: dict[str, Any]) -> None:
        by_shape: dict[torch.Size, list[tuple[Tensor, Tensor]]] = defaultdict(list)
        for matrix in group["params"]:
            if matrix.grad is None:
                continue
            state = self.state[matrix]
            if not state:
                state["step"] = torch.zeros(())  # which Adam expects in every state that it loads
                state["momentum"] = torch.zeros_like(matrix)
            momentum = state["momentum"]
            momentum.lerp_(matrix.grad, 1 - MOMENTUM)
            ahead = matrix.grad.lerp(momentum, MOMENTUM)  # Nesterov's
            matrix.mul_(1 - group["lr"] * group["weight_decay"])
            blocks = square_blocks(ahead)
            by_shape[blocks.shape[1:]].append((square_blocks(matrix), blocks))
        for shape, pairs in by_shape.items():
            scale = group["lr"] * UPDATE_RMS * max(shape) ** 0.5
            updates = orthogonalized(torch.cat([blocks for _, blocks in pairs]))
            for (weights, _), update in zip(pairs, updates.split([len(w) for w, _ in pairs]), strict=True):
                weights.sub_(update, alpha=scale)
