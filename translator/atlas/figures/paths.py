"""How far information travels: the number of sequential steps, and the gradient between distant positions."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import Node

from translator.atlas.figures.complexity import WINDOW
from translator.atlas.material import Material
from translator.attention.multihead import MultiHeadAttention
from translator.models.lstm_layers import LstmLayer, lstm_cell

WIDTH, NUM_HEADS = 64, 4
LENGTH = 128
CONVOLUTIONS = 4  # stacked
NUM_DIRECTIONS, NUM_DIRECTIONS_QUICK = 32, 8  # random directions of the last output whose gradients are averaged
CHAIN_LENGTHS = [8, 16, 32, 64, 128]
SEED = 11


class Convolutions(nn.Module):
    """A stack of convolutions, each of which sees one more neighbour on either side."""

    def __init__(self, width: int, count: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv1d(width, width, WINDOW, padding=WINDOW // 2) for _ in range(count))

    def forward(self, x: Tensor) -> Tensor:
        x = x.T[None]  # (1, D, n)
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x[0].T


def step_by_step(layer: LstmLayer, x: Tensor) -> Tensor:
    """An LSTM straight from its definition, step by step: (n, D) to (n, H)."""
    hidden = cell = x.new_zeros(1, layer.recurrent_weight.shape[1])
    outputs = []
    for row in x:
        gates = row @ layer.input_weight.T + hidden @ layer.recurrent_weight.T + layer.bias
        hidden, cell = lstm_cell(gates, cell)
        outputs.append(hidden)
    return torch.cat(outputs)


def chain_length(output: Tensor) -> int:
    """The longest chain of operations that had to be computed in sequence, read from the autograd graph."""
    depths: dict[Node, int] = {}
    assert output.grad_fn is not None
    stack = [output.grad_fn]
    while stack:
        node = stack[-1]
        below = [other for other, _ in node.next_functions if other is not None]
        waiting = [other for other in below if other not in depths]
        if waiting:
            stack += waiting
            continue
        depths[stack.pop()] = 1 + max((depths[other] for other in below), default=0)
    return depths[output.grad_fn]


def sequential(material: Material) -> dict[str, Any]:
    """Chains of operations by the length of the sequence."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        attention, layer = MultiHeadAttention(WIDTH, NUM_HEADS), LstmLayer(WIDTH, WIDTH)
        convolutions = Convolutions(WIDTH, CONVOLUTIONS)
    rows = []
    for length in CHAIN_LENGTHS:
        x = torch.randn(length, WIDTH, generator=torch.Generator().manual_seed(SEED)).requires_grad_()
        attended, _ = attention(x[None], None, None, need_weights=True)
        rows.append(
            {
                "length": length,
                "attention": chain_length(attended),
                "recurrence": chain_length(step_by_step(layer, x)),
                "convolution": chain_length(convolutions(x)),
            }
        )
    return {"num_convolutions": CONVOLUTIONS, "rows": rows}


def gradients(material: Material) -> dict[str, Any]:
    """How strongly the last output depends on each input, by distance, in untrained modules of the same width.

    ‖∂(u · y_n) / ∂x_(n − Δ)‖ for random unit vectors u, as the root of the mean square, relative to distance 0.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        attention, layer = MultiHeadAttention(WIDTH, NUM_HEADS), LstmLayer(WIDTH, WIDTH)
        convolutions = Convolutions(WIDTH, CONVOLUTIONS)
        x = torch.randn(LENGTH, WIDTH)
        count = NUM_DIRECTIONS_QUICK if material.quick else NUM_DIRECTIONS
        directions = torch.nn.functional.normalize(torch.randn(count, WIDTH), dim=-1)
    runs: dict[str, Callable[[Tensor], Tensor]] = {
        "attention": lambda x: attention(x[None], None, None)[0][0],
        "recurrence": lambda x: layer(x[:, None], x.new_zeros(1, WIDTH), x.new_zeros(1, WIDTH))[0][:, 0],
        "convolution": convolutions,
    }
    found = {}
    for name, run in runs.items():
        held = x.clone().requires_grad_()
        last = run(held)[-1]  # (D,)
        squares = torch.zeros(LENGTH, dtype=torch.float64)
        for direction in directions:
            (gradient,) = torch.autograd.grad(last @ direction, held, retain_graph=True)
            squares += gradient.double().square().sum(-1)
        norms = (squares / len(directions)).sqrt().flip(0)  # by distance from the last position
        found[name] = [float(f"{value:.4g}") for value in (norms / norms[0]).tolist()]
    reach = CONVOLUTIONS * (WINDOW // 2)
    return {
        "width": WIDTH,
        "length": LENGTH,
        "num_convolutions": CONVOLUTIONS,
        "reach": reach,
        "distances": list(range(LENGTH)),
        "gradients": found,
    }
