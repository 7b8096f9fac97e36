"""LSTM encoder and decoder with attention: Bahdanau et al. 2015 (arXiv:1409.0473) with LSTMs for the gated units.

Letters: B sentences, S source length, T target length, E embedding size, H hidden size, A attention size,
L decoder layers, V vocabulary, R rows (hypotheses) during search, K = R / B.
"""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from translator.models.bahdanau import Annotations, BahdanauLayer
from translator.models.base import Decoded, Memory, State, Step
from translator.models.embeddings import EmbeddingModel, Embeddings
from translator.models.lstm_decoder import Decoder, RecurrentState
from translator.models.lstm_encoder import BidirectionalEncoder


@dataclass(frozen=True)
class LstmState(State):
    """What the layers remember of each hypothesis, and what they attend to in each sentence."""

    recurrent: RecurrentState  # hidden and cell (L, R, H)
    source: Annotations  # states (B, S, 2H), prepared keys (B, S, A), mask (B, 1, S)

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> Self:
        recurrent = RecurrentState(*(part.index_select(1, rows) for part in self.recurrent))
        source = self.source
        if sentences is not None:
            source = Annotations(*(part.index_select(0, sentences) for part in source))
        return type(self)(recurrent, source)


class LstmSeq2Seq(EmbeddingModel):
    """`attend="classic"` is the recurrence of the paper; `attend="parallel"` is a different, quicker model.

    See `BahdanauLayer` and `ParallelLayer`. The output states are as wide as the embeddings, so that the decoder's
    embedding can always be the output matrix.
    """

    def __init__(
        self,
        source_vocab_size: int,
        target_vocab_size: int,
        embedding_size: int,
        hidden_size: int,
        attention_size: int,
        encoder_layers: int,
        decoder_layers: int,
        score: str = "additive",
        attend: str = "classic",
        dropout: float = 0.2,
        dropout_kind: str = "ordinary",
        tie_embeddings: str = "target",
    ) -> None:
        super().__init__()
        if encoder_layers < 1 or decoder_layers < 1:
            raise ValueError(
                f"encoder_layers and decoder_layers must be at least 1, not {encoder_layers}, {decoder_layers}"
            )
        self.embeddings = Embeddings(source_vocab_size, target_vocab_size, embedding_size, tie_embeddings, bias=True)
        self.encoder = BidirectionalEncoder(embedding_size, hidden_size, encoder_layers, dropout, dropout_kind)
        self.decoder = Decoder(
            embedding_size, hidden_size, attention_size, decoder_layers, score, attend, dropout, dropout_kind
        )

    def encode(self, source: Tensor, source_mask: Tensor) -> Memory:
        """The annotations (B, S, 2H) and, as summary, the last state of each direction (B, 2H).

        The real words of a row come before its padding.
        """
        states, summary = self.encoder(self.embeddings.embed_source(source.t()), source_mask)
        return Memory(states.transpose(0, 1).contiguous(), source_mask, summary)

    def forward(
        self,
        source: Tensor,
        source_mask: Tensor,
        target_in: Tensor,
        *,
        teacher_forcing: float = 1.0,
        need_weights: bool = False,
    ) -> Decoded:
        if not 0 <= teacher_forcing <= 1:
            raise ValueError(f"teacher_forcing must lie between 0 and 1, not {teacher_forcing}")
        state = self.start(self.encode(source, source_mask))
        if teacher_forcing < 1:
            states, weights = self._sample(target_in, state, teacher_forcing, need_weights)
        else:
            inputs = self.embeddings.embed_target(target_in.t())  # (T, B, E)
            masks = self.decoder.draw_masks(len(target_in), inputs)
            states, _, weights = self.decoder(inputs, state.recurrent, state.source, masks, need_weights=need_weights)
        attention = None if weights is None else weights.transpose(0, 1)[:, None, None]  # (B, 1, 1, T, S)
        return Decoded(states.transpose(0, 1), attention)

    def _sample(
        self, target_in: Tensor, state: LstmState, teacher_forcing: float, need_weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Scheduled sampling (Bengio et al. 2015, arXiv:1506.03099): a coin for each token of each sentence.

        The model's own prediction is the most probable piece, which is what greedy search would feed. No gradient flows
        through the choice.
        """
        if not isinstance(self.decoder.first, BahdanauLayer):
            raise ValueError(
                f"teacher_forcing={teacher_forcing}: the parallel decoder sees the whole target at once and cannot "
                "sample; use 1 or attend=classic"
            )
        num_sentences, num_steps = target_in.shape
        recurrent, tokens = state.recurrent, target_in[:, 0]
        states, weights = [], []
        masks = self.decoder.draw_masks(num_sentences, self.embeddings.output_weight)
        for step in range(num_steps):
            inputs = self.embeddings.embed_target(tokens).unsqueeze(0)  # (1, B, E)
            output, recurrent, weight = self.decoder(inputs, recurrent, state.source, masks, need_weights=need_weights)
            states.append(output)
            if weight is not None:
                weights.append(weight)
            if step + 1 < num_steps:
                with torch.no_grad():
                    predicted = self.project(output.squeeze(0)).argmax(dim=-1)  # (B,)
                forced = torch.rand(num_sentences, device=tokens.device) < teacher_forcing
                tokens = torch.where(forced, target_in[:, step + 1], predicted)
        return torch.cat(states), torch.cat(weights) if weights else None

    def start(self, memory: Memory) -> LstmState:
        source = self.decoder.attention.prepare(memory.states, memory.mask)
        return LstmState(self.decoder.start(memory.summary), source)

    def step(self, tokens: Tensor, state: State, *, need_weights: bool = False) -> Step:
        assert isinstance(state, LstmState)
        inputs = self.embeddings.embed_target(tokens).unsqueeze(0)  # (1, R, E)
        masks = self.decoder.draw_masks(len(tokens), inputs)
        states, recurrent, weights = self.decoder(
            inputs, state.recurrent, state.source, masks, need_weights=need_weights
        )
        attention = None if weights is None else weights.squeeze(0)[:, None, None]  # (R, 1, 1, S)
        return Step(self.project(states.squeeze(0)), LstmState(recurrent, state.source), attention)
