"""Our Transformer as two ONNX graphs: the encoder, and one step of the decoder with its cache.

Letters: B sentences, S source length, t pieces written so far, D model size, L decoder layers, H heads, V vocabulary.
"""

import logging
import math
import warnings
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from translator.attention.multihead import MultiHeadAttention
from translator.attention.positions import LearnedPositions, SinusoidalPositions
from translator.data.tokenizer import Tokenizer
from translator.decoding.line_translator import LineTranslator
from translator.errors import UserError
from translator.export.folder import SENTENCEPIECE_FILES, save_sentencepiece
from translator.export.model_card import BY_PROGRAM, line_program
from translator.export.onnx_model import DECODER_FILE, ENCODER_FILE, OnnxModel
from translator.export.sample import SampleSearch, Written, search_options, written_by
from translator.ids import BOS, EOS, PAD
from translator.models.base import Seq2Seq
from translator.models.transformer import Transformer
from translator.models.transformer_layers import DecoderLayer, EncoderLayer
from translator.runs.loading import LoadedRun

MAX_POSITIONS = 1_024  # longest source and longest output
HIDDEN = -1e9  # attention score of masked positions
PACKAGES = "onnxruntime sentencepiece numpy"
USAGE = """
import unicodedata

import numpy as np
import onnxruntime
import sentencepiece

PAD, BOS, EOS = 0, 2, 3
folder = "FOLDER"
source_pieces = sentencepiece.SentencePieceProcessor(f"{folder}/source.spm")
target_pieces = sentencepiece.SentencePieceProcessor(f"{folder}/target.spm")
encoder = onnxruntime.InferenceSession(f"{folder}/encoder.onnx")
decoder = onnxruntime.InferenceSession(f"{folder}/decoder_step.onnx")


def translate(lines, max_length=200):
    rows = [source_pieces.encode(" ".join(unicodedata.normalize("NFC", line).split())) + [EOS] for line in lines]
    source = np.full((len(rows), max(map(len, rows))), PAD, dtype=np.int64)
    for number, row in enumerate(rows):
        source[number, : len(row)] = row
    cross_keys, cross_values = encoder.run(None, {"source": source})
    layers, sentences, heads, _, size = cross_keys.shape
    keys = values = np.zeros((layers, sentences, heads, 0, size), dtype=np.float32)
    tokens, outputs = np.full(sentences, BOS, dtype=np.int64), [[] for _ in lines]
    running = np.ones(sentences, dtype=bool)
    for step in range(max_length):
        inputs = {"tokens": tokens, "source": source, "cross_keys": cross_keys, "cross_values": cross_values}
        logits, keys, values = decoder.run(None, inputs | {"keys": keys, "values": values})
        logits[:, [PAD, BOS]] = -np.inf  # never written
        if step == 0:
            logits[:, EOS] = -np.inf  # a translation is not empty
        tokens = logits.argmax(1)
        running &= tokens != EOS
        if not running.any():
            break
        for number in running.nonzero()[0]:
            outputs[number].append(int(tokens[number]))
    return [target_pieces.decode([piece for piece in output if piece > EOS]) for output in outputs]


print(translate(["Hello!"])[0])
"""
NORMALIZATION = BY_PROGRAM


def usage(run: LoadedRun) -> str:
    return line_program(USAGE, normalizes=run.config.data.cleaning.normalize)


def supported(model: Seq2Seq) -> Transformer:
    """The model; raises a UserError if it cannot be exported."""
    if not isinstance(model, Transformer):
        raise UserError("model: only Transformers are exported to ONNX; give the run of a Transformer")
    attention = model.decoder[0].self_attention
    assert isinstance(attention, MultiHeadAttention)
    if not attention.is_scaled_dot:
        raise UserError(
            "model.score: only the scaled dot product can be exported to ONNX; give a run with score=scaled_dot"
        )
    if model.decoder_bias is not None:
        raise UserError("model.positions=relative: cannot be exported to ONNX; give a run with other positions")
    return model


