"""Every attention weight of a Transformer for given pairs, recorded while it reads them.

Letters: B sentences, L layers, H heads, S source pieces and EOS, T target pieces and EOS.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from translator.attention.multihead import MultiHeadAttention
from translator.ids import BOS, PAD
from translator.models.base import evaluation_mode
from translator.models.transformer import Transformer

STACKS = ("encoder", "decoder", "cross")  # self-attention of the encoder and of the decoder, attention to the source
BATCH = 32  # sentences read at once
Weights = np.ndarray[Any, np.dtype[np.float32]]


@dataclass(frozen=True)
class RecordedPair:
    """The weights of each stack: "encoder" (L, H, S, S), "decoder" (L, H, T, T), "cross" (L, H, T, S), no padding.

    Row t of the decoder's stacks is the step that predicts target piece t; its last input is the piece before it.
    """

    source_ids: list[int]  # with EOS
    target_ids: list[int]  # with EOS
    weights: dict[str, Weights]


def attention_modules(model: Transformer) -> dict[str, list[MultiHeadAttention]]:
    """The attention of every layer, by stack."""
    result = {
        "encoder": [layer.self_attention for layer in model.encoder],
        "decoder": [layer.self_attention for layer in model.decoder],
        "cross": [layer.cross_attention for layer in model.decoder],
    }
    assert all(isinstance(one, MultiHeadAttention) for layers in result.values() for one in layers)
    return result  # type: ignore[return-value]


@torch.inference_mode()
def record(model: Transformer, pairs: Sequence[tuple[list[int], list[int]]]) -> Iterator[RecordedPair]:
    """Reads pairs of ids, each side with EOS; in their order."""
    modules = attention_modules(model)
    for start in range(0, len(pairs), BATCH):
        batch = pairs[start : start + BATCH]
        source = _padded([source for source, _ in batch])  # (B, S)
        target_in = _padded([[BOS, *target[:-1]] for _, target in batch])  # (B, T)
        with evaluation_mode(model), _recording(modules) as found:
            model(source, source != PAD, target_in)
        stacked = {stack: torch.stack(layers, 1).numpy() for stack, layers in found.items()}  # (B, L, H, …)
        for row, (source_ids, target_ids) in enumerate(batch):
            sizes = {"S": len(source_ids), "T": len(target_ids)}
            cut = {"encoder": ("S", "S"), "decoder": ("T", "T"), "cross": ("T", "S")}
            weights = {
                stack: stacked[stack][row, :, :, : sizes[queries], : sizes[keys]]
                for stack, (queries, keys) in cut.items()
            }
            yield RecordedPair(source_ids, target_ids, weights)


@contextmanager
def _recording(modules: dict[str, list[MultiHeadAttention]]) -> Iterator[dict[str, list[Tensor]]]:
    """Within this context every attention returns its weights, whatever its layer asks for, to be recorded."""
    found: dict[str, list[Tensor]] = {stack: [] for stack in modules}
    handles = []
    for stack, layers in modules.items():

        def keep(_: nn.Module, __: Any, output: tuple[Tensor, Tensor], stack: str = stack) -> None:
            found[stack].append(output[1])  # (B, H, T, S)

        for module in layers:
            handles.append(module.register_forward_pre_hook(_ask_for_weights, with_kwargs=True))
            handles.append(module.register_forward_hook(keep))
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()


def _ask_for_weights(_: nn.Module, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    return args, {**kwargs, "need_weights": True}


def _padded(rows: Sequence[Sequence[int]]) -> Tensor:
    return pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=PAD)
