"""The ONNX graphs of a folder behind the interface of our own models, so that any search can use them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import onnxruntime
import torch
from torch import Tensor

from translator.models.base import Decoded, Memory, Seq2Seq, State, Step

ENCODER_FILE, DECODER_FILE = "encoder.onnx", "decoder_step.onnx"


@dataclass(frozen=True)
class OnnxState(State):
    source: np.ndarray  # (B, S)
    cross: tuple[np.ndarray, np.ndarray]  # (L, B, H, S, D/H) each
    cache: tuple[np.ndarray, np.ndarray]  # (L, R, H, t, D/H) each

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> Self:
        kept = slice(None) if sentences is None else sentences.numpy()
        keys, values = (part[:, rows.numpy()] for part in self.cache)
        cross_keys, cross_values = (part[:, kept] for part in self.cross)
        return type(self)(self.source[kept], (cross_keys, cross_values), (keys, values))


class OnnxModel(Seq2Seq):
    """A model that can only be used for search."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        # One thread, so that searches in several threads do not compete with each other.
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.encoder, self.decoder = (
            onnxruntime.InferenceSession(str(folder / name), options, providers=["CPUExecutionProvider"])
            for name in (ENCODER_FILE, DECODER_FILE)
        )

    def encode(self, source: Tensor, source_mask: Tensor) -> Memory:
        keys, values = self.encoder.run(None, {"source": source.numpy()})
        return Memory(torch.empty(0), source_mask, (source.numpy(), (keys, values)))

    def start(self, memory: Memory) -> OnnxState:
        source, cross = memory.summary
        layers, sentences, heads, _, size = cross[0].shape
        empty = np.zeros((layers, sentences, heads, 0, size), dtype=cross[0].dtype)
        return OnnxState(source, cross, (empty, empty))

    def step(self, tokens: Tensor, state: State, *, need_weights: bool = False) -> Step:
        assert isinstance(state, OnnxState)
        assert not need_weights
        num_hypotheses = len(tokens) // len(state.source)
        inputs = {
            "tokens": tokens.numpy(),
            "source": state.source.repeat(num_hypotheses, 0),
            "cross_keys": state.cross[0].repeat(num_hypotheses, 1),
            "cross_values": state.cross[1].repeat(num_hypotheses, 1),
            "keys": state.cache[0],
            "values": state.cache[1],
        }
        logits, keys, values = self.decoder.run(None, inputs)
        return Step(torch.from_numpy(logits), OnnxState(state.source, state.cross, (keys, values)))

    def forward(self, *arguments: Any, **options: Any) -> Decoded:
        raise TypeError("an exported model cannot be trained")

    @property
    def output_weight(self) -> Tensor:
        raise TypeError("an exported model cannot be trained")

    @property
    def output_bias(self) -> Tensor | None:
        return None
