"""Our Transformer as a model of Hugging Face's `transformers`.

Pegasus has the same layers as our pre-norm model, and Marian the same as our post-norm model. Both add sinusoidal
positions whose sines fill the first half of the dimensions and whose cosines fill the second; ours alternate. The order
of the dimensions of the residual stream is arbitrary, so all matrices are permuted to match. Pegasus also takes learned
positions, or none, in place of the sinusoids. Marian would compute with them too, but leaves its positions out when it
is saved, so that they would be sinusoids again the next time it is loaded.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from transformers import MarianConfig, PegasusConfig, PreTrainedConfig

from translator.attention.multihead import MultiHeadAttention
from translator.attention.positions import LearnedPositions, SinusoidalPositions
from translator.errors import UserError
from translator.ids import BOS, EOS, PAD
from translator.models.base import Seq2Seq
from translator.models.transformer import Transformer
from translator.models.transformer_layers import DecoderLayer, EncoderLayer, FeedForward, Residual

MAX_POSITIONS = 1_024  # or more, where more are learned
NEVER = -1e4  # bias of the rows that pad the smaller of two vocabularies


def supported(model: Seq2Seq) -> Transformer:
    """The model; raises a UserError if no class in `transformers` computes the same function."""
    if not isinstance(model, Transformer):
        raise UserError("model: transformers has no LSTM with attention; give the run of a Transformer")
    layer = model.decoder[0]
    assert isinstance(layer, DecoderLayer)
    remedy = "transformers has no encoder–decoder with it; use --to ctranslate2, or a run with"
    if not layer.self_attention.is_scaled_dot:
        raise UserError(
            "model.score: transformers only supports the scaled dot product; give a run with score=scaled_dot"
        )
    if layer.self_attention.rotary is not None:
        raise UserError(f"model.positions=rotary: {remedy} positions=sinusoidal")
    if model.decoder_bias is not None:
        raise UserError(
            "model.positions=relative: only T5 has it, and T5's layers have no biases; use positions=sinusoidal"
        )
    if not layer.self_residual.pre_norm and not isinstance(model.target_positions, SinusoidalPositions):
        name = "learned" if isinstance(model.target_positions, LearnedPositions) else "none"
        raise UserError(
            f"model.positions={name}: with norm_order=post, transformers saves no positions but sinusoidal ones; use "
            "--to ctranslate2, or a run with norm_order=pre or positions=sinusoidal"
        )
    if isinstance(layer.self_residual.norm, nn.RMSNorm):
        raise UserError(f"model.norm=rms: {remedy} norm=layer")
    if layer.feedforward.activation == "swiglu":
        raise UserError(f"model.activation=swiglu: {remedy} activation=relu")
    return model


def make_configuration(model: Transformer) -> PreTrainedConfig:
    """The configuration of the class that computes the same function."""
    layer = model.decoder[0]
    assert isinstance(layer, DecoderLayer)
    embeddings, positions = model.embeddings, model.target_positions
    num_learned = positions.max_positions if isinstance(positions, LearnedPositions) else 0
    heads, inner = layer.self_attention.num_heads, layer.feedforward.outer.in_features
    options = {
        "d_model": embeddings.target.embedding_dim,
        "vocab_size": max(embeddings.source.num_embeddings, embeddings.target.num_embeddings),
        "max_position_embeddings": max(MAX_POSITIONS, num_learned),
        "encoder_layers": len(model.encoder),
        "decoder_layers": len(model.decoder),
        **{f"{side}_attention_heads": heads for side in ("encoder", "decoder")},
        **{f"{side}_ffn_dim": inner for side in ("encoder", "decoder")},
        "activation_function": layer.feedforward.activation,
        "scale_embedding": True,
        "pad_token_id": PAD,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "decoder_start_token_id": BOS,
        "forced_eos_token_id": None,
        "tie_word_embeddings": _are_all_tied(model),
    }
    if layer.self_residual.pre_norm:
        return PegasusConfig(**options, architectures=["PegasusForConditionalGeneration"])
    return MarianConfig(
        **options,
        architectures=["MarianMTModel"],
        decoder_vocab_size=options["vocab_size"],
        share_encoder_decoder_embeddings=_are_all_tied(model),
    )


def weights(model: Transformer, configuration: PreTrainedConfig) -> Iterator[tuple[str, Tensor]]:
    """The tensors by the names that `transformers` gives them."""
    size = configuration.d_model
    order = torch.arange(size)
    if isinstance(model.source_positions, SinusoidalPositions):
        order = torch.cat((order[0::2], order[1::2]))  # sines, then cosines
    yield from _embeddings(model, configuration, order)
    for name, stack, norm, positions in (
        ("encoder", model.encoder, model.encoder_norm, model.source_positions),
        ("decoder", model.decoder, model.decoder_norm, model.target_positions),
    ):
        prefix = f"model.{name}"
        yield f"{prefix}.embed_positions.weight", _position_table(positions, configuration)[:, order]
        if not isinstance(norm, nn.Identity):
            yield from _norm(f"{prefix}.layer_norm", norm, order)
        for number, layer in enumerate(stack):
            assert isinstance(layer, EncoderLayer | DecoderLayer)
            yield from _layer(f"{prefix}.layers.{number}", layer, order)


def _are_all_tied(model: Transformer) -> bool:
    embeddings = model.embeddings
    return embeddings.source.weight is embeddings.target.weight is embeddings.output_weight


def _embeddings(model: Transformer, configuration: PreTrainedConfig, order: Tensor) -> Iterator[tuple[str, Tensor]]:
    embeddings, num_rows = model.embeddings, configuration.vocab_size

    def filled(weight: Tensor) -> Tensor:
        """The matrix, padded with rows of zeros up to the size of the larger vocabulary."""
        return nn.functional.pad(weight[:, order], (0, 0, 0, num_rows - weight.shape[0]))

    bias = torch.full((1, num_rows), NEVER)
    bias[:, : embeddings.target.num_embeddings] = 0
    yield "final_logits_bias", bias
    if _are_all_tied(model):
        yield "model.shared.weight", filled(embeddings.target.weight)
        return
    if isinstance(configuration, PegasusConfig):  # which has this matrix even if it is unused
        yield "model.shared.weight", filled(embeddings.target.weight)
    yield "model.encoder.embed_tokens.weight", filled(embeddings.source.weight)
    yield "model.decoder.embed_tokens.weight", filled(embeddings.target.weight)
    yield "lm_head.weight", filled(embeddings.output_weight)


def _position_table(positions: nn.Module, configuration: PreTrainedConfig) -> Tensor:
    if isinstance(positions, SinusoidalPositions | LearnedPositions):
        return positions.encoding(configuration.max_position_embeddings)
    return torch.zeros(configuration.max_position_embeddings, configuration.d_model)


def _layer(prefix: str, layer: EncoderLayer | DecoderLayer, order: Tensor) -> Iterator[tuple[str, Tensor]]:
    yield from _attention(f"{prefix}.self_attn", layer.self_attention, layer.self_residual, order)
    if isinstance(layer, DecoderLayer):
        yield from _attention(f"{prefix}.encoder_attn", layer.cross_attention, layer.cross_residual, order)
    yield from _feedforward(prefix, layer.feedforward, layer.feedforward_residual, order)


def _attention(
    prefix: str, attention: MultiHeadAttention, residual: Residual, order: Tensor
) -> Iterator[tuple[str, Tensor]]:
    projection = attention.input_projection
    parts = zip("qkv", projection.weight.chunk(3), projection.bias.chunk(3), strict=True)
    for name, weight, bias in parts:
        yield f"{prefix}.{name}_proj.weight", weight[:, order]
        yield f"{prefix}.{name}_proj.bias", bias
    yield f"{prefix}.out_proj.weight", attention.output_projection.weight[order]
    yield f"{prefix}.out_proj.bias", attention.output_projection.bias[order]
    yield from _norm(f"{prefix}_layer_norm", residual.norm, order)


def _feedforward(
    prefix: str, feedforward: FeedForward, residual: Residual, order: Tensor
) -> Iterator[tuple[str, Tensor]]:
    yield f"{prefix}.fc1.weight", feedforward.inner.weight[:, order]
    yield f"{prefix}.fc1.bias", feedforward.inner.bias
    yield f"{prefix}.fc2.weight", feedforward.outer.weight[order]
    yield f"{prefix}.fc2.bias", feedforward.outer.bias[order]
    yield from _norm(f"{prefix}.final_layer_norm", residual.norm, order)


def _norm(prefix: str, norm: nn.Module, order: Tensor) -> Iterator[tuple[str, Tensor]]:
    assert isinstance(norm, nn.LayerNorm)
    yield f"{prefix}.weight", norm.weight[order]
    yield f"{prefix}.bias", norm.bias[order]
