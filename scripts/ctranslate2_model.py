"""Converts our Transformer to CTranslate2's format, so that both can decode the same model.

Pieces are named by their ids ("4", "5", …), so inputs and outputs are ids.
"""

from pathlib import Path

import numpy as np
import torch
from ctranslate2.specs import common_spec, model_spec, transformer_spec
from torch import Tensor, nn

from translator.attention.multihead import MultiHeadAttention
from translator.attention.positions import TABLE_LENGTH, LearnedPositions, SinusoidalPositions
from translator.errors import UserError
from translator.ids import BOS, EOS, UNK
from translator.models.base import Seq2Seq
from translator.models.transformer import Transformer
from translator.models.transformer_layers import DecoderLayer, EncoderLayer, FeedForward, Residual

ACTIVATIONS = {
    "relu": common_spec.Activation.RELU,
    "gelu": common_spec.Activation.GELU,
    "swiglu": common_spec.Activation.SWISH,  # applied to the gate, which multiplies the values
}


def convert(model: Seq2Seq, folder: Path) -> None:
    """Writes the model to a new folder that `ctranslate2.Translator` can open."""
    spec = specification(model)
    spec.validate()
    spec.optimize()  # stores tied matrices once
    folder.mkdir(parents=True)
    spec.save(str(folder))


def specification(model: Seq2Seq) -> transformer_spec.TransformerSpec:
    """The model as a CTranslate2 specification."""
    if not isinstance(model, Transformer):
        raise UserError("model: CTranslate2 has no LSTM with attention; give the run of a Transformer")
    encoder_layers = [layer for layer in model.encoder if isinstance(layer, EncoderLayer)]
    decoder_layers = [layer for layer in model.decoder if isinstance(layer, DecoderLayer)]
    some_layer = decoder_layers[0]
    _check_attention(some_layer.self_attention)
    if model.decoder_bias is not None:
        raise UserError("model.positions=relative: not converted to CTranslate2; give a run with other positions")
    spec = transformer_spec.TransformerSpec.from_config(
        (len(encoder_layers), len(decoder_layers)),
        some_layer.self_attention.num_heads,
        pre_norm=some_layer.self_residual.pre_norm,
        activation=ACTIVATIONS[some_layer.feedforward.activation],
        ffn_glu=some_layer.feedforward.activation == "swiglu",
        rms_norm=isinstance(some_layer.self_residual.norm, nn.RMSNorm),
    )
    embeddings = model.embeddings
    _set_side(spec.encoder, spec.encoder.embeddings[0], embeddings.source, model.source_positions, model.encoder_norm)
    _set_side(spec.decoder, spec.decoder.embeddings, embeddings.target, model.target_positions, model.decoder_norm)
    _set_linear(spec.decoder.projection, embeddings.output_weight, embeddings.output_bias)
    for encoder_spec, encoder_layer in zip(spec.encoder.layer, encoder_layers, strict=True):
        _set_self_attention(encoder_spec.self_attention, encoder_layer.self_attention, encoder_layer.self_residual)
        _set_feedforward(encoder_spec.ffn, encoder_layer.feedforward, encoder_layer.feedforward_residual)
    for decoder_spec, decoder_layer in zip(spec.decoder.layer, decoder_layers, strict=True):
        _set_self_attention(decoder_spec.self_attention, decoder_layer.self_attention, decoder_layer.self_residual)
        _set_cross_attention(decoder_spec.attention, decoder_layer.cross_attention, decoder_layer.cross_residual)
        _set_feedforward(decoder_spec.ffn, decoder_layer.feedforward, decoder_layer.feedforward_residual)
    spec.register_source_vocabulary([str(piece) for piece in range(embeddings.source.num_embeddings)])
    spec.register_target_vocabulary([str(piece) for piece in range(embeddings.target.num_embeddings)])
    spec.config.layer_norm_epsilon = _epsilon(some_layer.self_residual.norm)
    spec.config.unk_token, spec.config.eos_token = str(UNK), str(EOS)
    spec.config.bos_token = spec.config.decoder_start_token = str(BOS)
    return spec