def write(run: LoadedRun, folder: Path) -> None:
    """Writes both graphs and the SentencePiece models into an empty folder."""
    model = supported(run.model)
    batch, length, written = (torch.export.Dim(name, min=1) for name in ("batch", "length", "written"))
    source = torch.tensor([[5, 6, EOS], [5, EOS, PAD]])
    encoder, step = EncoderGraph(model).eval(), DecoderStepGraph(model).eval()
    with torch.no_grad():
        cross = encoder(source)
    layers, _, heads, _, head_size = cross[0].shape
    cache = torch.zeros(layers, 2, heads, 4, head_size)
    side = {1: batch, 3: length}
    past = {1: batch, 3: written}
    names = ["cross_keys", "cross_values"]
    _export(encoder, (source,), folder / ENCODER_FILE, ["source"], names, ({0: batch, 1: length},))
    _export(
        step,
        (torch.tensor([BOS, BOS]), source, *cross, cache, cache.clone()),
        folder / DECODER_FILE,
        ["tokens", "source", *names, "keys", "values"],
        ["logits", "new_keys", "new_values"],
        ({0: batch}, {0: batch, 1: length}, side, side, past, past),
    )
    save_sentencepiece(run.tokenizer, folder)


def _export(
    module: nn.Module,
    arguments: tuple[Tensor, ...],
    path: Path,
    inputs: list[str],
    outputs: list[str],
    shapes: tuple[dict[int, torch.export.Dim], ...],
) -> None:
    with warnings.catch_warnings():  # about its own names and about libraries that the model does not need
        warnings.simplefilter("ignore")
        logging.getLogger("torch.onnx").setLevel(logging.ERROR)
        torch.onnx.export(
            module,
            arguments,
            path,
            input_names=inputs,
            output_names=outputs,
            dynamic_shapes=shapes,
            dynamo=True,
            external_data=False,
            verbose=False,
        )


