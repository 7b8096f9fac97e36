"""The decoder's layers that attend: the recurrence of Bahdanau et al. 2015 (arXiv:1409.0473), appendix A.2.2, and one
that attends for all steps at once.

Letters: B sentences, S source length, T target length, E embedding size, H hidden size, A attention size,
R rows (hypotheses), K = R / B; row r belongs to sentence r // K. Sequences are time-first.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from translator.attention.scores import AdditiveScore, make_score
from translator.attention.softmax import masked_softmax
from translator.kernels.bahdanau_recurrence import ClassicRecurrence, is_suitable
from translator.models.lstm_layers import LstmLayer, initialize_gates, lstm_cell


class Source(NamedTuple):
    """What is attended to, once for each sentence whatever the number of hypotheses."""

    states: Tensor  # (B, S, 2H)
    prepared: Tensor  # (B, S, A), the part of the score that does not depend on the query
    mask: Tensor  # (B, 1, S)


class FirstLayer(NamedTuple):
    """What comes out of the layer that attends."""

    states: Tensor  # (T, R, H)
    contexts: Tensor  # (T, R, 2H)
    weights: Tensor | None  # (T, R, S)
    hidden: Tensor  # (R, H)
    cell: Tensor  # (R, H)


class Attention(nn.Module):
    """Any score between decoder states and annotations, and the context that follows from it.

    The additive score has matrices of its own for queries and keys. The others compare vectors of one size, so both are
    projected to the attention size first, as in one head of multi-head attention.
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
        """Queries (B, N, H) to contexts (B, N, 2H) and weights (B, N, S): equations 5 and 6 of the paper."""
        weights = masked_softmax(self.score(self.query(queries), source.prepared), source.mask)
        return weights @ source.states, weights


class ClassicLayer(nn.Module):
    """s_t = f(s_{t-1}, y_{t-1}, c_t), where s_{t-1} asks for c_t; f is an LSTM in place of the paper's gated unit.

    Inside the loop is only what depends on s_{t-1}. W y_{t-1} + b is one matrix product for the whole target.
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
        *,
        mask: Tensor | None = None,  # (R, H), variational dropout of s_{t-1} on its way to the gates
        need_weights: bool = False,
    ) -> FirstLayer:
        if not need_weights and is_suitable(inputs, hidden, attention.score, source.prepared):
            return self._at_once(inputs, hidden, cell, attention, source, mask)
        num_sentences = source.states.shape[0]
        states, contexts, weights = [], [], []
        for input_gates in self.from_input(inputs).unbind(0):
            context, weight = attention(_by_sentence(hidden, num_sentences), source)  # (B, K, 2H), (B, K, S)
            context = context.flatten(0, 1)  # (R, 2H)
            remembered = hidden if mask is None else hidden * mask
            gates = torch.addmm(input_gates, remembered, self.from_hidden.weight.t())
            gates = torch.addmm(gates, context, self.from_context.weight.t())  # (R, 4H)
            hidden, cell = lstm_cell(gates, cell)
            states.append(hidden)
            contexts.append(context)
            if need_weights:
                weights.append(weight.flatten(0, 1))
        stacked = torch.stack(weights) if need_weights else None
        return FirstLayer(torch.stack(states), torch.stack(contexts), stacked, hidden, cell)

    def _at_once(
        self,
        inputs: Tensor,  # (T, B, E)
        hidden: Tensor,  # (B, H)
        cell: Tensor,  # (B, H)
        attention: Attention,
        source: Source,
        mask: Tensor | None,  # (B, H)
    ) -> FirstLayer:
        """The same in one function, for CPUs."""
        assert isinstance(attention.score, AdditiveScore)
        states, contexts, cell = ClassicRecurrence.apply(
            *(inputs, hidden, cell, source.states, source.prepared, source.mask.squeeze(1), mask),
            *(self.from_input.weight, self.from_input.bias, self.from_hidden.weight, self.from_context.weight),
            *(attention.score.query_projection.weight, attention.score.energy.weight),
        )
        return FirstLayer(states, contexts, None, states[-1], cell)


class ParallelLayer(nn.Module):
    """s_t = f(s_{t-1}, y_{t-1}), and s_t asks for c_t, which only the layers above and the output see.

    This is another model than the classic one: its first layer does not know what was attended to before. In return all
    positions of the target ask at once, as in GNMT (Wu et al. 2016, arXiv:1609.08144, section 3).
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
        source: Source,
        *,
        need_weights: bool = False,
    ) -> FirstLayer:
        states, hidden, cell = self.layer(inputs, hidden, cell)  # (T, R, H)
        num_steps, num_rows, _ = states.shape
        queries = _by_sentence(states.transpose(0, 1).flatten(0, 1), source.states.shape[0])  # (B, K T, H)
        contexts, weights = attention(queries, source)
        contexts = contexts.reshape(num_rows, num_steps, -1).transpose(0, 1)  # (T, R, 2H)
        weights = weights.reshape(num_rows, num_steps, -1).transpose(0, 1) if need_weights else None
        return FirstLayer(states, contexts, weights, hidden, cell)


def _by_sentence(rows: Tensor, num_sentences: int) -> Tensor:
    """(B N, H) to (B, N, H)."""
    return rows.view(num_sentences, rows.shape[0] // max(num_sentences, 1), rows.shape[1])
