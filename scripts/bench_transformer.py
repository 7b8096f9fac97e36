"""Training speed of `transformer_tiny` against the same model written plainly with torch.nn.Transformer.

Forward, backward, clipping and Adam's step, in float32, on the same batches. Wanted: at least 1.7 times the plain
model's target tokens a second, and at least 45 % of the machine's matrix-product peak by the 6·N·tokens rule.
"""

import argparse
import math
from collections.abc import Callable

import torch
from bench_common import load_batches, matrix_peak, measure, parse_arguments, show_profile, show_rates, take_turns
from torch import Tensor, nn
from torch.nn import functional as F

from translator.data.batching import Batch
from translator.ids import PAD
from translator.models.transformer import Transformer
from translator.training.allocator import keep_memory
from translator.training.loss import TranslationLoss

SIZE, INNER, HEADS, LAYERS, DROPOUT, SMOOTHING = 128, 256, 4, 4, 0.3, 0.1
PLAIN, OURS = "torch.nn.Transformer", "translator"


class PlainTransformer(nn.Module):
    """What one writes with the parts that torch has."""

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
        return self.dropout(self.embedding(ids) * math.sqrt(SIZE) + self.positions[: ids.shape[1]])

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


def plain_step(vocab_size: int) -> tuple[nn.Module, Callable[[Batch], None]]:
    model = PlainTransformer(vocab_size)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)

    def step(batch: Batch) -> None:
        optimizer.zero_grad()
        model(batch).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return model, step


def our_step(vocab_size: int) -> tuple[nn.Module, Callable[[Batch], None]]:
    keep_memory()  # as the trainer does
    # torch's layers drop out attention weights and inner activations too, so ours do the same here.
    model = Transformer(
        vocab_size, vocab_size, SIZE, INNER, HEADS, LAYERS, LAYERS,
        dropout=DROPOUT, attention_dropout=DROPOUT, activation_dropout=DROPOUT,
    )  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
    loss = TranslationLoss(SMOOTHING)

    def step(batch: Batch) -> None:
        optimizer.zero_grad()
        output = loss(model, batch)
        (output.loss_sum / output.num_tokens).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return model, step


def run_competitor(options: argparse.Namespace, name: str) -> None:
    torch.manual_seed(1)
    batches, vocab_size = load_batches(options)
    model, step = (our_step if name == OURS else plain_step)(vocab_size)
    if options.profile:
        show_profile(step, batches)
    else:
        measure(model, step, batches)


def main() -> None:
    options = parse_arguments(__doc__)
    torch.set_num_threads(options.threads)
    if options.competitor or options.profile:
        run_competitor(options, options.competitor or OURS)
        return
    load_batches(options)  # once, so that nobody pays for making the caches
    print(f"Transformer, 4 + 4 layers of 128, {options.threads} threads")
    results = take_turns([PLAIN, OURS], options)
    show_rates(results, PLAIN)
    peak = max(matrix_peak(), *(result["peak"] for result in results.values()))
    print(f"  share of the peak of {peak / 1e9:,.0f} GFLOP/s, by 6·N·tokens:")
    for name, result in results.items():
        share = 6 * result["parameters"] * result["rate"] / peak
        print(f"  {name:<36} {share:8.1%}   N = {result['parameters']:,.0f}")


if __name__ == "__main__":
    main()
