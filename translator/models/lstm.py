"""LSTM encoder and decoder with attention: Bahdanau et al. 2015 (arXiv:1409.0473) with LSTMs for the gated units.

Letters: B sentences, S source length, T target length, E embedding size, H hidden size, R rows (hypotheses).
"""

import torch
from torch import Tensor, nn

from translator.kernels.reversal import reverse, reversed_steps
from translator.models.bahdanau import BahdanauLayer
from translator.models.base import Decoded, Kept, Memory, Seq2Seq, State, Step
from translator.models.embeddings import Embeddings, zeroed
from translator.models.lstm_decoder import Decoder, LstmState
from translator.models.lstm_layers import LstmLayer, SequenceDropout


class BidirectionalEncoder(nn.Module):
    """Every word is annotated from both sides (section 3.2): layers of two LSTMs, reading forwards and backwards.

    Padding never enters a state that counts: it comes after all real words, also for reading backwards, since each
    sentence is reversed within its own length. The result is that of torch's packed sequences, which are slower: on
    CPUs their backward pass clears a whole gradient at every step, on GPUs they have to wait for the lengths.
    """

    def __init__(self, input_size: int, hidden_size: int, num_layers: int, dropout: float, dropout_kind: str) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        sizes = [input_size] + [2 * hidden_size] * (num_layers - 1)
        self.forwards = nn.ModuleList(LstmLayer(size, hidden_size) for size in sizes)
        self.backwards = nn.ModuleList(LstmLayer(size, hidden_size) for size in sizes)
        self.dropout = SequenceDropout(dropout, dropout_kind)

    def forward(self, inputs: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Embeddings (S, B, E) and mask (B, S), True before False in each row, to annotations (S, B, 2H) and a summary.

        The summary (B, 2H) is what each direction knows at its end of the sentence, [→h_S, ←h_1], or zeros if empty.
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
        return self.dropout(states), summary.masked_fill(~mask.any(dim=1, keepdim=True), 0.0)


class LstmSeq2Seq(Seq2Seq):
    """`attend` is "classic" for the paper's recurrence (`BahdanauLayer`) or "parallel" (`ParallelLayer`).

    The output states are as wide as the embeddings, so that the decoder's embedding can be the output matrix.
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
        word_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if encoder_layers < 1 or decoder_layers < 1:
            raise ValueError(f"encoder_layers={encoder_layers} and decoder_layers={decoder_layers} must be at least 1")
        self.embeddings = Embeddings(
            source_vocab_size, target_vocab_size, embedding_size, tie_embeddings, word_dropout, bias=True
        )
        self.encoder = BidirectionalEncoder(embedding_size, hidden_size, encoder_layers, dropout, dropout_kind)
        self.decoder = Decoder(
            embedding_size, hidden_size, attention_size, decoder_layers, score, attend, dropout, dropout_kind
        )

    def encode(self, source: Tensor, source_mask: Tensor, kept: Tensor | None = None) -> Memory:
        """The annotations (B, S, 2H), and as summary the last state of each direction (B, 2H); padding comes last."""
        inputs = self.embeddings.of_source(source.t(), None if kept is None else kept.t())  # (S, B, E)
        states, summary = self.encoder(inputs, source_mask)
        return Memory(states.transpose(0, 1).contiguous(), source_mask, summary)

    def forward(
        self,
        source: Tensor,
        source_mask: Tensor,
        target_in: Tensor,
        *,
        teacher_forcing: float = 1.0,
        kept: Kept | None = None,
        need_weights: bool = False,
    ) -> Decoded:
        if not 0 <= teacher_forcing <= 1:
            raise ValueError(f"teacher_forcing must lie between 0 and 1, not {teacher_forcing}")
        state = self.start(self.encode(source, source_mask, kept.source if kept else None))
        kept_target = kept.target.t() if kept else None  # (T, B)
        if teacher_forcing < 1:
            states, weights = self._sample(target_in, kept_target, state, teacher_forcing, need_weights)
        else:
            inputs = zeroed(self.embeddings.target(target_in.t()), kept_target)  # (T, B, E)
            states, _, weights = self.decoder(inputs, state, need_weights=need_weights)
        attention = None if weights is None else weights.transpose(0, 1)[:, None, None]  # (B, 1, 1, T, S)
        return Decoded(states.transpose(0, 1), attention)

    def _sample(
        self, target_in: Tensor, kept: Tensor | None, state: LstmState, teacher_forcing: float, need_weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Scheduled sampling (Bengio et al. 2015, arXiv:1506.03099): a coin for each token of each sentence.

        The model's own prediction is its most probable piece; no gradient flows through the choice.
        """
        if not isinstance(self.decoder.first, BahdanauLayer):
            raise ValueError(f"teacher_forcing={teacher_forcing}: must be 1 with attend=parallel")
        num_sentences, num_steps = target_in.shape
        outputs, tokens = [], target_in[:, 0]
        masks = self.decoder.draw_masks(num_sentences, self.embeddings.output_weight)
        for step in range(num_steps):
            inputs = zeroed(self.embeddings.target(tokens), None if kept is None else kept[step])[None]  # (1, B, E)
            output, state, weight = self.decoder(inputs, state, masks, need_weights=need_weights)
            outputs.append((output, weight))
            if step + 1 < num_steps:
                with torch.no_grad():
                    predicted = self.project(output.squeeze(0)).argmax(dim=-1)  # (B,)
                forced = torch.rand(num_sentences, device=tokens.device) < teacher_forcing
                tokens = torch.where(forced, target_in[:, step + 1], predicted)
        states, weights = zip(*outputs, strict=True)
        return torch.cat(states), torch.cat(weights) if need_weights else None

    def start(self, memory: Memory) -> LstmState:
        return self.decoder.start(memory)

    def step(self, tokens: Tensor, state: State, *, need_weights: bool = False) -> Step:
        assert isinstance(state, LstmState)
        inputs = self.embeddings.target(tokens).unsqueeze(0)  # (1, R, E)
        states, state, weights = self.decoder(inputs, state, need_weights=need_weights)
        attention = None if weights is None else weights.squeeze(0)[:, None, None]  # (R, 1, 1, S)
        return Step(self.project(states.squeeze(0)), state, attention)

    def search_size(self, source_length: int, target_length: int, num_hypotheses: int) -> int:
        """The additive score compares the state of every hypothesis with every annotation, vector with vector."""
        decoder = self.decoder
        hidden_size, num_layers, attention_size = decoder.hidden_size, decoder.num_layers, decoder.attention_size
        scores = 2 * num_hypotheses * source_length * (attention_size + 2)
        states = num_hypotheses * (4 * num_layers + 12) * hidden_size
        annotations = 2 * source_length * (2 * hidden_size + attention_size)
        encoder = source_length * 16 * hidden_size
        return max(encoder, scores + states) + annotations
