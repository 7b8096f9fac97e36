"""Training speed of `transformer_tiny` against the same model built on torch.nn.Transformer.

A step is forward, backward, clipping and Adam, in float32, on the same batches. Targets: at least 1.7 times the
baseline's throughput in target tokens, and at least 45 % of the machine's matrix-product peak by the 6·N·tokens rule.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bench_common import Step, compete, our_step, plain_step
from translator.data.batching import Batch
from translator.ids import PAD
from translator.models.transformer import Transformer

SIZE, INNER, HEADS, LAYERS, DROPOUT, SMOOTHING = 128, 256, 4, 4, 0.3, 0.1
PLAIN, OURS = "torch.nn.Transformer", "translator"


class PlainTransformer(nn.Module):
    """The baseline, built from torch's own modules."""

    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, SIZE)
        self.transformer = nn.Transformer(
            SIZE, HEADS, LAYERS, LAYERS, INNER, DROPOUT, batch_first=True, norm_first=True
        )
        self.projection = nn.Linear(SIZE, vocab_size, bias=False)
        self.projection.weight = self.embedding.weight
        self.dropout = nn.Dropout(DROPOUT)
        angles = torch.arange(1024)[:, None] / 10000 ** (torch.arange(0, SIZE, 2) / SIZE)
        self.positions: Tensor
        self.register_buffer("positions", torch.stack((angles.sin(), angles.cos()), -1).flatten(1))

    def embed(self, ids: Tensor) -> Tensor:
        result: Tensor = self.dropout(self.embedding(ids) * math.sqrt(SIZE) + self.positions[: ids.shape[1]])
        return result

    def forward(self, batch: Batch) -> Tensor:
        length = batch.target_in.shape[1]
        states = self.transformer(
            self.embed(batch.source),
            self.embed(batch.target_in),
            tgt_mask=torch.ones(length, length, dtype=torch.bool).triu(1),
            src_key_padding_mask=~batch.source_mask,
            tgt_key_padding_mask=~batch.target_mask,
            memory_key_padding_mask=~batch.source_mask,
            tgt_is_causal=True,
        )
        logits = self.projection(states)
        return F.cross_entropy(
            logits.flatten(0, 1), batch.target_out.flatten(), ignore_index=PAD, label_smoothing=SMOOTHING
        )


def make(name: str, vocab_size: int) -> tuple[nn.Module, Step]:
    if name == PLAIN:
        plain = PlainTransformer(vocab_size)
        return plain, plain_step(plain)
    # torch's layers also apply dropout to attention weights and inner activations, so ours do too.
    rates: dict[str, Any] = {"dropout": DROPOUT, "attention_dropout": DROPOUT, "activation_dropout": DROPOUT}
    ours = Transformer(vocab_size, vocab_size, SIZE, INNER, HEADS, LAYERS, LAYERS, **rates)
    return ours, our_step(ours, SMOOTHING)


if __name__ == "__main__":
    compete(__doc__, "Transformer, 4 + 4 layers of 128", make, [PLAIN, OURS], profiled=OURS)
