"""Training speed of the LSTM with Bahdanau attention against a textbook implementation of the same model.

A step is forward, backward, clipping and Adam, in float32, on the same batches; hidden size 256, additive score. The
baseline is a plain loop that projects keys and vocabulary at every step. Target: the classic recurrence at 3 times its
throughput in target tokens. Also shown: `attend: parallel`, and the plain loop with our encoder in place of packed
sequences, because torch's packed LSTM is slow on CPUs for reasons unrelated to attention. The last competitor runs only
the matrix products of the classic model's step, as a lower bound on its time.
"""

from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from bench_common import Step, compete, our_step, plain_step
from translator.data.batching import Batch
from translator.ids import PAD
from translator.models.lstm import BidirectionalEncoder, LstmSeq2Seq

SIZE, DROPOUT, SMOOTHING = 256, 0.2, 0.1
PLAIN, UNPACKED, CLASSIC, PARALLEL, PRODUCTS = (
    "plain loop",
    "plain loop, our encoder",
    "translator, classic",
    "translator, parallel",
    "classic, products alone",
)


class PackedEncoder(nn.Module):
    """torch's bidirectional LSTM over packed sequences."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(SIZE, SIZE, bidirectional=True)

    def forward(self, embedded: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        packed = pack_padded_sequence(embedded, mask.sum(1).cpu(), enforce_sorted=False)
        outputs, (last, _) = self.lstm(packed)
        states, _ = pad_packed_sequence(outputs, total_length=mask.shape[1])
        return states, torch.cat((last[0], last[1]), 1)


class PlainLoop(nn.Module):
    """Bahdanau's decoder as a loop; each step goes from embedding to logits."""

    def __init__(self, vocab_size: int, encoder: nn.Module) -> None:
        super().__init__()
        self.source_embedding = nn.Embedding(vocab_size, SIZE)
        self.target_embedding = nn.Embedding(vocab_size, SIZE)
        self.encoder = encoder
        self.start_hidden = nn.Linear(2 * SIZE, SIZE)
        self.start_cell = nn.Linear(2 * SIZE, SIZE)
        self.query = nn.Linear(SIZE, SIZE, bias=False)
        self.key = nn.Linear(2 * SIZE, SIZE, bias=False)
        self.energy = nn.Linear(SIZE, 1, bias=False)
        self.cell = nn.LSTMCell(SIZE + 2 * SIZE, SIZE)
        self.output = nn.Linear(SIZE + 2 * SIZE + SIZE, SIZE)
        self.projection = nn.Linear(SIZE, vocab_size)
        nn.init.normal_(self.target_embedding.weight, std=SIZE**-0.5)
        self.projection.weight = self.target_embedding.weight
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, batch: Batch) -> Tensor:
        states, summary = self.encoder(self.dropout(self.source_embedding(batch.source.t())), batch.source_mask)
        memory = self.dropout(states.transpose(0, 1))  # (B, S, 2H)
        hidden, cell = self.start_hidden(summary).tanh(), self.start_cell(summary)
        logits = []
        for tokens in batch.target_in.unbind(1):
            embedded = self.dropout(self.target_embedding(tokens))
            scores = self.energy(torch.tanh(self.query(hidden).unsqueeze(1) + self.key(memory))).squeeze(-1)
            weights = scores.masked_fill(~batch.source_mask, float("-inf")).softmax(-1)
            context = torch.bmm(weights.unsqueeze(1), memory).squeeze(1)
            hidden, cell = self.cell(torch.cat((embedded, context), 1), (hidden, cell))
            output = self.output(torch.cat((hidden, context, embedded), 1)).tanh()
            logits.append(self.projection(self.dropout(output)))
        return F.cross_entropy(
            torch.stack(logits, 1).flatten(0, 1),
            batch.target_out.flatten(),
            ignore_index=PAD,
            label_smoothing=SMOOTHING,
        )


@cache
def operand(num_rows: int, num_columns: int) -> Tensor:
    return torch.ones(num_rows, num_columns)


def linear_map(num_rows: int, size_in: int, size_out: int, num_steps: int = 1) -> None:
    """The forward and backward products of a linear map; a recurrence runs all but the weight gradient step by step."""
    inputs, weight, gradient = operand(num_rows, size_in), operand(size_out, size_in), operand(num_rows, size_out)
    for rows in inputs.chunk(num_steps):
        torch.mm(rows, weight.t())
    for rows in gradient.chunk(num_steps):
        torch.mm(rows, weight)
    torch.mm(gradient.t(), inputs)


def products_alone(vocab_size: int) -> Step:
    def step(batch: Batch) -> None:
        num_source, num_target = batch.source.numel(), batch.target_in.numel()
        source_steps, target_steps = batch.source.shape[1], batch.target_in.shape[1]
        for _ in ("forwards", "backwards"):
            linear_map(num_source, SIZE, 4 * SIZE)
            linear_map(num_source, SIZE, 4 * SIZE, source_steps)
        linear_map(num_source, 2 * SIZE, SIZE)  # keys
        linear_map(num_target, SIZE, SIZE, target_steps)  # queries
        linear_map(num_target, SIZE, 4 * SIZE)  # W, U, C
        linear_map(num_target, SIZE, 4 * SIZE, target_steps)
        linear_map(num_target, 2 * SIZE, 4 * SIZE, target_steps)
        for size in (SIZE, SIZE, 2 * SIZE):  # U_o, V_o, C_o
            linear_map(num_target, size, SIZE)
        chunk = 512  # as in our loss
        for start in range(0, batch.num_target_tokens, chunk):
            linear_map(min(chunk, batch.num_target_tokens - start), SIZE, vocab_size)

    return step


def make(name: str, vocab_size: int) -> tuple[nn.Module, Step]:
    if name in (PLAIN, UNPACKED):
        encoder = PackedEncoder() if name == PLAIN else BidirectionalEncoder(SIZE, SIZE, 1, 0.0, "ordinary")
        plain = PlainLoop(vocab_size, encoder)
        return plain, plain_step(plain)
    attend = "parallel" if name == PARALLEL else "classic"
    ours = LstmSeq2Seq(vocab_size, vocab_size, SIZE, SIZE, SIZE, 1, 1, attend=attend, dropout=DROPOUT)
    return ours, products_alone(vocab_size) if name == PRODUCTS else our_step(ours, SMOOTHING)


if __name__ == "__main__":
    names = [PLAIN, UNPACKED, CLASSIC, PARALLEL, PRODUCTS]
    compete(__doc__, f"LSTM with Bahdanau attention, hidden size {SIZE}", make, names, profiled=CLASSIC)
