"""Self-attention, recurrence and convolution: time and memory, measured with the package's own modules.

n is the length of the sequence, d the width, k the width of the convolution's window (Vaswani et al. 2017, table 1).
"""

import math
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from translator.atlas.material import Material
from translator.atlas.shipped import shipped, with_provenance
from translator.attention.multihead import MultiHeadAttention
from translator.attention.pooling import attention_pooling
from translator.attention.scores import ScaledDotScore
from translator.models.lstm_layers import LstmLayer

WINDOW = 3  # k
NUM_HEADS = 4
KINDS = {
    "attention": "self-attention, score to mean",
    "multihead": "multi-head attention with its projections",
    "recurrence": "recurrence (LSTM)",
    "convolution": f"convolution, k = {WINDOW}",
}
# The exponents of the theory: of n with d fixed, and of d with n fixed.
THEORY = {"attention": (2, 1), "recurrence": (1, 2), "convolution": (1, 2)}
LONG = {"lengths": [16, 32, 64, 128, 256, 512, 1024, 2048], "widths": [32, 64, 128, 256, 512, 1024], "repetitions": 7}
SHORT = {"lengths": [64, 256, 512, 1024], "widths": [64, 128, 512], "repetitions": 3}
SHORTER = {"lengths": [64, 256, 1024], "widths": [64, 128, 256], "repetitions": 2}
FIXED_WIDTH, FIXED_LENGTH = 128, 128  # while the other one grows
FIT_LENGTHS, FIT_WIDTHS = (256, 2048), (128, 1024)  # where exponents are fitted: small sizes measure overhead
Run = Callable[[Tensor], Tensor]


def module_of(kind: str, width: int) -> tuple[Run, list[nn.Parameter]]:
    """A function from (n, d) to (n, d), and its parameters."""
    if kind == "attention":
        score = ScaledDotScore(width)
        return (lambda x: attention_pooling(score, x, x, x)[0]), []
    if kind == "multihead":
        heads = MultiHeadAttention(width, NUM_HEADS)
        return (lambda x: heads(x[None], None, None)[0][0]), list(heads.parameters())
    if kind == "recurrence":
        layer = LstmLayer(width, width)
        return (lambda x: layer(x[:, None], x.new_zeros(1, width), x.new_zeros(1, width))[0][:, 0]), list(
            layer.parameters()
        )
    convolution = nn.Conv1d(width, width, WINDOW, padding=WINDOW // 2)
    return (lambda x: convolution(x.T[None])[0].T), list(convolution.parameters())


def seconds_of(run: Run, x: Tensor, repetitions: int) -> float:
    """The shortest of several measurements, in CPU seconds of one thread, each lasting at least 0.02 s.

    Processor time, since other programs may run beside it; the shortest, since disturbances only ever add to it.
    """
    run(x)
    times: list[float] = []
    count = 1
    while len(times) < repetitions:
        start = time.process_time()
        for _ in range(count):
            run(x)
        elapsed = time.process_time() - start
        if elapsed < 0.02 and not times:
            count = max(count + 1, math.ceil(count * min(8.0, 0.025 / max(elapsed, 1e-4))))
            continue
        times.append(elapsed / count)
    return min(times)


def saved_bytes(run: Run, x: Tensor, parameters: Sequence[nn.Parameter]) -> int:
    """The memory that training has to keep for the backward pass, without parameters: every storage counted once."""
    excluded = {parameter.untyped_storage().data_ptr() for parameter in parameters}
    kept: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in excluded:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    held = x.clone().requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        output = run(held)  # kept alive, so that no storage is reused and counted twice
    assert output.requires_grad
    return sum(kept.values())


def measure_sizes(sizes: dict[str, Any]) -> dict[str, Any]:
    """Times and memory over the lengths at a fixed width, and over the widths at a fixed length."""
    by_length = [_row(length, FIXED_WIDTH, sizes["repetitions"]) for length in sizes["lengths"]]
    by_width = [_row(FIXED_LENGTH, width, sizes["repetitions"]) for width in sizes["widths"]]
    return {
        "window": WINDOW,
        "num_heads": NUM_HEADS,
        "width": FIXED_WIDTH,
        "length": FIXED_LENGTH,
        "by_length": by_length,
        "by_width": by_width,
        "exponents": exponents(by_length, by_width),
        "crossing": crossing(by_length),
    }


def _row(length: int, width: int, repetitions: int) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(length * 10_000 + width)
    x = torch.randn(length, width, generator=generator)
    row: dict[str, Any] = {"length": length, "width": width}
    for kind in KINDS:
        run, parameters = module_of(kind, width)
        memory = saved_bytes(run, x, parameters)
        with torch.no_grad():
            row[kind] = {"seconds": seconds_of(run, x, repetitions), "bytes": memory}
    return row


def fitted_exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """The slope of the straight line through log(values) over log(sizes), by least squares."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def exponents(by_length: list[dict[str, Any]], by_width: list[dict[str, Any]]) -> dict[str, Any]:
    """The fitted exponents of n and d, with the ranges of the fits; None where fewer than two sizes are in range."""
    found: dict[str, Any] = {}
    for axis, rows, (low, high) in (("length", by_length, FIT_LENGTHS), ("width", by_width, FIT_WIDTHS)):
        used = [row for row in rows if low <= row[axis] <= high]
        sizes = [row[axis] for row in used]
        found[axis] = {"range": [sizes[0], sizes[-1]] if len(sizes) > 1 else None}
        for kind in KINDS:
            for quantity in ("seconds", "bytes"):
                values = [row[kind][quantity] for row in used]
                fit = fitted_exponent(sizes, values) if len(sizes) > 1 else None
                found[axis].setdefault(kind, {})[quantity] = fit
    return found


def crossing(rows: list[dict[str, Any]], first: str = "attention", second: str = "recurrence") -> float | None:
    """The length from which `first` takes longer than `second`, interpolated linearly on log-log axes."""
    ratios = [(row["length"], math.log(row[first]["seconds"] / row[second]["seconds"])) for row in rows]
    for (length, ratio), (longer, larger) in pairwise(ratios):
        if ratio < 0 <= larger:
            share = -ratio / (larger - ratio)
            return math.exp(math.log(length) + share * (math.log(longer) - math.log(length)))
    return None


def measured(material: Material) -> dict[str, Any] | None:
    """The long measurement that is shipped."""
    return shipped("complexity")


def now(material: Material) -> dict[str, Any]:
    """A short measurement on the machine that makes the page."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as in the long one: CPU time adds up over threads
    try:
        figures = measure_sizes(SHORTER if material.quick else SHORT)
    finally:
        torch.set_num_threads(threads)
    return with_provenance("python -m translator.atlas --only complexity --json -", figures)
