"""What makes a small step of decoding fast: few calls from Python, and products in the form that suits their size.

In a step of few rows, finding a tensor in its module takes as long as computing with it. So linear maps and norms
become functions that hold their tensors, made once for each search. The formulas are those of the modules without
dropout. The tensors are the model's own, or copied at the start of each search, so they are never stale.

Letters: B sentences, K hypotheses of each, R = B · K rows, N keys, D model size, H heads, V vocabulary.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from translator.kernels.choice import use_kernels
from translator.kernels.key_value_cache import KeyValue

Function = Callable[[Tensor], Tensor]
# On CPUs a product with a transposed vocabulary matrix is up to three times faster for a single row, and a little for
# many. Transposing one that is larger than this takes longer than a short search saves.
LARGEST_TRANSPOSED = 2**21
SMALLEST_PRODUCT = 400  # multiplications in a matrix product that torch leaves to a fast library on CPUs


def linear(weight: Tensor, bias: Tensor) -> Function:
    """x W^T + b."""
    bias, transposed = bias.detach(), weight.detach().t()
    return lambda x: torch.addmm(bias, x, transposed)


def normalization(norm: nn.Module) -> Function:
    if not isinstance(norm, nn.LayerNorm):
        return norm
    shape, weight, bias, epsilon = norm.normalized_shape, norm.weight.detach(), norm.bias.detach(), norm.eps
    return lambda x: torch.layer_norm(x, shape, weight, bias, epsilon)


def residual(norm: nn.Module, pre_norm: bool) -> tuple[Function, Callable[[Tensor, Tensor], Tensor]]:
    """The two ends of a residual branch around a sublayer: before it, and after it, where its result is overwritten."""
    normalize = normalization(norm)
    if pre_norm:
        return normalize, lambda x, branch: branch.add_(x)
    return lambda x: x, lambda x, branch: normalize(branch.add_(x))


def vocabulary_projection(weight: Tensor) -> Function:
    """(R, D) to logits (R, V) by the matrix (V, D)."""
    transposed = weight.detach().t()
    if use_kernels(transposed) and transposed.numel() <= LARGEST_TRANSPOSED:
        transposed = transposed.contiguous()
    return lambda x: torch.mm(x, transposed)


class StepLayer:
    """A `DecoderLayer` with everything looked up that a step needs of it."""

    def __init__(self, layer: Any) -> None:
        self.self_attention, self.cross_attention = layer.self_attention, layer.cross_attention
        self.enter_self, self.leave_self = residual(layer.self_residual.norm, layer.self_residual.pre_norm)
        self.enter_cross, self.leave_cross = residual(layer.cross_residual.norm, layer.cross_residual.pre_norm)
        self.enter_feedforward, self.leave_feedforward = residual(
            layer.feedforward_residual.norm, layer.feedforward_residual.pre_norm
        )
        weight, bias = layer.cross_attention.input_projection.weight, layer.cross_attention.input_projection.bias
        size = weight.shape[1]
        self.project_query = linear(weight[:size], bias[:size])
        self.project, self.self_output, self.cross_output, self.inner, self.outer = (
            linear(module.weight, module.bias)
            for module in (
                layer.self_attention.input_projection,  # to 3D: queries, keys and values
                layer.self_attention.output_projection,
                layer.cross_attention.output_projection,
                layer.feedforward.inner,
                layer.feedforward.outer,
            )
        )
        self.activate: Function = layer.feedforward.activate


class StepDecoder:
    """The decoder's layers, the bias of their self-attention, and what comes after them."""

    def __init__(
        self, layers: Iterable[nn.Module], relative_bias: nn.Module | None, final_norm: nn.Module, output_weight: Tensor
    ) -> None:
        self.layers = [StepLayer(layer) for layer in layers]
        self.relative_bias = relative_bias
        self.normalize, self.project = normalization(final_norm), vocabulary_projection(output_weight)

    def logits(self, x: Tensor) -> Tensor:
        """(R, D) to (R, V)."""
        return self.project(self.normalize(x))


def attend(attention: Any, queries: Tensor, cache: KeyValue, bias: Tensor) -> tuple[Tensor, Tensor]:
    """The function of the same name in models/transformer_decoding.py, in the form that suits the sizes."""
    keys, values = cache
    _, num_keys, size = values.shape
    # The smallest products torch makes in a plain loop, several times slower than elementwise products and sums.
    is_small = num_keys * size < SMALLEST_PRODUCT and queries.shape[1] == 1
    if not attention.is_scaled_dot:
        scores = attention.score(queries, keys) + bias  # (B·H, K, N)
    elif is_small:
        scores = torch.add(bias, (queries * keys).sum(-1).unsqueeze(1), alpha=1 / math.sqrt(size))
    else:
        scores = torch.baddbmm(bias, queries, keys.transpose(1, 2), alpha=1 / math.sqrt(size))
    weights = torch.softmax(scores, dim=-1)
    if is_small:
        return (weights.transpose(1, 2) * values).sum(1, keepdim=True), weights
    return torch.bmm(weights, values), weights


def split_heads(x: Tensor, num_sentences: int, num_heads: int) -> Tensor:
    """(R, D) to (B·H, K, D/H)."""
    num_rows, size = x.shape
    if num_rows == num_sentences:  # K = 1, and nothing to be reordered
        return x.view(-1, 1, size // num_heads)
    return x.view(num_sentences, -1, num_heads, size // num_heads).transpose(1, 2).flatten(0, 1)


def merge_heads(heads: Tensor, num_sentences: int) -> Tensor:
    """(B·H, K, D/H) to (R, D)."""
    num_queries, head_size = heads.shape[1:]
    if num_queries == 1:
        return heads.view(num_sentences, -1)
    heads = heads.view(num_sentences, -1, num_queries, head_size).transpose(1, 2)  # (B, K, H, D/H)
    return heads.reshape(num_sentences * num_queries, -1)


def log_softmax_in_place(logits: Tensor) -> Tensor:
    """Over the last dimension, which takes a third less time than writing to new memory."""
    return torch.log_softmax(logits, dim=-1, out=logits if logits.is_contiguous() else None)