def _check_attention(attention: MultiHeadAttention) -> None:
    """Refuses what CTranslate2 cannot express in an encoder–decoder model."""
    if not attention.is_scaled_dot:
        raise UserError("model.score: CTranslate2 knows the scaled dot product only; give a run with score=scaled_dot")
    if attention.rotary is not None:
        raise UserError("model.positions=rotary: CTranslate2's encoders have none; give a run with other positions")


def _epsilon(norm: nn.Module) -> float:
    assert isinstance(norm, nn.LayerNorm | nn.RMSNorm)
    assert norm.eps is not None
    return norm.eps


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().to("cpu", torch.float32).numpy()


def _set_linear(spec: model_spec.LayerSpec, weight: Tensor, bias: Tensor | None) -> None:
    spec.weight = _array(weight)
    if bias is not None:
        spec.bias = _array(bias)


def _set_norm(spec: model_spec.LayerSpec, norm: nn.Module) -> None:
    assert isinstance(norm, nn.LayerNorm | nn.RMSNorm)
    spec.gamma = _array(norm.weight)
    if isinstance(norm, nn.LayerNorm):
        spec.beta = _array(norm.bias)


def _set_side(
    spec: model_spec.LayerSpec,
    embeddings_spec: model_spec.LayerSpec,
    embedding: nn.Embedding,
    positions: nn.Module,
    final_norm: nn.Module,
) -> None:
    """Sets the parts of an encoder or decoder outside its layers: embeddings, positions and the final norm."""
    embeddings_spec.weight = _array(embedding.weight)  # scaled by √D in both implementations
    if isinstance(positions, SinusoidalPositions):
        encodings = positions.encoding(TABLE_LENGTH)  # sines and cosines interleaved; CTranslate2's are concatenated
    elif isinstance(positions, LearnedPositions):
        encodings = positions.encoding(positions.max_positions)
    else:
        encodings = torch.zeros(TABLE_LENGTH, embedding.embedding_dim)
    spec.position_encodings.encodings = _array(encodings)  # CTranslate2 refuses longer sentences
    if not isinstance(final_norm, nn.Identity):
        _set_norm(spec.layer_norm, final_norm)


def _set_self_attention(spec: model_spec.LayerSpec, attention: MultiHeadAttention, residual: Residual) -> None:
    _set_linear(spec.linear[0], attention.input_projection.weight, attention.input_projection.bias)  # Q, K and V
    _set_linear(spec.linear[1], attention.output_projection.weight, attention.output_projection.bias)
    _set_norm(spec.layer_norm, residual.norm)


def _set_cross_attention(spec: model_spec.LayerSpec, attention: MultiHeadAttention, residual: Residual) -> None:
    weight, bias = attention.input_projection.weight, attention.input_projection.bias
    size = weight.shape[1]
    _set_linear(spec.linear[0], weight[:size], bias[:size])  # Q
    _set_linear(spec.linear[1], weight[size:], bias[size:])  # K and V
    _set_linear(spec.linear[2], attention.output_projection.weight, attention.output_projection.bias)
    _set_norm(spec.layer_norm, residual.norm)


def _set_feedforward(spec: model_spec.LayerSpec, feedforward: FeedForward, residual: Residual) -> None:
    weight, bias = feedforward.inner.weight, feedforward.inner.bias
    if feedforward.activation == "swiglu":
        _set_linear(spec.linear_0, *(part.chunk(2)[0] for part in (weight, bias)))  # the gate
        _set_linear(spec.linear_0_noact, *(part.chunk(2)[1] for part in (weight, bias)))
    else:
        _set_linear(spec.linear_0, weight, bias)
    _set_linear(spec.linear_1, feedforward.outer.weight, feedforward.outer.bias)
    _set_norm(spec.layer_norm, residual.norm)
