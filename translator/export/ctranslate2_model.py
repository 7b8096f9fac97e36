"""Our Transformer as a CTranslate2 model, through the library's specification classes."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from ctranslate2.specs import common_spec, model_spec, transformer_spec
from torch import Tensor, nn

from translator.attention.multihead import MultiHeadAttention
from translator.attention.positions import LearnedPositions, SinusoidalPositions
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
MAX_POSITIONS = 4_096  # CTranslate2 refuses longer sentences where positions come from a table
NEVER = -1e4  # bias of pieces that must never be generated; representable in float16


def convert(
    model: Seq2Seq,
    folder: Path,
    source_pieces: Sequence[str],
    target_pieces: Sequence[str],
    quantization: str = "float32",
    never: Sequence[int] = (),
) -> None:
    """Writes the model to a folder that `ctranslate2.Translator` can open.

    The pieces in `never` get so low a bias that no search can choose them; the others share their probability.
    """
    spec = specification(model, source_pieces, target_pieces, never)
    spec.validate()
    # Stores tied matrices once.
    spec.optimize(quantization=None if quantization == "float32" else quantization)
    folder.mkdir(parents=True, exist_ok=True)
    spec.save(str(folder))


def specification(
    model: Seq2Seq, source_pieces: Sequence[str], target_pieces: Sequence[str], never: Sequence[int] = ()
) -> transformer_spec.TransformerSpec:
    """The model as a CTranslate2 specification."""
    transformer = supported(model)
    encoder_layers = [layer for layer in transformer.encoder if isinstance(layer, EncoderLayer)]
    decoder_layers = [layer for layer in transformer.decoder if isinstance(layer, DecoderLayer)]
    spec = _empty_specification(len(encoder_layers), decoder_layers)
    embeddings = transformer.embeddings
    sides = (
        (spec.encoder, spec.encoder.embeddings[0], embeddings.source, "source_positions", "encoder_norm"),
        (spec.decoder, spec.decoder.embeddings, embeddings.target, "target_positions", "decoder_norm"),
    )
    for side, embeddings_spec, embedding, positions, norm in sides:
        embeddings_spec.weight = _array(embedding.weight)  # scaled by √D in both implementations
        _set_positions(side, getattr(transformer, positions), embedding.embedding_dim)
        if not isinstance(getattr(transformer, norm), nn.Identity):
            _set_norm(side.layer_norm, getattr(transformer, norm))
    bias: Tensor | None = embeddings.output_bias
    if never:
        bias = torch.zeros(embeddings.target.num_embeddings) if bias is None else bias.detach().clone()
        bias[list(never)] = NEVER
    _set_linear(spec.decoder.projection, embeddings.output_weight, bias)
    for encoder_spec, encoder_layer in zip(spec.encoder.layer, encoder_layers, strict=True):
        _set_self_attention(encoder_spec.self_attention, encoder_layer.self_attention, encoder_layer.self_residual)
        _set_feedforward(encoder_spec.ffn, encoder_layer.feedforward, encoder_layer.feedforward_residual)
    for decoder_spec, decoder_layer in zip(spec.decoder.layer, decoder_layers, strict=True):
        _set_self_attention(decoder_spec.self_attention, decoder_layer.self_attention, decoder_layer.self_residual)
        _set_cross_attention(decoder_spec.attention, decoder_layer.cross_attention, decoder_layer.cross_residual)
        _set_feedforward(decoder_spec.ffn, decoder_layer.feedforward, decoder_layer.feedforward_residual)
    spec.register_source_vocabulary(list(source_pieces))
    spec.register_target_vocabulary(list(target_pieces))
    spec.config.layer_norm_epsilon = _epsilon(decoder_layers[0].self_residual.norm)
    spec.config.unk_token, spec.config.eos_token = target_pieces[UNK], target_pieces[EOS]
    spec.config.bos_token = spec.config.decoder_start_token = target_pieces[BOS]
    spec.config.add_source_eos = True
    return spec


def supported(model: Seq2Seq) -> Transformer:
    """The model; raises a UserError if CTranslate2 cannot represent it."""
    if not isinstance(model, Transformer):
        raise UserError("model: CTranslate2 has no LSTM with attention; give the run of a Transformer")
    attention = model.decoder[0].self_attention
    assert isinstance(attention, MultiHeadAttention)
    if not attention.is_scaled_dot:
        raise UserError(
            "model.score: CTranslate2 only supports the scaled dot product; give a run with score=scaled_dot"
        )
    if model.decoder_bias is not None:
        raise UserError("model.positions=relative: cannot be converted to CTranslate2; give a run with other positions")
    return model


def _empty_specification(num_encoder_layers: int, layers: Sequence[DecoderLayer]) -> transformer_spec.TransformerSpec:
    """An empty specification, built from encoder and decoder because `from_config` drops rotary positions."""
    attention, residual, feedforward = layers[0].self_attention, layers[0].self_residual, layers[0].feedforward
    options = {
        "pre_norm": residual.pre_norm,
        "activation": ACTIVATIONS[feedforward.activation],
        "ffn_glu": feedforward.activation == "swiglu",
        "rms_norm": isinstance(residual.norm, nn.RMSNorm),
    }
    if attention.rotary is not None:  # dimension i is rotated with i + D/2
        options |= {"rotary_dim": attention.head_size, "rotary_interleave": False}
    encoder = transformer_spec.TransformerEncoderSpec(num_encoder_layers, attention.num_heads, **options)
    decoder = transformer_spec.TransformerDecoderSpec(len(layers), attention.num_heads, **options)
    if attention.rotary is not None:
        del encoder.position_encodings
    return transformer_spec.TransformerSpec(encoder, decoder)


def _epsilon(norm: nn.Module) -> float:
    assert isinstance(norm, nn.LayerNorm | nn.RMSNorm)
    assert norm.eps is not None
    return norm.eps


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().to("cpu", torch.float32).numpy().copy()  # since quantization overwrites it


def _set_linear(spec: model_spec.LayerSpec, weight: Tensor, bias: Tensor | None) -> None:
    spec.weight = _array(weight)
    if bias is not None:
        spec.bias = _array(bias)


def _set_norm(spec: model_spec.LayerSpec, norm: nn.Module) -> None:
    assert isinstance(norm, nn.LayerNorm | nn.RMSNorm)
    spec.gamma = _array(norm.weight)
    if isinstance(norm, nn.LayerNorm):
        spec.beta = _array(norm.bias)


def _set_positions(spec: model_spec.LayerSpec, positions: nn.Module, size: int) -> None:
    """Fills the table of positions, if there is one."""
    if not hasattr(spec, "position_encodings"):
        return
    if isinstance(positions, SinusoidalPositions | LearnedPositions):
        encodings = positions.encoding(MAX_POSITIONS)  # sines and cosines interleaved; CTranslate2's are concatenated
    else:
        encodings = torch.zeros(MAX_POSITIONS, size)
    spec.position_encodings.encodings = _array(encodings)


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
