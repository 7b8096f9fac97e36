"""What masks are for: how much attention padding and the future would get, and which outputs that would change."""

import math
from typing import Any

import torch
from torch import Tensor

from translator.atlas.material import Material, TrainedRun
from translator.attention.multihead import MultiHeadAttention
from translator.attention.softmax import masked_softmax
from translator.ids import BOS, EOS, PAD
from translator.models.base import evaluation_mode

MODEL_SIZE, NUM_HEADS = 64, 4
LENGTH = 8  # of the sentence
PADDINGS = [0, 1, 2, 4, 8, 16, 32]
SEED = 7
NUM_SENTENCES, NUM_SENTENCES_QUICK = 64, 24  # of the held-out set of a run
RUN_PADDINGS = [0, 2, 8, 32]


def padding(material: Material) -> dict[str, Any]:
    """One sentence alone and with more and more padding after it, in an untrained layer of self-attention.

    `leaked` is the mean share of attention that padding gets, `change` how far the outputs at the real positions are
    from those of the sentence alone, relative to their norm.
    """
    layer, x, pad = _layer_and_inputs()
    with torch.no_grad():
        alone, _ = layer(x, None, None)
        rows = []
        for count in PADDINGS:
            padded = torch.cat((x, pad.expand(1, count, -1)), dim=1)  # (1, T + P, D)
            mask = (torch.arange(LENGTH + count) < LENGTH)[None, None, None]  # (1, 1, 1, T + P)
            row: dict[str, Any] = {"padding": count}
            for name, used in (("masked", mask), ("unmasked", None)):
                output, weights = layer(padded, None, used, need_weights=True)
                row[name] = {
                    "leaked": weights[..., :LENGTH, LENGTH:].sum(-1).mean().item(),
                    "change": _relative(output[:, :LENGTH], alone),
                }
            row["uniform"] = count / (LENGTH + count)
            rows.append(row)
    return {"length": LENGTH, "model_size": MODEL_SIZE, "num_heads": NUM_HEADS, "rows": rows}


def future(material: Material) -> dict[str, Any]:
    """The last word is replaced by another one: which outputs change? With a causal mask, none before it."""
    layer, x, other = _layer_and_inputs()
    changed = torch.cat((x[:, :-1], other), dim=1)
    causal = torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril()
    found: dict[str, Any] = {"length": LENGTH}
    with torch.no_grad():
        for name, mask in (("masked", causal), ("unmasked", None)):
            before, weights = layer(x, None, mask, need_weights=True)
            after, _ = layer(changed, None, mask)
            mean = weights.mean((0, 1))  # (T, T)
            found[name] = {
                "weights": [[round(value, 4) for value in row] for row in mean.tolist()],
                "leaked": mean.triu(1).sum(-1).mean().item(),
                "changes": [_relative(after[:, place], before[:, place]) for place in range(LENGTH)],
            }
    found["uniform"] = (LENGTH - 1) / (2 * LENGTH)  # the share of the future if all positions had the same weight
    return found


def empty_rows(material: Material) -> dict[str, Any]:
    """A row with nothing to attend to: the weights, and the gradient that reaches the values."""
    nothing = torch.zeros(4, dtype=torch.bool)
    softmax = torch.softmax(torch.zeros(4).masked_fill(~nothing, -math.inf), dim=-1)
    found = {}
    for name, weights in (("softmax", softmax), ("masked_softmax", masked_softmax(torch.zeros(4), nothing))):
        values = torch.ones(4, requires_grad=True)
        (weights @ values).backward()
        assert values.grad is not None
        # As texts, since JSON has no NaN.
        found[name] = {"weights": _texts(weights), "gradient": _texts(values.grad)}
    return found


def _texts(values: Tensor) -> list[str]:
    return [f"{value:g}" for value in values.tolist()]


def padding_of_run(material: Material) -> dict[str, Any] | None:
    """A trained Transformer on its held-out sentences, each with more and more source padding, masked and not."""
    run = material.run
    if run is None or run.held_out is None:
        return None
    wanted = NUM_SENTENCES_QUICK if material.quick else NUM_SENTENCES
    pairs = _encoded_pairs(run, wanted)
    with evaluation_mode(run.translator.model), torch.no_grad():
        rows = [_losses_with_padding(run, pairs, count) for count in RUN_PADDINGS]
    return {"run": run.folder.name, "num_sentences": len(pairs), "rows": rows}


def _encoded_pairs(run: TrainedRun, wanted: int) -> list[tuple[list[int], list[int]]]:
    assert run.held_out is not None
    texts = [
        pair for pair in zip(run.held_out.sources, run.held_out.references, strict=True) if all(map(str.strip, pair))
    ]
    step = max(1, len(texts) // wanted)
    sources = run.translator.tokenizer.encode_source([source for source, _ in texts[::step][:wanted]])
    targets = run.translator.tokenizer.encode_target([target for _, target in texts[::step][:wanted]])
    return list(zip(sources, targets, strict=True))


def _losses_with_padding(run: TrainedRun, pairs: list[tuple[list[int], list[int]]], count: int) -> dict[str, Any]:
    """The perplexity of the references, each sentence by itself, with `count` columns of padding after its source."""
    model = run.translator.model
    totals, num_pieces = {"masked": 0.0, "unmasked": 0.0}, 0
    for source_ids, target_ids in pairs:
        source = torch.tensor([[*source_ids, *[PAD] * count]])
        target_in, target_out = torch.tensor([[BOS, *target_ids]]), torch.tensor([*target_ids, EOS])
        for name, mask in (("masked", source != PAD), ("unmasked", torch.ones_like(source, dtype=torch.bool))):
            logits = model.project(model(source, mask, target_in).states[0])
            totals[name] -= torch.log_softmax(logits, -1).gather(1, target_out[:, None]).sum().item()
        num_pieces += len(target_out)
    return {"padding": count, **{name: math.exp(total / num_pieces) for name, total in totals.items()}}


def _layer_and_inputs() -> tuple[MultiHeadAttention, Tensor, Tensor]:
    """An untrained layer, the embeddings (1, T, D) of a sentence, and one more vector (1, 1, D)."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        layer = MultiHeadAttention(MODEL_SIZE, NUM_HEADS).eval()
        return layer, torch.randn(1, LENGTH, MODEL_SIZE), torch.randn(1, 1, MODEL_SIZE)


def _relative(changed: Tensor, original: Tensor) -> float:
    return float(torch.linalg.vector_norm(changed - original) / torch.linalg.vector_norm(original))
