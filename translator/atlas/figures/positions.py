"""Positions: sinusoids, dot products by distance, rotations, and ranges of distances.

P positions, D the size of the vectors.
"""

from typing import Any

import numpy as np
import torch

from translator.atlas.material import Material
from translator.atlas.shipped import shipped
from translator.attention.positions import (
    LearnedPositions,
    RelativePositionBias,
    RotaryPositions,
    SinusoidalPositions,
)
from translator.models.transformer import Transformer

SIZE, NUM_POSITIONS = 128, 96
SHOWN_DIMENSIONS = [8, 20, 32, 48]
FARTHEST = 64
STARTS = [0, 40, 400]  # absolute positions from which distances are counted
ROTARY_SIZES = [8, 16, 32, 64, 128, 256]
NUM_PAIRS = 200  # of random queries and keys
LEARNED_SHOWN = 48
SEED = 3


def sinusoids(material: Material) -> dict[str, Any]:
    """The table, some of its columns, and the dot products of its rows by their distance."""
    module = SinusoidalPositions(SIZE)
    table = module.encoding(NUM_POSITIONS).double()  # (P, D)
    offsets = torch.arange(-FARTHEST, FARTHEST + 1)
    products = []
    for start in (FARTHEST, 2 * FARTHEST, 10 * FARTHEST):
        rows = module.encoding(2 * FARTHEST + 1, start - FARTHEST).double()
        products.append({"position": start, "values": _numbers(rows @ rows[FARTHEST])})
    pairs = torch.arange(0, SIZE, 2, dtype=torch.float64)
    theory = torch.cos(offsets[:, None] / 10000 ** (pairs / SIZE)).sum(1)  # PE(p) · PE(p + Δ) = Σ_i cos(ω_i Δ)
    return {
        "size": SIZE,
        "table": [_numbers(row) for row in table],
        "dimensions": SHOWN_DIMENSIONS,
        "wavelengths": [2 * np.pi * 10000 ** (2 * (n // 2) / SIZE) for n in SHOWN_DIMENSIONS],
        "offsets": offsets.tolist(),
        "products": products,
        "theory": _numbers(theory),
    }


def rotary(material: Material) -> dict[str, Any]:
    """Scores of a query and a key by their distance, at several absolute positions, for several head sizes.

    `scores` are of one vector used as query and key, divided by its squared length: 1 at distance 0. `mean` and
    `deviation` are of many such vectors.
    """
    generator = torch.Generator().manual_seed(SEED)
    found = []
    for size in ROTARY_SIZES:
        module = RotaryPositions(size)
        vectors = torch.randn(NUM_PAIRS, 1, size, generator=generator)
        vectors = vectors / torch.linalg.vector_norm(vectors, dim=-1, keepdim=True)
        by_start = []
        for start in STARTS:
            keys = module(vectors.expand(-1, FARTHEST + 1, -1), start)  # (N, P, D): the same vector at every position
            by_start.append(((keys[:, :1] * keys).sum(-1)).double())  # (N, P)
        curves = torch.stack(by_start)  # (starts, N, P)
        found.append(
            {
                "size": size,
                "scores": [{"start": start, "values": _numbers(curves[n, 0])} for n, start in enumerate(STARTS)],
                "mean": _numbers(curves.mean((0, 1))),
                "deviation": _numbers(curves.mean(0).std(0)),
                "largest_difference": (curves - curves[:1]).abs().max().item(),
            }
        )
    return {"distances": list(range(FARTHEST + 1)), "starts": STARTS, "num_pairs": NUM_PAIRS, "sizes": found}


def relative(material: Material) -> dict[str, Any]:
    """Which distances share a bias, in an encoder (both directions) and in a decoder (only backwards)."""
    offsets = torch.arange(-160, 161)
    found = {}
    for name, bidirectional in (("encoder", True), ("decoder", False)):
        module = RelativePositionBias(SIZE, 1, bidirectional=bidirectional)
        with torch.no_grad():
            module.weight.copy_(torch.arange(len(module.weight))[:, None])  # each bucket's bias is its number
            buckets = module(torch.tensor([160]), torch.arange(321))[0, 0, 0]  # (321,)
        found[name] = [int(bucket) for bucket in buckets.tolist()]
    return {"offsets": offsets.tolist(), "buckets": found}


def trained(material: Material) -> dict[str, Any] | None:
    """The learned positions or relative biases of a trained Transformer; None where it has neither."""
    if material.run is None or not isinstance(material.run.translator.model, Transformer):
        return None
    found = trained_positions(material.run.translator.model)
    return {"run": material.run.folder.name, **found} if found else None


def trained_positions(model: Transformer) -> dict[str, Any]:
    """What a model has learned about positions: cosines between learned vectors, or biases by distance and head."""
    found: dict[str, Any] = {}
    if isinstance(model.source_positions, LearnedPositions):
        for side, module in (("source", model.source_positions), ("target", model.target_positions)):
            assert isinstance(module, LearnedPositions)
            rows = module.encoding(LEARNED_SHOWN).detach().double()
            directions = rows / torch.linalg.vector_norm(rows, dim=-1, keepdim=True)
            found[f"learned_{side}"] = [_numbers(row) for row in directions @ directions.T]
    for side, bias in (("encoder", model.encoder_bias), ("decoder", model.decoder_bias)):
        if bias is not None:
            with torch.no_grad():
                last = FARTHEST if side == "encoder" else 0
                offsets = torch.arange(-FARTHEST, last + 1)
                values = bias(torch.tensor([FARTHEST]), offsets + FARTHEST)[0, :, 0]  # (H, offsets)
            found[f"relative_{side}"] = {"offsets": offsets.tolist(), "heads": [_numbers(head) for head in values]}
    return found


def shipped_positions(material: Material) -> dict[str, Any] | None:
    """What trained models have learned, as measured by `python -m translator.atlas.measure positions`."""
    return shipped("positions")


def extrapolation(material: Material) -> dict[str, Any] | None:
    """Sentences longer than any in training, with each kind of positions: data/extrapolation.json."""
    return shipped("extrapolation")


def _numbers(values: torch.Tensor) -> list[float]:
    return [round(value, 5) for value in values.double().tolist()]
