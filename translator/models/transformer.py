"""The Transformer (Vaswani et al. 2017): encoder, decoder and the translation model made of them.

Letters: B sentences, S source length, T target length, D model size, F feed-forward size, H heads, L decoder layers,
R rows (hypotheses) during search, K = R / B.
"""

import math
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn

from translator.attention.dropout import Dropout
from translator.attention.multihead import KeyValue
from translator.attention.positions import LearnedPositions, NoPositions, RotaryPositions, SinusoidalPositions
from translator.models.base import Decoded, Memory, Seq2Seq, State, Step
from translator.models.embeddings import Embeddings
from translator.models.transformer_layers import DecoderLayer, EncoderLayer, LayerOptions, initialize


@dataclass(frozen=True)
class TransformerState(State):
    """The keys and values so far: of the source once for each sentence, of the target for each hypothesis."""

    memory: tuple[KeyValue, ...]  # for each layer (B, H, S, D/H)
    memory_mask: Tensor  # (B, 1, 1, S)
    prefix: tuple[KeyValue, ...]  # for each layer (R, H, t, D/H), t tokens having been fed

    @property
    def length(self) -> int:
        """The number of tokens fed so far."""
        return self.prefix[0].keys.shape[2] if self.prefix else 0

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> Self:
        memory, memory_mask = self.memory, self.memory_mask
        if sentences is not None:
            memory = tuple(layer.select(sentences) for layer in memory)
            memory_mask = memory_mask.index_select(0, sentences)
        return type(self)(memory, memory_mask, tuple(layer.select(rows) for layer in self.prefix))


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
        norm_order: str = "pre",
        norm: str = "layer",
        activation: str = "relu",
        positions: str = "sinusoidal",
        max_positions: int = 1024,
        score: str = "scaled_dot",
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        activation_dropout: float = 0.0,
        tie_embeddings: str = "all",
    ) -> None:
        super().__init__()
        options = LayerOptions(
            model_size=model_size,
            feedforward_size=feedforward_size,
            num_heads=num_heads,
            norm_order=norm_order,
            norm=norm,
            activation=activation,
            score=score,
            dropout=dropout,
            attention_dropout=attention_dropout,
            activation_dropout=activation_dropout,
            rotary=RotaryPositions(model_size // num_heads) if positions == "rotary" else None,
        )
        self.embeddings = Embeddings(source_vocab_size, target_vocab_size, model_size, tie_embeddings)
        self.embedding_scale = math.sqrt(model_size)  # section 3.4: brings embeddings to the size of the positions
        self.source_positions = _additive_positions(positions, model_size, max_positions)
        self.target_positions = _additive_positions(positions, model_size, max_positions)
        self.dropout = Dropout(dropout)
        self.encoder = nn.ModuleList(EncoderLayer(options) for _ in range(encoder_layers))
        self.decoder = nn.ModuleList(DecoderLayer(options) for _ in range(decoder_layers))
        # The last layer of a pre-norm stack leaves an unnormalised sum; post-norm layers end with a norm of their own.
        self.encoder_norm = options.make_norm() if norm_order == "pre" else nn.Identity()
        self.decoder_norm = options.make_norm() if norm_order == "pre" else nn.Identity()
        initialize(self.encoder, encoder_layers, norm_order)
        initialize(self.decoder, decoder_layers, norm_order)

    @property
    def output_weight(self) -> Tensor:
        return self.embeddings.output_weight

    @property
    def output_bias(self) -> Tensor | None:
        return self.embeddings.output_bias

    def project(self, states: Tensor) -> Tensor:
        return self.embeddings.project(states)

    def encode(self, source: Tensor, source_mask: Tensor) -> Memory:
        embedded = self.embeddings.embed_source(source) * self.embedding_scale
        x = self.dropout(self.source_positions(embedded))  # (B, S, D)
        attention_mask = source_mask[:, None, None, :]  # (B, 1, 1, S)
        for layer in self.encoder:
            x = layer(x, attention_mask)
        return Memory(self.encoder_norm(x), source_mask)

    def forward(
        self,
        source: Tensor,
        source_mask: Tensor,
        target_in: Tensor,
        *,
        teacher_forcing: float = 1.0,
        need_weights: bool = False,
    ) -> Decoded:
        if teacher_forcing != 1:
            raise ValueError("a Transformer reads the whole target at once: teacher_forcing must be 1")
        memory = self.encode(source, source_mask)
        # Padding at the end of the target needs no mask of its own: no real position looks that far ahead.
        length = target_in.shape[1]
        causal_mask = torch.ones(length, length, dtype=torch.bool, device=source.device).tril()  # (T, T)
        states, _, attention = self._decode(target_in, self.start(memory), causal_mask, need_weights)
        return Decoded(states, attention)

    def start(self, memory: Memory) -> TransformerState:
        layers = []
        for layer in self.decoder:
            assert isinstance(layer, DecoderLayer)
            layers.append(layer.cross_attention.project_memory(memory.states))
        return TransformerState(tuple(layers), memory.mask[:, None, None, :], ())

    def step(self, tokens: Tensor, state: State, *, need_weights: bool = False) -> Step:
        assert isinstance(state, TransformerState)
        states, state, attention = self._decode(tokens[:, None], state, None, need_weights)
        return Step(self.project(states[:, 0]), state, attention[:, :, :, 0] if attention is not None else None)

    def _decode(
        self, tokens: Tensor, state: TransformerState, self_mask: Tensor | None, need_weights: bool
    ) -> tuple[Tensor, TransformerState, Tensor | None]:
        """Feeds the tokens (R, T) after those of the state; gives states (R, T, D), attention (R, L, H, T, S)."""
        embedded = self.embeddings.embed_target(tokens) * self.embedding_scale
        x = self.dropout(self.target_positions(embedded, state.length))  # (R, T, D)
        prefixes, attention = [], []
        for index, layer in enumerate(self.decoder):
            prefix = state.prefix[index] if state.prefix else None
            x, prefix, weights = layer(
                x, self_mask, state.memory[index], state.memory_mask, prefix, need_weights=need_weights
            )
            prefixes.append(prefix)
            attention.append(weights)
        state = TransformerState(state.memory, state.memory_mask, tuple(prefixes))
        return self.decoder_norm(x), state, torch.stack(attention, 1) if need_weights else None


def _additive_positions(name: str, size: int, max_positions: int) -> nn.Module:
    """What is added to the embeddings; rotary positions turn queries and keys instead."""
    if name == "sinusoidal":
        return SinusoidalPositions(size)
    if name == "learned":
        return LearnedPositions(size, max_positions)
    if name in ("rotary", "none"):
        return NoPositions()
    raise ValueError(f"positions must be one of sinusoidal, learned, rotary or none, not {name}")
