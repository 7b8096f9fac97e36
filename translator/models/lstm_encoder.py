"""The encoder of Bahdanau et al. 2015 (arXiv:1409.0473), section 3.2: every word is annotated from both sides.

Letters: S source length, B sentences, E embedding size, H hidden size of one direction.
"""

import torch
from torch import Tensor, nn

from translator.kernels.reversal import reverse, reversed_steps
from translator.models.lstm_layers import LstmLayer, SequenceDropout


class BidirectionalEncoder(nn.Module):
    """Layers of two LSTMs, one reading forwards and one backwards.

    Padding never enters a state that counts. Reading forwards it comes after all real words; for reading backwards each
    sentence is reversed within its own length, so padding comes last again. The result is that of packed sequences
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
        reversal = reversed_steps(lengths, inputs.shape[0])  # (S, B)
        last = (lengths - 1).clamp(min=0).view(1, -1, 1).expand(-1, -1, self.hidden_size)  # (1, B, H)
        start = inputs.new_zeros(inputs.shape[1], self.hidden_size)
        states, summary = inputs, inputs  # both replaced by the first layer
        for forwards, backwards in zip(self.forwards, self.backwards, strict=True):
            states = self.dropout(states)
            ahead, _, _ = forwards(states, start, start)  # (S, B, H)
            back, _, _ = backwards(reverse(states, reversal), start, start)  # (S, B, H), last word first
            states = torch.cat((ahead, reverse(back, reversal)), dim=-1)  # (S, B, 2H)
            summary = torch.cat((ahead.gather(0, last), back.gather(0, last)), dim=-1).squeeze(0)  # (B, 2H)
        return self.dropout(states), summary * mask.any(dim=1, keepdim=True)
