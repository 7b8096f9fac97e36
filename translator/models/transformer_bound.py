"""The Transformer's decoder with all its tensors looked up, once for each search.

In a step of few rows, finding a tensor in its module takes as long as computing with it. The formulas are those of the
modules without dropout. The tensors are the model's own or copied for this search, so they never belong to weights of
the past.

Letters: R rows, D model size, V vocabulary.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from translator.models.transformer_layers import DecoderLayer, Residual

Function = Callable[[Tensor], Tensor]
# On CPUs a product with a turned vocabulary is up to three times faster for a single row, and a little for many.
# Turning one that is larger than this takes longer than a short search saves.
LARGEST_TURNED = 2**21


def _linear(weight: Tensor, bias: Tensor) -> Function:
    """x W^T + b."""
    bias, turned = bias.detach(), weight.detach().t()
    return lambda x: torch.addmm(bias, x, turned)


def _norm(norm: nn.Module) -> Function:
    if not isinstance(norm, nn.LayerNorm):
        return norm
    shape, weight, bias, epsilon = norm.normalized_shape, norm.weight.detach(), norm.bias.detach(), norm.eps
    return lambda x: torch.layer_norm(x, shape, weight, bias, epsilon)


class _Branch:
    """`Residual` around a sublayer, whose result is written over."""

    def __init__(self, residual: Residual) -> None:
        self.norm = _norm(residual.norm)
        self.pre_norm = residual.pre_norm

    def enter(self, x: Tensor) -> Tensor:
        return self.norm(x) if self.pre_norm else x

    def leave(self, x: Tensor, branch: Tensor) -> Tensor:
        total = branch.add_(x)
        return total if self.pre_norm else self.norm(total)


class StepLayer:
    """A decoder layer with everything looked up that a step needs of it."""

    def __init__(self, layer: DecoderLayer) -> None:
        self.self_attention, self.cross_attention = layer.self_attention, layer.cross_attention
        self.self_branch, self.cross_branch = _Branch(layer.self_residual), _Branch(layer.cross_residual)
        self.feedforward_branch = _Branch(layer.feedforward_residual)
        weight, bias = layer.self_attention.input_projection.weight, layer.self_attention.input_projection.bias
        self.project = _linear(weight, bias)  # to 3D: queries, keys and values
        weight, bias = layer.cross_attention.input_projection.weight, layer.cross_attention.input_projection.bias
        size = weight.shape[1]
        self.project_query = _linear(weight[:size], bias[:size])
        self.self_output, self.cross_output, self.inner, self.outer = (
            _linear(linear.weight, linear.bias)
            for linear in (
                layer.self_attention.output_projection,
                layer.cross_attention.output_projection,
                layer.feedforward.inner,
                layer.feedforward.outer,
            )
        )
        self.activate = layer.feedforward.activate


class StepDecoder:
    """The decoder's layers and what comes after them."""

    def __init__(self, layers: Sequence[DecoderLayer], final_norm: nn.Module, output_weight: Tensor) -> None:
        self.layers = [StepLayer(layer) for layer in layers]
        self.final_norm = _norm(final_norm)
        self.output = output_weight.detach().t()  # (D, V)
        if self.output.device.type == "cpu" and self.output.numel() <= LARGEST_TURNED:
            self.output = self.output.contiguous()

    def logits(self, x: Tensor) -> Tensor:
        """(R, D) to (R, V)."""
        return torch.mm(self.final_norm(x), self.output)
