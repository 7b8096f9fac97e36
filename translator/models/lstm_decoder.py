"""The decoder of Bahdanau et al. 2015 (arXiv:1409.0473), appendix A.2.2, and one that attends for all steps at once.

Letters: B sentences, S source length, T target length, E embedding size, H hidden size, A attention size, L layers,
R rows (hypotheses), K = R / B; row r belongs to sentence r // K. Sequences are time-first.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from translator.attention.scores import make_score
from translator.attention.softmax import masked_softmax
from translator.models.lstm_layers import LstmLayer, SequenceDropout, initialize_gates, lstm_cell

ATTEND = ("classic", "parallel")


class Source(NamedTuple):
    """What is attended to, once for each sentence whatever the number of hypotheses."""

    states: Tensor  # (B, S, 2H)
    prepared: Tensor  # (B, S, A), the part of the score that does not depend on the query
    mask: Tensor  # (B, 1, S)


class Recurrent(NamedTuple):
    """What the layers remember."""

    hidden: Tensor  # (L, R, H)
    cell: Tensor  # (L, R, H)


class Masks(NamedTuple):
    """Variational dropout: the factors of all steps, None where there are none."""

    inputs: Tensor | None  # (R, E)
    recurrent: Tensor | None  # (R, H)
    upper: tuple[Tensor | None, ...]  # for each layer but the first (R, 3H)
    outputs: Tensor | None  # (R, E)


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


class Decoder(nn.Module):
    """The layer that attends, plain LSTM layers above it, and the output layer.

    A layer above the first reads the states of the one below and the context, [s_t, c_t], so it is outside the loop.
    Dropout acts on the embeddings, on the input of every upper layer and on the output states; variational dropout also
    on the recurrent state of the classic layer. (The fused kernels of the others leave no place for that.)
    """

    def __init__(
        self,
        embedding_size: int,
        hidden_size: int,
        attention_size: int,
        num_layers: int,
        score: str,
        attend: str,
        dropout: float,
        dropout_kind: str,
    ) -> None:
        super().__init__()
        if attend not in ATTEND:
            raise ValueError(f"attend must be one of {', '.join(ATTEND)}, not {attend}")
        context_size = 2 * hidden_size
        self.num_layers, self.hidden_size = num_layers, hidden_size
        self.attention = Attention(score, hidden_size, context_size, attention_size)
        self.first = (
            ClassicLayer(embedding_size, hidden_size, context_size)
            if attend == "classic"
            else ParallelLayer(embedding_size, hidden_size)
        )
        self.upper = nn.ModuleList(LstmLayer(hidden_size + context_size, hidden_size) for _ in range(num_layers - 1))
        self.start_hidden = nn.Linear(context_size, num_layers * hidden_size)  # W_s
        self.start_cell = nn.Linear(context_size, num_layers * hidden_size)
        self.output_from_state = nn.Linear(hidden_size, embedding_size)  # U_o
        self.output_from_input = nn.Linear(embedding_size, embedding_size, bias=False)  # V_o
        self.output_from_context = nn.Linear(context_size, embedding_size, bias=False)  # C_o
        self.dropout = SequenceDropout(dropout, dropout_kind)
        for module in (self.attention, self.start_hidden, self.start_cell, *self._output_layers()):
            _initialize_linear(module)

    def _output_layers(self) -> tuple[nn.Linear, ...]:
        return self.output_from_state, self.output_from_input, self.output_from_context

    def start(self, summary: Tensor) -> Recurrent:
        """The bridge from the encoder: s_0 = tanh(W_s h) for each layer, and the cell likewise but not squashed.

        The paper takes ←h_1 alone for h; [→h_S, ←h_1] knows the sentence from both ends.
        """
        shape = (-1, self.num_layers, self.hidden_size)
        hidden = self.start_hidden(summary).tanh().view(shape).transpose(0, 1)  # (L, B, H)
        return Recurrent(hidden, self.start_cell(summary).view(shape).transpose(0, 1))

    def draw_masks(self, num_rows: int, like: Tensor) -> Masks:
        embedding_size = self.output_from_input.in_features

        def draw(size: int) -> Tensor | None:
            return self.dropout.draw(num_rows, size, like)

        return Masks(
            inputs=draw(embedding_size),
            recurrent=draw(self.hidden_size) if isinstance(self.first, ClassicLayer) else None,
            upper=tuple(draw(3 * self.hidden_size) for _ in self.upper),
            outputs=draw(embedding_size),
        )

    def forward(
        self, inputs: Tensor, recurrent: Recurrent, source: Source, masks: Masks, *, need_weights: bool = False
    ) -> tuple[Tensor, Recurrent, Tensor | None]:
        """Embeddings (T, R, E) to output states (T, R, E), the layers' new memory and the weights (T, R, S)."""
        inputs = self.dropout(inputs, masks.inputs)
        start = (recurrent.hidden[0], recurrent.cell[0])
        if isinstance(self.first, ClassicLayer):
            first = self.first(inputs, *start, self.attention, source, mask=masks.recurrent, need_weights=need_weights)
        else:
            first = self.first(inputs, *start, self.attention, source, need_weights=need_weights)
        states, hidden, cell = first.states, [first.hidden], [first.cell]
        for number, (layer, mask) in enumerate(zip(self.upper, masks.upper, strict=True), start=1):
            below = self.dropout(torch.cat((states, first.contexts), dim=-1), mask)  # (T, R, 3H)
            states, last_hidden, last_cell = layer(below, recurrent.hidden[number], recurrent.cell[number])
            hidden.append(last_hidden)
            cell.append(last_cell)
        outputs = self.dropout(self._output(states, inputs, first.contexts), masks.outputs)
        return outputs, Recurrent(torch.stack(hidden), torch.stack(cell)), first.weights

    def _output(self, states: Tensor, inputs: Tensor, contexts: Tensor) -> Tensor:
        """tanh(U_o s_t + V_o y_{t-1} + C_o c_t), the deep output of appendix A.2.2.

        The paper takes the greater of two such sums (maxout) where this takes the tanh of one: half the work, and
        bounded states, so that the logits begin small also with the embedding as output matrix.
        """
        total = self.output_from_state(states) + self.output_from_input(inputs) + self.output_from_context(contexts)
        return total.tanh()  # (T, R, E)


def _by_sentence(rows: Tensor, num_sentences: int) -> Tensor:
    """(B N, H) to (B, N, H)."""
    return rows.view(num_sentences, rows.shape[0] // max(num_sentences, 1), rows.shape[1])


def _initialize_linear(parent: nn.Module) -> None:
    for module in parent.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