class _Graph(nn.Module):
    """What both sides have in common: embeddings with positions, and attention."""

    def __init__(self, embedding: nn.Embedding, positions: nn.Module, attention: MultiHeadAttention) -> None:
        super().__init__()
        self.embedding = embedding
        self.scale = math.sqrt(embedding.embedding_dim)
        self.num_heads, self.head_size = attention.num_heads, attention.head_size
        table = torch.zeros(MAX_POSITIONS, embedding.embedding_dim)
        if isinstance(positions, SinusoidalPositions | LearnedPositions):
            table = positions.encoding(MAX_POSITIONS).detach()
        self.positions: Tensor
        self.register_buffer("positions", table)
        self.rotations: Tensor | None
        rotary = attention.rotary
        self.register_buffer("rotations", None if rotary is None else rotary.encoding(MAX_POSITIONS).detach())

    def embed(self, tokens: Tensor, first: int | Tensor) -> tuple[Tensor, Tensor]:
        """Tokens (B, T) as x (B, T, D), and their positions (T,), which begin with `first`."""
        places = torch.arange(tokens.shape[1]) + first
        return self.embedding(tokens) * self.scale + self.positions[places], places

    def rotate(self, heads: Tensor, places: Tensor) -> Tensor:
        """Heads (B, H, T, D/H) with rotary positions, where the model has them."""
        if self.rotations is None:
            return heads
        sines, cosines = self.rotations[places].chunk(2, dim=-1)
        first, second = heads.chunk(2, dim=-1)
        return torch.cat((first * cosines - second * sines, second * cosines + first * sines), dim=-1)

    def split(self, x: Tensor, num_parts: int) -> tuple[Tensor, ...]:
        """Projected x (B, T, parts · D) as parts (B, H, T, D/H)."""
        heads = x.unflatten(-1, (num_parts, self.num_heads, self.head_size))  # (B, T, parts, H, D/H)
        parts: tuple[Tensor, ...] = heads.permute(2, 0, 3, 1, 4).unbind()
        return parts

    def attend(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
        """The attended values (B, T, D); the mask (B, 1, 1, S) is True where a key may be attended to."""
        scores = queries @ keys.transpose(-1, -2) / math.sqrt(self.head_size)  # (B, H, T, S)
        if mask is not None:
            scores = scores.masked_fill(~mask, HIDDEN)
        return (torch.softmax(scores, -1) @ values).transpose(1, 2).flatten(2)


class EncoderGraph(_Graph):
    def __init__(self, model: Transformer) -> None:
        attention = model.encoder[0].self_attention
        assert isinstance(attention, MultiHeadAttention)
        super().__init__(model.embeddings.source, model.source_positions, attention)
        self.layers, self.norm = model.encoder, model.encoder_norm
        self.decoder_layers = model.decoder

    def forward(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """Sources (B, S) to the keys and values of cross-attention, both (L, B, H, S, D/H)."""
        mask = (source != PAD)[:, None, None, :]  # (B, 1, 1, S)
        x, places = self.embed(source, 0)
        for layer in self.layers:
            assert isinstance(layer, EncoderLayer)
            attention = layer.self_attention
            queries, keys, values = self.split(attention.input_projection(layer.self_residual.enter(x)), 3)
            attended = self.attend(self.rotate(queries, places), self.rotate(keys, places), values, mask)
            x = layer.self_residual.leave(x, attention.output_projection(attended))
            x = layer.feedforward_residual.leave(x, layer.feedforward(layer.feedforward_residual.enter(x)))
        memory = self.norm(x)
        layers = (layer for layer in self.decoder_layers if isinstance(layer, DecoderLayer))
        pairs = [layer.cross_attention.project_memory(memory) for layer in layers]
        return torch.stack([keys for keys, _ in pairs]), torch.stack([values for _, values in pairs])


class DecoderStepGraph(_Graph):
    def __init__(self, model: Transformer) -> None:
        attention = model.decoder[0].self_attention
        assert isinstance(attention, MultiHeadAttention)
        super().__init__(model.embeddings.target, model.target_positions, attention)
        self.layers, self.norm = model.decoder, model.decoder_norm
        self.output_weight = model.output_weight

    def forward(
        self,
        tokens: Tensor,  # (B,), BOS first
        source: Tensor,  # (B, S)
        cross_keys: Tensor,  # (L, B, H, S, D/H)
        cross_values: Tensor,  # (L, B, H, S, D/H)
        keys: Tensor,  # (L, B, H, t, D/H), at first with t = 0
        values: Tensor,  # (L, B, H, t, D/H)
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The logits (B, V) of the next tokens, and the cache with one more position."""
        mask = (source != PAD)[:, None, None, :]  # (B, 1, 1, S)
        x, places = self.embed(tokens[:, None], keys.shape[3])
        new_keys, new_values = [], []
        for number, layer in enumerate(self.layers):
            assert isinstance(layer, DecoderLayer)
            attention = layer.self_attention
            queries, key, value = self.split(attention.input_projection(layer.self_residual.enter(x)), 3)
            new_keys.append(torch.cat((keys[number], self.rotate(key, places)), 2))  # (B, H, t + 1, D/H)
            new_values.append(torch.cat((values[number], value), 2))
            attended = self.attend(self.rotate(queries, places), new_keys[-1], new_values[-1], None)
            x = layer.self_residual.leave(x, attention.output_projection(attended))
            x = layer.cross_residual.leave(x, self._cross(layer, x, cross_keys[number], cross_values[number], mask))
            x = layer.feedforward_residual.leave(x, layer.feedforward(layer.feedforward_residual.enter(x)))
        logits = nn.functional.linear(self.norm(x).squeeze(1), self.output_weight)  # (B, V)
        return logits, torch.stack(new_keys), torch.stack(new_values)

    def _cross(self, layer: DecoderLayer, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        projection, size = layer.cross_attention.input_projection, x.shape[-1]
        entered = layer.cross_residual.enter(x)
        (queries,) = self.split(nn.functional.linear(entered, projection.weight[:size], projection.bias[:size]), 1)
        result: Tensor = layer.cross_attention.output_projection(self.attend(queries, keys, values, mask))
        return result


# ---- translating with the exported model ----


def translate(folder: Path, lines: Sequence[str], search: SampleSearch) -> list[Written]:
    """Translations made with onnxruntime and our own greedy or beam search."""
    tokenizer = Tokenizer("onnx", [(folder / name).read_bytes() for name in SENTENCEPIECE_FILES])
    return written_by(LineTranslator(OnnxModel(folder), tokenizer, options=search_options(search)), lines)
