"""Layers that attend: the recurrence of Bahdanau et al. 2015 (arXiv:1409.0473), appendix A.2.2, and a parallel one.

Letters: B sentences, S source length, T target length, E embedding size, H hidden size, A attention size,
R rows (hypotheses), K = R / B; row r belongs to sentence r // K. Sequences are time-first.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from translator.attention.scores import AdditiveScore, make_score
from translator.attention.softmax import masked_softmax
from translator.kernels.bahdanau_recurrence import bahdanau_recurrence, is_applicable
from translator.kernels.choice import use_kernels
from translator.models.lstm_layers import LstmLayer, initialize_gates, lstm_cell


class Annotations(NamedTuple):
    """What is attended to, stored once per sentence, not once per hypothesis."""

    states: Tensor  # (B, S, 2H)
    prepared: Tensor  # (B, S, A), the part of the score that does not depend on the query
    mask: Tensor  # (B, 1, S)


# States (T, R, H), contexts (T, R, 2H), weights (T, R, S) where they were asked for, and the last cell (R, H).
AttendingOutput = tuple[Tensor, Tensor, Tensor | None, Tensor]


class Attention(nn.Module):
    """Any score between decoder states and annotations, and the context that follows from it.

    The additive score projects queries and keys itself. For the others they are projected to the attention size first.
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

    def prepare(self, states: Tensor, mask: Tensor) -> Annotations:
        return Annotations(states, self.score.prepare(self.key(states)), mask.unsqueeze(1))

    def forward(self, rows: Tensor, source: Annotations) -> tuple[Tensor, Tensor]:
        """Queries (B·N, H) to contexts (B·N, 2H) and weights (B·N, S): equations 5 and 6 of the paper."""
        num_sentences = source.states.shape[0]
        queries = rows.view(num_sentences, rows.shape[0] // max(num_sentences, 1), rows.shape[1])  # (B, N, H)
        weights = masked_softmax(self.score(self.query(queries), source.prepared), source.mask)  # (B, N, S)
        return (weights @ source.states).flatten(0, 1), weights.flatten(0, 1)


class BahdanauLayer(nn.Module):
    """s_t = f(s_{t-1}, y_{t-1}, c_t), where s_{t-1} is the query for c_t; f is an LSTM, not the paper's gated unit."""

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
        source: Annotations,
        need_weights: bool,
        mask: Tensor | None = None,  # (R, H), variational dropout of s_{t-1} on its way to the gates
    ) -> AttendingOutput:
        score, hidden_weight, context_weight = attention.score, self.from_hidden.weight, self.from_context.weight
        if isinstance(score, AdditiveScore) and not need_weights and use_kernels(inputs, hidden, source.prepared):
            query_weight, energy = score.query_projection.weight, score.energy.weight
            if is_applicable(inputs, hidden, source.prepared, query_weight):
                states, contexts, cell = bahdanau_recurrence(
                    *(inputs, hidden, cell, source.states, source.prepared, source.mask.squeeze(1), mask),
                    *(self.from_input.weight, self.from_input.bias, hidden_weight, context_weight),
                    *(query_weight, energy),
                )
                return states, contexts, None, cell
        steps = []
        for input_gates in self.from_input(inputs).unbind(0):  # one product for the whole target
            context, weights = attention(hidden, source)  # (R, 2H), (R, S)
            remembered = hidden if mask is None else hidden * mask
            gates = torch.addmm(input_gates, remembered, hidden_weight.t())
            gates = torch.addmm(gates, context, context_weight.t())  # (R, 4H)
            hidden, cell = lstm_cell(gates, cell)
            steps.append((hidden, context, weights))
        states, contexts, all_weights = (torch.stack(parts) for parts in zip(*steps, strict=True))
        return states, contexts, all_weights if need_weights else None, cell


class ParallelLayer(nn.Module):
    """s_t = f(s_{t-1}, y_{t-1}), and s_t is the query for c_t, which only the layers above and the output see.

    A different model from Bahdanau's: its first layer does not know what was attended to before. In return all
    positions of the target attend at once, as in GNMT (Wu et al. 2016, arXiv:1609.08144, section 3).
    """

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.layer = LstmLayer(input_size, hidden_size)

    def forward(
        self,
        inputs: Tensor,  # (T, R, E)
        hidden: Tensor,  # (R, H)
        cell: Tensor,  # (R, H)
        attention: Attention,
        source: Annotations,
        need_weights: bool,
    ) -> AttendingOutput:
        states, _, cell = self.layer(inputs, hidden, cell)  # (T, R, H)
        num_steps, num_rows, _ = states.shape
        # Rows of one sentence must be neighbours: the steps of each hypothesis, one hypothesis after the other.
        contexts, weights = (
            part.reshape(num_rows, num_steps, -1).transpose(0, 1)  # (T, R, …)
            for part in attention(states.transpose(0, 1).flatten(0, 1), source)
        )
        return states, contexts, weights if need_weights else None, cell
