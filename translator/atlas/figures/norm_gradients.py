"""Gradients of deep Transformers before the first update: pre-norm and post-norm, and the effect of initialisation.

After Xiong et al. 2020 (arXiv:2002.04745). Letters: B sentences, S pieces of each, V vocabulary.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from translator.atlas.material import Material
from translator.attention.multihead import MultiHeadAttention
from translator.models.transformer import Transformer
from translator.models.transformer_layers import FeedForward

DEPTHS, SEEDS = (2, 4, 8, 12, 18, 24), (1, 2, 3)
QUICK_DEPTHS, QUICK_SEEDS = (2, 6, 12), (1,)
MODEL_SIZE, NUM_SENTENCES, LENGTH, VOCABULARY = 64, 8, 16, 200
VARIANTS = (("pre", "scaled"), ("pre", "plain"), ("post", "scaled"), ("post", "plain"))


def norm_gradients(material: Material) -> dict[str, Any]:
    """The norm of the gradient of every decoder layer, for each depth, order of normalisation and initialisation."""
    depths, seeds = (QUICK_DEPTHS, QUICK_SEEDS) if material.quick else (DEPTHS, SEEDS)
    return {
        "depths": list(depths),
        "seeds": len(seeds),
        "model_size": MODEL_SIZE,
        "num_sentences": NUM_SENTENCES,
        "length": LENGTH,
        "variants": [
            {
                "norm_order": order,
                "initialisation": start,
                "layers": {
                    str(depth): _mean([layer_gradients(order, start, depth, s) for s in seeds]) for depth in depths
                },
            }
            for order, start in VARIANTS
        ],
    }


def layer_gradients(norm_order: str, initialisation: str, depth: int, seed: int) -> list[float]:
    """The norms, from the first layer of the decoder to the last, after one backward pass on random pieces.

    "scaled" is how models start in training; "plain" gives every matrix Xavier's variance, as in the paper.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Transformer(
            *(VOCABULARY, VOCABULARY, MODEL_SIZE, 2 * MODEL_SIZE, 4, depth, depth), norm_order=norm_order, dropout=0.0
        )
        if initialisation == "plain":
            _make_plain(model)
        pieces = torch.randint(4, VOCABULARY, (2, NUM_SENTENCES, LENGTH))  # 4: after the special ids
    source, target = pieces
    loss_of(model, source, target).backward()
    return [gradient_norm(layer) for layer in model.decoder]


def loss_of(model: Transformer, source: Tensor, target: Tensor) -> Tensor:
    """The mean cross-entropy of predicting each piece of the target (B, S) after the first."""
    decoded = model(source, torch.ones_like(source, dtype=torch.bool), target[:, :-1])
    return F.cross_entropy(model.project(decoded.states).flatten(0, 1), target[:, 1:].flatten())


def gradient_norm(layer: nn.Module) -> float:
    """The norm of the gradient of all parameters of a layer, taken as one vector."""
    return math.sqrt(sum(float(one.grad.double().square().sum()) for one in layer.parameters() if one.grad is not None))


def _make_plain(model: Transformer) -> None:
    for branch in model.modules():
        if isinstance(branch, MultiHeadAttention | FeedForward):
            for linear in (module for module in branch.children() if isinstance(module, nn.Linear)):
                nn.init.xavier_uniform_(linear.weight)


def _mean(rows: list[list[float]]) -> list[float]:
    """The geometric mean of each column, since norms are shown on a logarithmic axis."""
    return [math.exp(sum(math.log(value) for value in column) / len(column)) for column in zip(*rows, strict=True)]
