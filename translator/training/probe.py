"""The pre-flight probe: checks on a model and its data that outputs depend only on what they may depend on.

A wrong mask does not stop a model from learning: the loss looks good, the translations are bad, and the cause may take
months to find. So before the first update a few sentences are changed where no change may matter: later target tokens,
padding, the other sentences of the batch, decoding step by step. `probe` measures how far the outputs move, and its
report rejects the model when they do. It uses only the model's interface, and takes seconds.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from translator.models.base import Decoded, Seq2Seq, State, evaluation_mode

MAX_SENTENCES = 4
MAX_LENGTH = 24
MAX_CUTS = 8  # positions from which on the future is changed
EXTRA_COLUMNS = 3  # of padding
NUM_HYPOTHESES = 2  # of each sentence, where states are selected


class ProbeError(ValueError):
    """The model breaks an invariant, so it would not learn what it is supposed to learn."""


@dataclass(frozen=True)
class Finding:
    """One invariant and the largest deviation from it, relative to the outputs where these are larger than 1."""

    invariant: str
    deviation: float
    allowed: float
    where: str

    @property
    def holds(self) -> bool:
        return self.deviation <= self.allowed

    def __str__(self) -> str:
        verdict = "holds" if self.holds else f"is broken at {self.where}"
        return f"{self.invariant}: {verdict} (deviation {self.deviation:.1e}, allowed {self.allowed:.1e})"


@dataclass(frozen=True)
class ProbeReport:
    findings: tuple[Finding, ...]

    @property
    def broken(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if not finding.holds)

    def refuse(self) -> None:
        """Raises ProbeError if any invariant is broken, naming each of them, by how much and where."""
        if self.broken:
            raise ProbeError("the model must not be trained:\n" + "\n".join(f"  {finding}" for finding in self.broken))

    def __str__(self) -> str:
        return "\n".join(map(str, self.findings))


class _Sample(NamedTuple):
    source: Tensor  # (B, S)
    source_mask: Tensor  # (B, S)
    target_in: Tensor  # (B, T)
    target_mask: Tensor  # (B, T)


def probe(
    model: Seq2Seq,
    source: Tensor,  # (B, S) ids
    source_mask: Tensor,  # (B, S)
    target_in: Tensor,  # (B, T) ids, BOS first
    target_mask: Tensor,  # (B, T)
    tolerance: float | None = None,
) -> ProbeReport:
    """Checks every invariant on a few sentences of the batch; padding must be at the end of the rows.

    `tolerance` is what rounding may do to an output: by default half the digits of the outputs' type, thousands
    of times what float32 does on a CPU. Matrix products of reduced precision (TF32) need about 0.01.
    """
    device = model.output_weight.device
    sample = _choose(_Sample(*(tensor.to(device) for tensor in (source, source_mask, target_in, target_mask))))
    generators = [device] if device.type == "cuda" else []
    with evaluation_mode(model), torch.no_grad(), torch.random.fork_rng(devices=generators):
        decoded = model(*sample[:3], need_weights=True)
        expected = model.project(decoded.states)  # (B, T, V)
        allowed = math.sqrt(torch.finfo(expected.dtype).eps) if tolerance is None else tolerance
        checks = (_future, _source_padding, _target_padding, _batch, _stepwise, _select, _value)
        findings = [_judge(check(model, sample, expected), allowed) for check in checks]
        findings += _attention(sample, decoded, allowed)
    return ProbeReport(tuple(findings))


class _Comparison(NamedTuple):
    """What an invariant says should be equal, where `mask` is True."""

    invariant: str
    pairs: list[tuple[Tensor, Tensor, Tensor]]  # expected (B, T, V), actual (B, T, V), mask (B, T)


def _future(model: Seq2Seq, sample: _Sample, expected: Tensor) -> _Comparison:
    length = sample.target_in.shape[1]
    cuts = torch.linspace(1, length - 1, min(MAX_CUTS, length - 1)).round().long().tolist() if length > 1 else []
    pairs = []
    for cut in cuts:
        changed = _others(model, sample.target_in)
        changed[:, :cut] = sample.target_in[:, :cut]
        actual = _logits(model, sample._replace(target_in=changed))
        pairs.append((expected[:, :cut], actual[:, :cut], sample.target_mask[:, :cut]))
    return _Comparison("no output depends on later target tokens", pairs)


def _source_padding(model: Seq2Seq, sample: _Sample, expected: Tensor) -> _Comparison:
    pairs = []
    for columns in (0, EXTRA_COLUMNS):
        source, mask = _with_junk(sample.source, sample.source_mask, columns)
        actual = _logits(model, sample._replace(source=source, source_mask=mask))
        pairs.append((expected, actual, sample.target_mask))
    return _Comparison("no output depends on the source's padding", pairs)


def _target_padding(model: Seq2Seq, sample: _Sample, expected: Tensor) -> _Comparison:
    length = expected.shape[1]
    pairs = []
    for columns in (0, EXTRA_COLUMNS):
        target_in, mask = _with_junk(sample.target_in, sample.target_mask, columns)
        actual = _logits(model, sample._replace(target_in=target_in, target_mask=mask))
        pairs.append((expected, actual[:, :length], sample.target_mask))
    return _Comparison("no output depends on the target's padding", pairs)


def _batch(model: Seq2Seq, sample: _Sample, expected: Tensor) -> _Comparison:
    actual = expected.clone()
    for index in range(len(sample.source)):
        source_length = max(1, int(sample.source_mask[index].sum()))
        target_length = max(1, int(sample.target_mask[index].sum()))
        row = slice(index, index + 1)
        alone = _Sample(
            sample.source[row, :source_length],
            sample.source_mask[row, :source_length],
            sample.target_in[row, :target_length],
            sample.target_mask[row, :target_length],
        )
        actual[row, :target_length] = _logits(model, alone)
    return _Comparison("a sentence alone equals the sentence in a batch", [(expected, actual, sample.target_mask)])


def _stepwise(model: Seq2Seq, sample: _Sample, expected: Tensor) -> _Comparison:
    state = model.start(model.encode(sample.source, sample.source_mask))
    actual, _ = _feed(model, state, sample.target_in)
    return _Comparison("decoding step by step equals teacher forcing", [(expected, actual, sample.target_mask)])


def _select(model: Seq2Seq, sample: _Sample, expected: Tensor) -> _Comparison:
    """Feeds two hypotheses of each sentence, the reference and another; then reverses the sentences and drops one."""
    num_sentences, length = sample.target_in.shape
    device = sample.target_in.device
    rows = torch.arange(num_sentences, device=device).repeat_interleave(NUM_HYPOTHESES)  # (R,)
    hypotheses = sample.target_in[rows]
    hypotheses[1::NUM_HYPOTHESES, 1:] = _others(model, sample.target_in)[:, 1:]
    state = model.start(model.encode(sample.source, sample.source_mask)).select(rows)
    num_fed = max(1, length // 2)
    logits, state = _feed(model, state, hypotheses[:, :num_fed])
    reference = (expected[:, :num_fed], logits[::NUM_HYPOTHESES], sample.target_mask[:, :num_fed])

    sentences = torch.arange(num_sentences - 1, 0 if num_sentences > 1 else -1, -1, device=device)
    swapped = torch.arange(NUM_HYPOTHESES - 1, -1, -1, device=device)
    chosen = (sentences.unsqueeze(1) * NUM_HYPOTHESES + swapped).flatten()
    after, _ = _feed(model, state, hypotheses[:, -2:])  # any tokens will do: this is not compared with teacher forcing
    selected, _ = _feed(model, state.select(chosen, sentences), hypotheses[chosen, -2:])
    everywhere = torch.ones(selected.shape[:2], dtype=torch.bool, device=device)
    return _Comparison(
        "selecting rows of a state commutes with a step", [reference, (after[chosen], selected, everywhere)]
    )


def _value(model: Seq2Seq, sample: _Sample, expected: Tensor) -> _Comparison:
    """Uses a state, decodes another sentence, and uses the same state again."""
    state = model.start(model.encode(sample.source, sample.source_mask))
    tokens = sample.target_in[:, :2]
    before, _ = _feed(model, state, tokens)
    other = model.start(model.encode(sample.source.flip(0), sample.source_mask.flip(0)))
    _feed(model, other, _others(model, tokens))
    after, _ = _feed(model, state, tokens)
    return _Comparison("nothing is kept outside the state", [(before, after, sample.target_mask[:, :2])])


def _attention(sample: _Sample, decoded: Decoded, allowed: float) -> list[Finding]:
    sums_to_one, zero_on_padding = "attention sums to one over real positions", "attention is exactly zero on padding"
    if decoded.attention is None:
        return [Finding(name, math.inf, allowed, "every position") for name in (sums_to_one, zero_on_padding)]
    weights = decoded.attention.flatten(1, 2).movedim(1, -1)  # (B, T, S, L·H)
    real = sample.source_mask[:, None, :, None]
    sums = (weights * real).sum(2)  # (B, T, L·H)
    ones = sample.source_mask.any(1)[:, None, None].to(sums).expand_as(sums)
    padding = (weights * ~real).flatten(2)
    mask = sample.target_mask
    return [
        _judge(_Comparison(sums_to_one, [(ones, sums, mask)]), allowed),
        _judge(_Comparison(zero_on_padding, [(torch.zeros_like(padding), padding, mask)]), 0.0),
    ]


def _judge(comparison: _Comparison, allowed: float) -> Finding:
    worst, where = 0.0, "no position"
    for expected, actual, mask in comparison.pairs:
        scale = expected.abs().amax().clamp(min=1)
        moved = (actual - expected).abs().amax(-1) / scale  # (B, T)
        moved = moved.nan_to_num(nan=math.inf).masked_fill(~mask, 0)
        row, position = divmod(int(moved.argmax()), moved.shape[1])
        deviation = float(moved[row, position])
        if deviation > worst:
            worst, where = deviation, f"row {row}, target position {position}"
    return Finding(comparison.invariant, worst, allowed, where)


def _logits(model: Seq2Seq, sample: _Sample) -> Tensor:
    return model.project(model(*sample[:3]).states)  # (B, T, V)


def _feed(model: Seq2Seq, state: State, tokens: Tensor) -> tuple[Tensor, State]:
    """The logits (R, T, V) after each of the tokens (R, T), and the state after the last."""
    logits = []
    for column in tokens.unbind(1):
        step = model.step(column, state)
        logits.append(step.logits)
        state = step.state
    return torch.stack(logits, 1), state


def _others(model: Seq2Seq, ids: Tensor) -> Tensor:
    """Target ids that differ from the given ones everywhere."""
    vocab_size = model.output_weight.shape[0]
    steps = torch.arange(ids.numel(), device=ids.device).view_as(ids) % (vocab_size - 1)
    return (ids + 1 + steps) % vocab_size


def _with_junk(ids: Tensor, mask: Tensor, columns: int) -> tuple[Tensor, Tensor]:
    """The ids with `columns` more columns of padding, and real ids of the batch under all padding."""
    wide = torch.nn.functional.pad(ids, (0, columns))
    wide_mask = torch.nn.functional.pad(mask, (0, columns), value=False)
    pool = torch.cat((ids.new_zeros(1), ids[mask]))  # 0 is an id of every vocabulary; more is not known of the source's
    junk = pool[torch.arange(wide.numel(), device=ids.device) % len(pool)].view_as(wide)
    return torch.where(wide_mask, wide, junk), wide_mask


def _choose(batch: _Sample) -> _Sample:
    """Sentences from the shortest to the longest, so that there is padding, cut to a length that is quick."""
    order = batch.source_mask.sum(1).argsort()
    picks = torch.linspace(0, len(order) - 1, min(MAX_SENTENCES, len(order)), device=order.device).round().long()
    chosen = [tensor[order[picks], :MAX_LENGTH] for tensor in batch]
    source_length, target_length = (max(1, int(mask.sum(1).max())) for mask in (chosen[1], chosen[3]))
    return _Sample(
        chosen[0][:, :source_length],
        chosen[1][:, :source_length],
        chosen[2][:, :target_length],
        chosen[3][:, :target_length],
    )
