"""The decoder of Bahdanau et al. 2015 (arXiv:1409.0473), appendix A.2.2, and one that attends for the whole target at once.

Letters: B sentences, S source length, T target length, E embedding size, H hidden size, A attention size, R rows
(hypotheses), K = R / B; row r belongs to sentence r // K. Sequences are time-first.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from translator.attention.scores import make_score
from translator.attention.softmax import masked_softmax
from translator.models.lstm_layers import LstmLayer, SequenceDropout, initialize_gates, lstm_cell


class Source(NamedTuple):
    """What is attended to, once for each sentence whatever the number of hypotheses."""

    states: Tensor  # (B, S, 2H)
    prepared: Tensor  # (B, S, A), the part of the score that does not depend on the query
    mask: Tensor  # (B, 1, S)


class Recurrent(NamedTuple):
    """What the decoder's layers remember."""

    hidden: Tensor  # (L, R, H)
    cell: Tensor  # (L, R, H)


class Attention(nn.Module):
    """Any score between decoder states and annotations, and the context it gives.

    The additive score has matrices of its own for queries and keys. The others compare vectors of one size, so they get
    projections to `attention_size`, as one head of multi-head attention does.
    """

    def __init__(self, score: str, query_size: int, key_size: int, attention_size: int) -> None:
        super().__init__()
        self.query: nn.Module = nn.Identity()
        self.key: nn.Module = nn.Identity()
        if score != "additive":
            self.query = nn.Linear(query_size, attention_size, bias=False)
            self.key = nn.Linear(key_size, attention_size, bias=False)
            query_size = key_size = attention_size
        self.score = make_score(score, query_size, key_size, attention_size)

    def prepare(self, states: Tensor, mask: Tensor) -> Source:
        return Source(states, self.score.prepare(self.key(states)), mask.unsqueeze(1))

    def forward(self, queries: Tensor, source: Source) -> tuple[Tensor, Tensor]:
        """Queries (B, N, H) to contexts (B, N, 2H) and weights (B, N, S)."""
        weights = masked_softmax(self.score(self.query(queries), source.prepared), source.mask)
        return weights @ source.states, weights


class ClassicLayer(nn.Module):
    """s_t = f(s_{t-1}, y_{t-1}, c_t) with c_t asked for by s_{t-1}, f an LSTM instead of the paper's gated unit.

    Only what depends on s_{t-1} is inside the loop; W y_{t-1} + b is one product for the whole target.
    """

    def __init__(self, input_size: int, hidden_size: int, context_size: int) -> None:
        super().__init__()
        self.from_input = nn.Linear(input_size, 4 * hidden_size)  # W, b
        self.from_hidden = nn.Linear(hidden_size, 4 * hidden_size, bias=False)  # U
        self.from_context = nn.Linear(context_size, 4 * hidden_size, bias=False)  # C
        initialize_gates(self.from_input.weight, self.from_hidden.weight, self.from_input.bias)
        for gate in self.from_context.weight.chunk(4):
            nn.init.xavier_uniform_(gate)

    def forward(
        self,
        inputs: Tensor,  # (T, R, E)
        hidden: Tensor,  # (R, H)
        cell: Tensor,  # (R, H)
        attention: Attention,
        source: Source,
        recurrent_mask: Tensor | None,  # (R, H), variational dropout of s_{t-1} on its way to the gates
    ) -> tuple[Tensor, Tensor, list[Tensor], Tensor, Tensor]:
        num_sentences = source.states.shape[0]
        states, contexts, weights = [], [], []
        for input_gates in self.from_input(inputs).unbind(0):
            context, weight = attention(hidden.unflatten(0, (num_sentences, -1)), source)  # (B, K, 2H)
            context = context.flatten(0, 1)  # (R, 2H)
            remembered = hidden if recurrent_mask is None else hidden * recurrent_mask
            gates = torch.addmm(input_gates, remembered, self.from_hidden.weight.t())
            gates = torch.addmm(gates, context, self.from_context.weight.t())
            hidden, cell = lstm_cell(gates, cell)
            states.append(hidden)
            contexts.append(context)
            weights.append(weight)
        return torch.stack(states), torch.stack(contexts), weights, hidden, cell
