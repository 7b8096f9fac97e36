"""Every head of a trained Transformer: its attention, its role, and what the translation loses without it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from translator.atlas.figures.head_removal import removal_figures
from translator.atlas.figures.head_roles import SMALLEST_SHARE, SMALLEST_SPREAD, head_roles
from translator.atlas.figures.held_out import encoded_pairs, sample, tokenizer_of
from translator.atlas.figures.recorded_attention import STACKS, RecordedPair, Weights, record
from translator.atlas.material import Material, TrainedRun
from translator.atlas.shipped import shipped
from translator.data.tokenizer import Tokenizer
from translator.models.transformer import Transformer

NUM_SENTENCES, NUM_QUICK = 120, 24
CURVE, QUICK_CURVE = 25, 7  # points
NUM_MAPS, LONGEST_MAP = 2, 14  # sentences shown, and pieces on a side of them


def heads(material: Material) -> dict[str, Any] | None:
    """Measured on the run that is given and has its corpora, or else the measurement that is shipped."""
    if material.run is None or material.run.held_out is None:
        return shipped("heads")
    return {"provenance": None, "figures": measure_heads(material.run, quick=material.quick)}


def measure_heads(run: TrainedRun, *, quick: bool) -> dict[str, Any]:
    """The figures of a run on sentences spread over its test or validation set."""
    model = run.translator.model
    held_out, lines = sample(run, NUM_QUICK if quick else NUM_SENTENCES, "--run")
    assert isinstance(model, Transformer)
    pairs = list(record(model, encoded_pairs(run, held_out)))
    return {
        "held_out": held_out.name.partition(" (")[0],  # test or validation, without the path of its files
        "num_sentences": len(held_out),
        "rules": {"smallest_share": SMALLEST_SHARE, "smallest_spread": SMALLEST_SPREAD},
        "has_gold": held_out.gold is not None,
        "roles": head_roles(pairs, tokenizer_of(run), held_out.gold),
        "removal": removal_figures(run.translator, held_out, curve_points=QUICK_CURVE if quick else CURVE),
        "maps": _maps(pairs, lines, tokenizer_of(run)),
    }


def _maps(pairs: Sequence[RecordedPair], lines: Sequence[int], tokenizer: Tokenizer) -> dict[str, list[dict[str, Any]]]:
    """All weights of the longest sentences that fit the page, by stack."""
    fitting = [n for n, pair in enumerate(pairs) if max(len(pair.source_ids), len(pair.target_ids)) <= LONGEST_MAP]
    chosen = sorted(fitting, key=lambda n: -len(pairs[n].source_ids))[:NUM_MAPS]
    result: dict[str, list[dict[str, Any]]] = {stack: [] for stack in STACKS}
    for number in chosen:
        pair = pairs[number]
        source, written = tokenizer.source_pieces(pair.source_ids), tokenizer.target_pieces(pair.target_ids)
        read = ["<s>", *written[:-1]]  # the input of the decoder: its output shifted by one
        names = {"encoder": (source, source), "decoder": (read, read), "cross": (written, source)}
        for stack, (rows, columns) in names.items():
            percent = _percent(pair.weights[stack])
            result[stack].append({"line": lines[number], "source": columns, "target": rows, "percent": percent})
    return result


def _percent(weights: Weights) -> list[list[list[str]]]:
    """Weights (L, H, T, S) as whole per cents, a line of text for each row: a file of a tenth of the size."""
    whole = np.round(100 * weights.astype(np.float64)).astype(int)
    return [[[" ".join(map(str, row)) for row in head] for head in layer] for layer in whole.tolist()]
