"""The encoder of Bahdanau et al. 2015 (arXiv:1409.0473), section 3.2: every word is annotated from both sides.

Letters: S source length, B sentences, E embedding size, H hidden size of one direction.
"""

from typing import Any

import torch
from torch import Tensor, nn

from translator.models.lstm_layers import LstmLayer, SequenceDropout


class BidirectionalEncoder(nn.Module):
    """Layers of two LSTMs, one reading forwards and one backwards.

    Padding never enters a state that counts. Reading forwards it comes after all real words; for reading backwards each
    sentence is turned round within its own length, so padding comes last again. The result is that of packed sequences
    (there is a test). These are slower on the CPU, where torch's backward pass clears a gradient of the size of the
    whole batch at every step of a packed sequence; on GPUs they have to wait for the lengths.
    """

    def __init__(self, input_size: int, hidden_size: int, num_layers: int, dropout: float, dropout_kind: str) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        sizes = [input_size] + [2 * hidden_size] * (num_layers - 1)
        self.forwards = nn.ModuleList(LstmLayer(size, hidden_size) for size in sizes)
        self.backwards = nn.ModuleList(LstmLayer(size, hidden_size) for size in sizes)
        self.dropout = SequenceDropout(dropout, dropout_kind)

    def forward(self, inputs: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Embeddings (S, B, E) and mask (B, S), True before False in each row, to the annotations and their summary.

        Dropout acts on the input of every layer and on the annotations (S, B, 2H). The summary (B, 2H) is what each
        direction knows at its end of the sentence: [→h_S, ←h_1]. An empty sentence has a summary of zeros.
        """
        lengths = mask.sum(dim=1)  # (B,)
        turned = _reversal(lengths, inputs.shape[0])  # (S, B)
        last = (lengths - 1).clamp(min=0).unsqueeze(0)  # (1, B)
        start = inputs.new_zeros(inputs.shape[1], self.hidden_size)
        states, summary = inputs, inputs  # both replaced by the first layer
        for forwards, backwards in zip(self.forwards, self.backwards, strict=True):
            states = self._drop(states)
            ahead, _, _ = forwards(states, start, start)  # (S, B, H)
            back, _, _ = backwards(_Turn.apply(states, turned), start, start)  # (S, B, H), turned round
            states = torch.cat((ahead, _Turn.apply(back, turned)), dim=-1)  # (S, B, 2H)
            summary = torch.cat((_take(ahead, last), _take(back, last)), dim=-1).squeeze(0)  # (B, 2H)
        return self._drop(states), summary * mask.any(dim=1, keepdim=True)

    def _drop(self, sequence: Tensor) -> Tensor:
        _, num_rows, size = sequence.shape
        return self.dropout(sequence, self.dropout.draw(num_rows, size, sequence))


def _reversal(lengths: Tensor, num_steps: int) -> Tensor:
    """Which step of each sentence stands where when the sentence is turned round and its padding stays in place."""
    steps = torch.arange(num_steps, device=lengths.device).unsqueeze(1)  # (S, 1)
    return torch.where(steps < lengths, lengths - 1 - steps, steps)  # (S, B)


class _Turn(torch.autograd.Function):
    """Turns each sentence of a sequence (S, B, D) round. Twice is not at all, so the gradient is turned likewise.

    Autograd would not know and add up, element by element, where each number goes to a place of its own.
    """

    @staticmethod
    def forward(sequence: Tensor, turned: Tensor) -> Tensor:
        num_rows = sequence.shape[1]
        rows = turned * num_rows + torch.arange(num_rows, device=turned.device)  # (S, B)
        return sequence.flatten(0, 1).index_select(0, rows.flatten()).view_as(sequence)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(inputs[1])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (turned,) = ctx.saved_tensors
        return _Turn.forward(gradients[0], turned), None


def _take(sequence: Tensor, steps: Tensor) -> Tensor:
    """The chosen steps (N, B) of each sentence of a sequence (S, B, D)."""
    return sequence.gather(0, steps.unsqueeze(-1).expand(-1, -1, sequence.shape[-1]))  # (N, B, D)
