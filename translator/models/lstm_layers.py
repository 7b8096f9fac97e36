"""Parts shared by the recurrent encoder and decoder. Sequences are time-first: T steps, B rows, H hidden size."""

import torch
from torch import Tensor, nn

from translator.attention.dropout import Dropout
from translator.kernels.choice import without_autocast

DROPOUT_KINDS = ("ordinary", "variational")


class LstmLayer(nn.Module):
    """A one-layer `nn.LSTM` with one bias instead of two, in a form that `torch.compile` accepts."""

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.input_weight = nn.Parameter(torch.empty(4 * hidden_size, input_size))
        self.recurrent_weight = nn.Parameter(torch.empty(4 * hidden_size, hidden_size))
        self.bias = nn.Parameter(torch.empty(4 * hidden_size))
        initialize_gates(self.input_weight, self.recurrent_weight, self.bias)

    def forward(self, inputs: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Inputs (T, B, D) and the state (B, H), (B, H) before them: the hidden states (T, B, H) and the last state.

        Computed in the type of the weights: a cell sums over the whole sentence, which takes more than half precision.
        """
        weights = (self.input_weight, self.recurrent_weight, self.bias, torch.zeros_like(self.bias))
        inputs, hidden, cell = (tensor.to(self.bias.dtype) for tensor in (inputs, hidden, cell))
        start = (hidden.unsqueeze(0).contiguous(), cell.unsqueeze(0).contiguous())  # cuDNN takes no other
        with without_autocast(inputs):
            # With biases, one layer, no dropout between layers, in one direction, time first.
            outputs, hidden, cell = torch.lstm(inputs, start, weights, True, 1, 0.0, self.training, False, False)
        return outputs, hidden.squeeze(0), cell.squeeze(0)


def lstm_cell(gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """From the gates before their nonlinearities (B, 4H), in torch's order i, f, g, o, to the new (hidden, cell).

    Hochreiter and Schmidhuber 1997 with the forget gate of Gers et al. 2000:
        c_t = σ(f) ⊙ c_{t-1} + σ(i) ⊙ tanh(g),    h_t = σ(o) ⊙ tanh(c_t)
    """
    input_gate, forget_gate, candidate, output_gate = gates.chunk(4, dim=-1)
    cell = forget_gate.sigmoid() * cell + input_gate.sigmoid() * candidate.tanh()
    return (output_gate.sigmoid() * cell.tanh()).to(gates.dtype), cell  # whose own type may be more precise


def initialize_gates(input_weight: Tensor, recurrent_weight: Tensor, bias: Tensor) -> None:
    """Xavier for the inputs and orthogonal for the recurrence, gate by gate, and a forget gate that begins open.

    A bias of 1 keeps the cell's memory, and so its gradient, alive over long sentences (Jozefowicz et al. 2015).
    """
    for gate in input_weight.chunk(4):
        nn.init.xavier_uniform_(gate)
    for gate in recurrent_weight.chunk(4):
        nn.init.orthogonal_(gate)
    nn.init.zeros_(bias)
    nn.init.ones_(bias.chunk(4)[1])


class SequenceDropout(nn.Module):
    """Dropout over sequences (T, B, D): a new mask at each step, or one mask for all steps of a sentence.

    The latter is the variational dropout of Gal and Ghahramani 2016 (arXiv:1512.05287), section 4.
    """

    def __init__(self, p: float, kind: str) -> None:
        super().__init__()
        if kind not in DROPOUT_KINDS:
            raise ValueError(f"dropout_kind must be one of {', '.join(DROPOUT_KINDS)}, not {kind}")
        self.dropout = Dropout(p)
        self.variational = kind == "variational"

    def draw(self, num_rows: int, size: int, like: Tensor) -> Tensor | None:
        """The factors (B, D) of all steps; None where there are none: in evaluation, and for ordinary dropout."""
        if not self.variational or not self.training or self.dropout.p == 0:
            return None
        result: Tensor | None = self.dropout(like.new_ones(num_rows, size))
        return result

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """`mask` comes from `draw` if several calls have to share it; otherwise x gets one of its own."""
        if not self.variational:
            result: Tensor = self.dropout(x)
            return result
        mask = self.draw(x.shape[1], x.shape[2], x) if mask is None else mask
        return x if mask is None else x * mask
