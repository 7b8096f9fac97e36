"""The Transformer (Vaswani et al. 2017): encoder, decoder and the translation model made of them.

Letters: B sentences, S source length, T target length, D model size, H heads, R rows (hypotheses), V vocabulary.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn

from translator.attention.dropout import Dropout
from translator.attention.multihead import MultiHeadAttention
from translator.attention.positions import RelativePositionBias, RotaryPositions, make_additive_positions
from translator.kernels.decoding import StepDecoder
from translator.kernels.key_value_cache import STEPS_OF_ROOM
from translator.models.base import Decoded, Kept, Memory, Seq2Seq, State, Step
from translator.models.embeddings import Embeddings, zeroed
from translator.models.transformer_decoding import TransformerState, decode_step, start_state
from translator.models.transformer_layers import DecoderLayer, EncoderLayer, LayerOptions, initialize


class Transformer(Seq2Seq):
    """Figure 1 of the paper, with the choices made since then as options."""

    def __init__(
        self,
        source_vocab_size: int,
        target_vocab_size: int,
        model_size: int,
        feedforward_size: int,
        num_heads: int,
        encoder_layers: int,
        decoder_layers: int,
        positions: str = "sinusoidal",
        max_positions: int = 1024,
        tie_embeddings: str = "all",
        word_dropout: float = 0.0,
        **layer_options: Any,  # of `LayerOptions`: norm_order, norm, activation, score and the kinds of dropout
    ) -> None:
        super().__init__()
        rotary = RotaryPositions(model_size // num_heads) if positions == "rotary" else None
        options = LayerOptions(model_size, feedforward_size, num_heads, rotary=rotary, **layer_options)
        self.embeddings = Embeddings(source_vocab_size, target_vocab_size, model_size, tie_embeddings, word_dropout)
        self.embedding_scale = math.sqrt(model_size)  # section 3.4: brings embeddings to the size of the positions
        self.source_positions = make_additive_positions(positions, model_size, max_positions)
        self.target_positions = make_additive_positions(positions, model_size, max_positions)
        self.dropout = Dropout(options.dropout)
        self.encoder = nn.ModuleList(EncoderLayer(options) for _ in range(encoder_layers))
        self.decoder = nn.ModuleList(DecoderLayer(options) for _ in range(decoder_layers))
        # The last layer of a pre-norm stack leaves an unnormalised sum; post-norm layers end with a norm of their own.
        self.encoder_norm = options.make_norm() if options.norm_order == "pre" else nn.Identity()
        self.decoder_norm = options.make_norm() if options.norm_order == "pre" else nn.Identity()
        self.encoder_bias = self.decoder_bias = None
        if positions == "relative":
            self.encoder_bias = RelativePositionBias(model_size, num_heads, bidirectional=True)
            self.decoder_bias = RelativePositionBias(model_size, num_heads, bidirectional=False)
        initialize(self.encoder, encoder_layers, options.norm_order)
        initialize(self.decoder, decoder_layers, options.norm_order)

    def encode(self, source: Tensor, source_mask: Tensor, kept: Tensor | None = None) -> Memory:
        embedded = self.embeddings.of_source(source, kept) * self.embedding_scale
        x = self.dropout(self.source_positions(embedded))  # (B, S, D)
        bias = self.encoder_bias.within(source.shape[1]) if self.encoder_bias is not None else None
        for layer in self.encoder:
            x = layer(x, source_mask[:, None, None, :], bias)
        return Memory(self.encoder_norm(x), source_mask)

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
        if teacher_forcing != 1:
            raise ValueError("a Transformer reads the whole target at once: teacher_forcing must be 1")
        memory = self.encode(source, source_mask, kept.source if kept else None)
        memory_mask = source_mask[:, None, None, :]  # (B, 1, 1, S)
        # Padding at the end of the target needs no mask of its own: no real position looks that far ahead.
        length = target_in.shape[1]
        causal_mask = torch.ones(length, length, dtype=torch.bool, device=source.device).tril()  # (T, T)
        self_bias = self.decoder_bias.within(length) if self.decoder_bias is not None else None
        x = self.dropout(self._embed_target(target_in, 0, kept.target if kept else None))  # (B, T, D)
        attention = []
        for layer in self.decoder:
            x, weights = layer(x, causal_mask, self_bias, memory.states, memory_mask, need_weights=need_weights)
            attention.append(weights)
        return Decoded(self.decoder_norm(x), torch.stack(attention, 1) if need_weights else None)

    def start(self, memory: Memory) -> TransformerState:
        assert self.output_bias is None
        return start_state(StepDecoder(self.decoder, self.decoder_bias, self.decoder_norm, self.output_weight), memory)

    @torch.no_grad()
    def step(self, tokens: Tensor, state: State, *, need_weights: bool = False) -> Step:
        """The same as `forward` for one position, without dropout; no gradient flows through it."""
        assert isinstance(state, TransformerState)
        x = self._embed_target(tokens[:, None], state.length).squeeze(1)  # (R, D)
        x, state, attention = decode_step(x, state, need_weights)
        return Step(state.decoder.logits(x), state, torch.stack(attention, 1) if need_weights else None)

    def _embed_target(self, tokens: Tensor, offset: int, kept: Tensor | None = None) -> Tensor:
        """The decoder's input (R, T, D) for tokens (R, T), the first of which is at position `offset`."""
        embedded = zeroed(self.embeddings.target(tokens), kept) * self.embedding_scale
        result: Tensor = self.target_positions(embedded, offset)
        return result

    def search_size(self, source_length: int, target_length: int, num_hypotheses: int) -> int:
        """Every hypothesis has a score for every entry of its sentence's cache: the square of their number counts."""
        attention = self.decoder[0].self_attention
        assert isinstance(attention, MultiHeadAttention)
        model_size, num_heads = self.output_weight.shape[1], attention.num_heads
        num_entries = num_hypotheses * (target_length + STEPS_OF_ROOM)  # N
        # Bias, scores and weights (H, K, N); scores other than the scaled dot product compare vector with vector.
        per_score = 3 if attention.is_scaled_dot else 3 + attention.head_size
        scores = num_hypotheses * (per_score * num_heads * (num_entries + source_length) + 2 * num_entries)
        # Keys and values, twice while the cache grows or sentences leave it.
        caches = 2 * len(self.decoder) * 2 * (num_entries + source_length) * model_size
        layer = 16 * model_size  # of one position: inputs and outputs of attention and of the feed-forward part
        encoder = 2 * num_heads * source_length**2 + source_length * layer
        return max(encoder, scores + caches + num_hypotheses * layer)
