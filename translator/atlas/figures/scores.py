"""The five scores on the same queries and keys, and how the dimension affects a softmax of dot products."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from translator.atlas.material import Material
from translator.attention.pooling import attention_pooling
from translator.attention.scores import SCORES, DotScore, ScaledDotScore, ScoreFunction, make_score
from translator.attention.softmax import masked_softmax

KEYS = [(1.0, 0.0), (2.0, 0.0), (0.0, 1.0), (0.0, 2.0), (-1.0, 0.0), (-2.0, 0.0), (0.7, 0.7), (1.4, -1.4)]  # in a plane
NUM_ANGLES = 24
QUERY_LENGTH = 1.5
SEED = 4

DIMENSIONS = [2**n for n in range(11)]  # 1 … 1,024
NUM_KEYS = 32
NUM_QUERIES, NUM_QUERIES_QUICK = 512, 128
NUM_THEORY = 4_096  # rows of normally distributed scores


def weights_in_a_plane(material: Material) -> dict[str, Any]:
    """The weights that each score, before training, gives to eight keys while the query is rotated."""
    keys = torch.tensor(KEYS)  # (S, 2)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        scores = {name: make_score(name, 2, 2, 8) for name in SCORES}
    angles = [2 * math.pi * number / NUM_ANGLES for number in range(NUM_ANGLES)]
    queries = QUERY_LENGTH * torch.tensor([[math.cos(angle), math.sin(angle)] for angle in angles])  # (T, 2)
    found = {}
    with torch.no_grad():
        for name, score in scores.items():
            values = score(queries, score.prepare(keys))  # (T, S)
            _, weights = attention_pooling(score, queries, keys, keys)
            found[name] = {"scores": _grid(values), "weights": _grid(weights)}
    sizes = {name: sum(parameter.numel() for parameter in score.parameters()) for name, score in scores.items()}
    degrees = [round(math.degrees(angle)) for angle in angles]
    points = [[round(value, 4) for value in row] for row in queries.tolist()]
    return {"keys": KEYS, "queries": points, "degrees": degrees, "scores": found, "num_parameters": sizes}


def saturation(material: Material) -> dict[str, Any]:
    """Softmax over dot products of random vectors of growing dimension, with and without the division by √d.

    Each component of queries and keys has mean 0 and variance 1, so a dot product has variance d. `theory` is the same
    for scores that are exactly normal with that variance, drawn and computed in float64 without the package.
    """
    num_queries = NUM_QUERIES_QUICK if material.quick else NUM_QUERIES
    generator = torch.Generator().manual_seed(SEED)
    found = []
    for size in DIMENSIONS:
        queries = torch.randn(num_queries, 1, size, generator=generator)
        keys = torch.randn(num_queries, NUM_KEYS, size, generator=generator)
        kinds = {"dot": DotScore(size), "scaled_dot": ScaledDotScore(size)}
        row: dict[str, Any] = {"size": size}
        for name, score in kinds.items():
            row[name] = _softmax_figures(score, queries, keys)
            row[name]["theory"] = normal_theory(math.sqrt(size) if name == "dot" else 1.0)
        found.append(row)
    return {"num_keys": NUM_KEYS, "num_queries": num_queries, "sizes": found}


def _softmax_figures(score: ScoreFunction, queries: Tensor, keys: Tensor) -> dict[str, Any]:
    """Over all queries (N, 1, D) with keys (N, S, D): spread of the scores, entropy, gradient, the sorted weights."""
    with torch.no_grad():
        scores = score(queries, score.prepare(keys)).squeeze(1)  # (N, S)
        weights = masked_softmax(scores, None).double()
    jacobians = torch.func.vmap(torch.func.jacrev(lambda row: masked_softmax(row, None)))(scores)  # ∂α/∂score (N, S, S)
    entropy = -(weights * weights.clamp(min=1e-300).log2()).sum(1)
    return {
        "deviation": scores.std().item(),
        "entropy": entropy.mean().item(),
        "largest": weights.max(1).values.mean().item(),
        "gradient": torch.linalg.matrix_norm(jacobians.double()).mean().item(),
        "sorted": [float(f"{value:.4g}") for value in weights.sort(1, descending=True).values.mean(0).tolist()],
    }


def normal_theory(deviation: float) -> dict[str, float]:
    """Means of entropy, largest weight and gradient for independent normal scores, in numpy.

    The gradient is the Frobenius norm of diag(α) − α α^T, whose square is Σα² − 2Σα³ + (Σα²)².
    """
    random = np.random.default_rng(SEED)
    scores = deviation * random.standard_normal((NUM_THEORY, NUM_KEYS))
    powers = np.exp(scores - scores.max(1, keepdims=True))
    weights = powers / powers.sum(1, keepdims=True)
    squares = (weights**2).sum(1)
    gradient = np.sqrt(np.maximum(0, squares - 2 * (weights**3).sum(1) + squares**2))
    entropy = -(weights * np.log2(np.maximum(weights, 1e-300))).sum(1)
    return {
        "deviation": deviation,
        "entropy": float(entropy.mean()),
        "largest": float(weights.max(1).mean()),
        "gradient": float(gradient.mean()),
    }


def _grid(values: Tensor) -> list[list[float]]:
    return [[round(value, 5) for value in row] for row in values.double().tolist()]
