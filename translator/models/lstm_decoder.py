"""The decoder of Bahdanau et al. 2015 (arXiv:1409.0473), appendix A.2.2, around the layer that attends.

Letters: B sentences, S source length, T target length, E embedding size, H hidden size, L layers, R rows (hypotheses).
Sequences are time-first.
"""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn

from translator.models.bahdanau import Annotations, Attention, BahdanauLayer, ParallelLayer
from translator.models.base import Memory, State
from translator.models.lstm_layers import LstmLayer, SequenceDropout

ATTEND = ("classic", "parallel")
Masks = list[Tensor | None]  # variational dropout: the factors (R, …) of all steps, None where there are none


@dataclass(frozen=True)
class LstmState(State):
    """What the layers remember of each hypothesis, and what they attend to in each sentence."""

    hidden: Tensor  # (L, R, H)
    cell: Tensor  # (L, R, H)
    source: Annotations

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> Self:
        source = self.source
        if sentences is not None:
            source = Annotations(*(part.index_select(0, sentences) for part in source))
        return type(self)(self.hidden.index_select(1, rows), self.cell.index_select(1, rows), source)


class Decoder(nn.Module):
    """The layer that attends, plain LSTM layers above it, and the output layer.

    A layer above the first reads the states of the one below and the context, [s_t, c_t]. Dropout acts on the
    embeddings, on the input of every upper layer and on the output states; variational dropout also on the recurrent
    state of Bahdanau's layer.
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
        self.num_layers, self.hidden_size, self.attention_size = num_layers, hidden_size, attention_size
        self.attention = Attention(score, hidden_size, context_size, attention_size)
        sizes = (embedding_size, hidden_size)
        self.first = BahdanauLayer(*sizes, context_size) if attend == "classic" else ParallelLayer(*sizes)
        self.upper = nn.ModuleList(LstmLayer(hidden_size + context_size, hidden_size) for _ in range(num_layers - 1))
        self.start_hidden = nn.Linear(context_size, num_layers * hidden_size)  # W_s
        self.start_cell = nn.Linear(context_size, num_layers * hidden_size)
        self.output_from_state = nn.Linear(hidden_size, embedding_size)  # U_o
        self.output_from_input = nn.Linear(embedding_size, embedding_size, bias=False)  # V_o
        self.output_from_context = nn.Linear(context_size, embedding_size, bias=False)  # C_o
        self.dropout = SequenceDropout(dropout, dropout_kind)
        outputs = (self.output_from_state, self.output_from_input, self.output_from_context)
        for module in nn.ModuleList((self.attention, self.start_hidden, self.start_cell, *outputs)).modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def start(self, memory: Memory) -> LstmState:
        """The bridge from the encoder: s_0 = tanh(W_s h) for each layer, and the cell likewise but not squashed.

        The paper takes ←h_1 alone for h; [→h_S, ←h_1] knows the sentence from both ends.
        """
        shape = (-1, self.num_layers, self.hidden_size)
        hidden = self.start_hidden(memory.summary).tanh().view(shape).transpose(0, 1)  # (L, B, H)
        cell = self.start_cell(memory.summary).view(shape).transpose(0, 1)
        cell = cell.to(torch.promote_types(cell.dtype, torch.float32))  # it sums over the whole target
        return LstmState(hidden, cell, self.attention.prepare(memory.states, memory.mask))

    def draw_masks(self, num_rows: int, like: Tensor) -> Masks:
        """For the embeddings, Bahdanau's layer if there is one, the inputs of the upper layers, the outputs."""
        embedding_size = self.output_from_input.in_features
        recurrent_sizes = [self.hidden_size] if isinstance(self.first, BahdanauLayer) else []
        sizes = [embedding_size, *recurrent_sizes, *[3 * self.hidden_size for _ in self.upper], embedding_size]
        return [self.dropout.draw(num_rows, size, like) for size in sizes]

    def forward(
        self, inputs: Tensor, state: LstmState, masks: Masks | None = None, *, need_weights: bool = False
    ) -> tuple[Tensor, LstmState, Tensor | None]:
        """Embeddings (T, R, E) to output states (T, R, E), the new state and the weights (T, R, S).

        Calls for parts of one target share `masks`; otherwise they are drawn here.
        """
        input_mask, *layer_masks, output_mask = masks or self.draw_masks(inputs.shape[1], inputs)
        inputs = self.dropout(inputs, input_mask)
        recurrent_mask = [layer_masks.pop(0)] if isinstance(self.first, BahdanauLayer) else []
        states, contexts, weights, last_cell = self.first(
            *(inputs, state.hidden[0], state.cell[0], self.attention, state.source, need_weights), *recurrent_mask
        )
        hidden, cell = [states[-1]], [last_cell]
        for number, (layer, mask) in enumerate(zip(self.upper, layer_masks, strict=True), start=1):
            below = self.dropout(torch.cat((states, contexts), dim=-1), mask)  # (T, R, 3H)
            states, last_hidden, last_cell = layer(below, state.hidden[number], state.cell[number])
            hidden.append(last_hidden)
            cell.append(last_cell)
        outputs = self.dropout(self._output(states, inputs, contexts), output_mask)
        return outputs, LstmState(torch.stack(hidden), torch.stack(cell), state.source), weights

    def _output(self, states: Tensor, inputs: Tensor, contexts: Tensor) -> Tensor:
        """tanh(U_o s_t + V_o y_{t-1} + C_o c_t), the deep output of appendix A.2.2.

        The paper takes the greater of two such sums (maxout). The tanh of one is half the work and bounded, so the
        logits begin small.
        """
        total = self.output_from_state(states).flatten(0, 1)  # (T R, E)
        for part, layer in ((inputs, self.output_from_input), (contexts, self.output_from_context)):
            total = torch.addmm(total, part.flatten(0, 1), layer.weight.t())  # adds within the product
        result: Tensor = total.tanh().view_as(inputs)  # (T, R, E)
        return result
