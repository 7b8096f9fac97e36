"""Models whose probabilities are all known: the next token is looked up by a hash of everything before it."""

import itertools
import math
from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor

from translator.ids import BOS, EOS, NUM_SPECIAL, PAD
from translator.models.base import Decoded, Memory, Seq2Seq, State, Step


class TableState(State):
    def __init__(self, codes: Tensor, sentences: Tensor) -> None:
        assert codes.size(0) % sentences.size(0) == 0
        self.codes = codes  # (R,)
        self.sentences = sentences  # (B,), a number that identifies the source

    def owners(self) -> Tensor:
        return self.sentences.repeat_interleave(self.codes.size(0) // self.sentences.size(0))

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> Self:
        remaining = self.sentences if sentences is None else self.sentences[sentences]
        selected = type(self)(self.codes[rows], remaining)
        assert torch.equal(self.owners()[rows], selected.owners()), "a row was taken from another sentence"
        return selected


class TableModel(Seq2Seq):
    """The logits are `table[code]`, where the code is a hash of the source and the target so far."""

    def __init__(self, table: Tensor) -> None:
        super().__init__()
        self.register_buffer("table", table)  # (M, V)
        self.table: Tensor
        self.num_steps = 0
        self.num_rows = 0

    @classmethod
    def random(
        cls, seed: int, vocab_size: int = 7, num_codes: int = 5003, scale: float = 1.5, end: float = 0.0
    ) -> Self:
        generator = torch.Generator().manual_seed(seed)
        table = torch.randn(num_codes, vocab_size, generator=generator, dtype=torch.double) * scale
        table[:, EOS] += end
        return cls(table)

    def encode(self, source: Tensor, source_mask: Tensor) -> Memory:
        code = torch.zeros(source.size(0), dtype=torch.long, device=source.device)
        for position in range(source.size(1)):
            mixed = (code * 131 + source[:, position] + 7) % len(self.table)
            code = torch.where(source_mask[:, position], mixed, code)
        return Memory(self.table[code][:, None].expand(-1, source.size(1), -1), source_mask, code)

    def start(self, memory: Memory) -> TableState:
        return TableState(memory.summary, memory.summary)

    def next_codes(self, codes: Tensor, tokens: Tensor) -> Tensor:
        return (codes * 37 + tokens * 101 + 13) % len(self.table)

    def step(self, tokens: Tensor, state: State, *, need_weights: bool = False) -> Step:
        assert isinstance(state, TableState)
        assert tokens.shape == state.codes.shape
        self.num_steps += 1
        self.num_rows += len(tokens)
        codes = self.next_codes(state.codes, tokens)
        return Step(self.table[codes], TableState(codes, state.sentences))

    def forward(
        self,
        source: Tensor,
        source_mask: Tensor,
        target_in: Tensor,
        *,
        teacher_forcing: float = 1.0,
        need_weights: bool = False,
    ) -> Decoded:
        state: State = self.start(self.encode(source, source_mask))
        logits = []
        for position in range(target_in.size(1)):
            step = self.step(target_in[:, position], state)
            state = step.state
            logits.append(step.logits)
        attention = None
        if need_weights:  # target position t attends to source position t, if it exists
            attention = torch.zeros(source.size(0), 1, 1, target_in.size(1), source.size(1), dtype=torch.double)
            lengths = source_mask.sum(1)
            for position in range(target_in.size(1)):
                places = torch.minimum(torch.tensor(position), lengths - 1)
                attention[torch.arange(source.size(0)), 0, 0, position, places] = 1
        return Decoded(torch.stack(logits, 1), attention)

    def project(self, states: Tensor) -> Tensor:
        return states

    @property
    def output_weight(self) -> Tensor:
        raise AttributeError("a table has no output layer")

    @property
    def output_bias(self) -> Tensor | None:
        return None


def batch_of(sources: list[list[int]]) -> tuple[Tensor, Tensor]:
    longest = max(map(len, sources))
    source = torch.full((len(sources), longest), PAD)
    for row, ids in enumerate(sources):
        source[row, : len(ids)] = torch.tensor(ids)
    return source, source != PAD


def all_outputs(model: TableModel, source: list[int], max_length: int) -> dict[tuple[int, ...], float]:
    """The log-probability of every output of at most `max_length` pieces, by brute force."""
    vocab_size = model.table.size(1)
    pieces = [piece for piece in range(vocab_size) if piece not in (PAD, BOS, EOS)]
    log_table = torch.log_softmax(model.table, -1).tolist()
    start = int(model.encode(*batch_of([source])).summary)
    outputs = {}
    for length in range(max_length + 1):
        for output in itertools.product(pieces, repeat=length):
            code, total = start, 0.0
            for previous, following in itertools.pairwise((BOS, *output, EOS)):
                code = (code * 37 + previous * 101 + 13) % len(log_table)  # as in `next_codes`
                total += log_table[code][following]
            outputs[output] = total
    assert all(not math.isnan(score) for score in outputs.values())
    return outputs


class CopyState(State):
    def __init__(self, source: Tensor, position: int, num_rows: int) -> None:
        self.source, self.position, self.num_rows = source, position, num_rows  # (B, S)

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> Self:
        source = self.source if sentences is None else self.source[sentences]
        return type(self)(source, self.position, len(rows))


class CopyModel(Seq2Seq):
    """Copies its source, attending to the piece it copies."""

    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self.vocab_size = vocab_size

    def encode(self, source: Tensor, source_mask: Tensor) -> Memory:
        return Memory(source[:, :, None].double(), source_mask, source)

    def start(self, memory: Memory) -> CopyState:
        return CopyState(memory.summary, 0, len(memory.summary))

    def step(self, tokens: Tensor, state: State, *, need_weights: bool = False) -> Step:
        assert isinstance(state, CopyState)
        past_end = torch.full_like(state.source[:, :1], EOS)
        column = torch.cat([state.source, past_end], 1)[:, min(state.position, state.source.size(1))]  # (B,)
        column = column.masked_fill(column == PAD, EOS)
        wanted = column.repeat_interleave(state.num_rows // len(column))
        logits = torch.full((len(wanted), self.vocab_size), -5.0, dtype=torch.double).scatter(1, wanted[:, None], 5.0)
        return Step(logits, CopyState(state.source, state.position + 1, state.num_rows))

    def forward(
        self,
        source: Tensor,
        source_mask: Tensor,
        target_in: Tensor,
        *,
        teacher_forcing: float = 1.0,
        need_weights: bool = False,
    ) -> Decoded:
        length = target_in.size(1)
        wanted = torch.nn.functional.pad(source, (0, length), value=PAD)[:, :length]
        states = torch.full((*wanted.shape, self.vocab_size), -5.0).scatter(2, wanted[:, :, None], 5.0)
        attention = torch.eye(max(length, source.size(1)))[None, None, None, :length, : source.size(1)]
        return Decoded(states, attention.expand(len(source), 2, 3, -1, -1) if need_weights else None)

    def project(self, states: Tensor) -> Tensor:
        return states

    @property
    def output_weight(self) -> Tensor:
        raise AttributeError("a copier has no output layer")

    @property
    def output_bias(self) -> Tensor | None:
        return None


class ByteTokenizer:
    """Every byte is a piece; decoding upper-cases, so that translated text is recognisable."""

    fingerprint = "bytes"
    source_vocab_size = target_vocab_size = NUM_SPECIAL + 256

    def encode_source(self, texts: list[str]) -> list[list[int]]:
        return [[*ids, EOS] for ids in self.encode_target(texts)]

    def encode_target(self, texts: list[str]) -> list[list[int]]:
        return [[NUM_SPECIAL + byte for byte in text.encode()] for text in texts]

    def decode_target(self, ids: Sequence[Sequence[int]]) -> list[str]:
        return [
            bytes(i - NUM_SPECIAL for i in row if i >= NUM_SPECIAL).decode("utf-8", "replace").upper() for row in ids
        ]

    def source_pieces(self, ids: Sequence[int]) -> list[str]:
        names = {PAD: "<pad>", BOS: "<s>", EOS: "</s>"}
        bytes_ = [i - NUM_SPECIAL for i in ids]
        return [
            names.get(i, chr(b).replace(" ", "▁") if 32 <= b < 127 else f"<0x{b:02X}>")
            for i, b in zip(ids, bytes_, strict=True)
        ]

    target_pieces = source_pieces
