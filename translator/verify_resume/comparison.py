"""Whether two runs ended in the same state, bit for bit, and the first difference where they did not."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from tensorboard.backend.event_processing.event_accumulator import SCALARS, EventAccumulator
from torch import Tensor

from translator.errors import UserError
from translator.runs.directory import RunDirectory, flatten
from translator.training.checkpoint import Checkpoint, CheckpointStore

Curves = dict[str, list[tuple[int, float]]]  # points (update, value) by name
_SPEED = "train/tokens_per_second"  # the one curve that depends on the clock


@dataclass(frozen=True)
class Finding:
    """One part of two runs: what was compared, and the first difference in words, or none."""

    part: str
    extent: str
    difference: str = ""


def compare_runs(first: RunDirectory, second: RunDirectory) -> list[Finding]:
    """Compares the newest checkpoints, the logged curves and the final weights of two runs."""
    ours, theirs = _newest(first), _newest(second)
    findings = [_compare_curves(read_curves(first.tensorboard), read_curves(second.tensorboard))]
    for part, name in (("weights", "model"), ("optimizer", "optimizer"), ("moving average", "ema")):
        findings.append(compare_tensors(part, *(_tensors(run.path / f"{name}.safetensors") for run in (ours, theirs))))
    findings += _compare_states(ours.state, theirs.state)
    findings.append(compare_tensors("final weights", _tensors(first.weights), _tensors(second.weights)))
    return findings


def compare_tensors(part: str, ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> Finding:
    """Equal means the same names, shapes and bytes: -0 is not 0, and a NaN equals itself."""
    count = sum(tensor.numel() for tensor in ours.values())
    extent = f"{count:,} numbers in {len(ours)} tensors" if ours else "none are kept"
    if ours.keys() != theirs.keys():
        return Finding(part, extent, f"{min(ours.keys() ^ theirs.keys())} is in one of them only")
    differences = (_tensor_difference(name, tensor, theirs[name]) for name, tensor in ours.items())
    return Finding(part, extent, next(filter(None, differences), ""))


def read_curves(folder: Path) -> Curves:
    """The curves that TensorBoard shows of a run, as (update, value); what was hidden by a resume is left out."""
    logging.getLogger("tensorboard").setLevel(logging.ERROR)  # it would report every resume
    events = EventAccumulator(str(folder), size_guidance={SCALARS: 0})
    events.Reload()
    names = (name for name in events.Tags()[SCALARS] if name != _SPEED)
    return {name: sorted((event.step, event.value) for event in events.Scalars(name)) for name in names}


def _newest(run: RunDirectory) -> Checkpoint:
    store = CheckpointStore(run.checkpoints, keep_best=1)
    store.open()
    checkpoint = store.newest(print)
    if checkpoint is None:
        raise UserError(f"{run.path}: has no whole checkpoint to compare")
    return checkpoint


def _tensors(path: Path) -> dict[str, Tensor]:
    return load_file(path) if path.exists() else {}


def _tensor_difference(name: str, ours: Tensor, theirs: Tensor) -> str:
    if (ours.shape, ours.dtype) != (theirs.shape, theirs.dtype):
        return f"{name}: {tuple(ours.shape)} {ours.dtype} against {tuple(theirs.shape)} {theirs.dtype}"
    if ours.numel() == 0:
        return ""
    bits = [tensor.reshape(-1, 1).view(torch.uint8) for tensor in (ours, theirs)]  # (N, bytes of a number)
    num_different = int((bits[0] != bits[1]).any(1).sum())
    if not num_different:
        return ""
    largest = (ours.double() - theirs.double()).abs().max().item()
    return f"{name}: {num_different:,} of {ours.numel():,} numbers, by up to {largest:.3g}"


def _compare_curves(ours: Curves, theirs: Curves) -> Finding:
    extent = f"{sum(map(len, ours.values()))} points of {len(ours)} curves"
    points = [_points(ours), _points(theirs)]
    unequal = points[0] ^ points[1]
    if not unequal:
        return Finding("logged curves", extent)
    step, name, _ = min(unequal)
    values = [" and ".join(value for s, n, value in sorted(side) if (s, n) == (step, name)) for side in points]
    return Finding("logged curves", extent, f"{name} at update {step}: {values[0] or 'none'}, {values[1] or 'none'}")


def _points(curves: Curves) -> set[tuple[int, str, str]]:
    """(update, curve, value). Nine digits tell every float32 from every other, and a NaN equals itself.

    A set, because a run killed between a validation and its checkpoint draws the same points again.
    """
    return {(step, name, f"{value:.9g}") for name, points in curves.items() for step, value in points}


def _compare_states(ours: dict[str, Any], theirs: dict[str, Any]) -> Iterable[Finding]:
    ranks, progress = ours["ranks"], ours["progress"]
    generators = ", ".join(name for name, state in ranks[0]["random"].items() if state is not None)
    yield _compare_values("random numbers", generators, *(_of_ranks(state, "random") for state in (ours, theirs)))
    place = ", ".join(f"{name} {value}" for name, value in ranks[0]["loader"].get("place", {}).items())
    yield _compare_values("place in the corpus", place, *(_of_ranks(state, "loader") for state in (ours, theirs)))
    extent = f"{progress['update']} updates, {progress['num_tokens']:,} target tokens"
    rest = [(s["progress"], s["scaler"], _of_ranks(s, "memory_limit")) for s in (ours, theirs)]
    names = ("progress", "scaler", "memory_limit")
    yield _compare_values("progress", extent, *(dict(zip(names, values, strict=True)) for values in rest))


def _of_ranks(state: dict[str, Any], name: str) -> list[Any]:
    return [rank[name] for rank in state["ranks"]]


def _compare_values(part: str, extent: str, ours: Any, theirs: Any) -> Finding:
    """Plain values, apart from what tells the time."""
    left, right = (
        {key: repr(value) for key, value in flatten(values).items() if not key.endswith("seconds")}
        for values in (ours, theirs)
    )
    for key in [*left, *(right.keys() - left.keys())]:
        if left.get(key) != right.get(key):
            return Finding(part, extent, f"{key}: {_short(left.get(key))} against {_short(right.get(key))}")
    return Finding(part, extent)


def _short(text: str | None) -> str:
    return "nothing" if text is None else text if len(text) <= 40 else f"{text[:37]}…"
