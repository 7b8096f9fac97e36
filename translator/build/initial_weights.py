"""`init_from`: a new run starts with the tokenizer of another run and with those of its weights that fit."""

import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from translator.config import AUTO, Config, load_file
from translator.errors import UserError
from translator.models.base import Seq2Seq
from translator.runs.directory import RunDirectory, find_weights
from translator.runs.latest import resolve_run
from translator.runs.weights import collect_weights, read_tensors_and_checksum
from translator.schema.data import TokenizerConfig

logger = logging.getLogger(__name__)

_SHOWN = 3  # names of weights that were not taken over, for each reason


@dataclass(frozen=True)
class TakenOver:
    """What a run has started with."""

    run: str
    checksum: str  # of the other run's weights
    taken: list[str]
    missing: list[str]  # weights of the new model that the other one does not have
    of_other_shape: list[str]
    unused: list[str]  # weights of the other model that the new one does not have

    def to_dict(self) -> dict[str, Any]:
        """For the manifest."""
        names = ("run", "missing", "of_other_shape", "unused")
        listed = {name: getattr(self, name) for name in names}
        return {**listed, "num_taken": len(self.taken), "weights_sha256": self.checksum}

    def describe(self) -> str:
        reasons = {
            "are initialised at random, because that run does not have them": self.missing,
            "are initialised at random, because their shape differs": self.of_other_shape,
            "of that run are not needed": self.unused,
        }
        lines = [f"init_from={self.run}: {len(self.taken)} of {self._num_own} weights taken over, and the tokenizer"]
        lines += [f"  {len(names)} {reason}: {_listed(names)}" for reason, names in reasons.items() if names]
        return "\n".join(lines)

    @property
    def is_most(self) -> bool:
        return len(self.taken) * 2 >= self._num_own

    @property
    def _num_own(self) -> int:
        return len(self.taken) + len(self.missing) + len(self.of_other_shape)


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def with_initial_tokenizer(config: Config) -> Config:
    """The configuration with the tokenizer options of the run that `init_from` names.

    With another vocabulary its embeddings would mean nothing. Only subword sampling may differ. The
    saved configuration of a run to be resumed has these options already.
    """
    if config.init_from is None or config.resume not in (False, AUTO):
        return config
    begun = RunDirectory(Path(config.run_dir)) if config.run_dir else None
    if begun is not None and begun.config.exists():  # it has the options, and needs the other run no more
        return _with_tokenizer_of(begun, config)
    run = _initial_run(config)
    if run.path != Path(config.init_from):
        raise UserError(
            f"init_from={config.init_from}: leads to another run as soon as this one has begun; name the run itself, "
            f"init_from={run.path}"
        )
    _require_same_sides(config, load_file(run.config))
    theirs = _with_tokenizer_of(run, config).tokenizer
    defaults = vars(TokenizerConfig())
    replaced = [
        f"tokenizer.{name}={value} instead of {getattr(config.tokenizer, name)}"
        for name, value in vars(theirs).items()
        if getattr(config.tokenizer, name) not in (value, defaults[name])  # so it was asked for
    ]
    if replaced:
        logger.warning("init_from=%s: with the tokenizer of that run, %s", config.init_from, ", ".join(replaced))
    return replace(config, tokenizer=theirs)


def _with_tokenizer_of(run: RunDirectory, config: Config) -> Config:
    theirs = load_file(run.config).tokenizer
    return replace(config, tokenizer=replace(theirs, sampling=config.tokenizer.sampling))


def _require_same_sides(config: Config, theirs: Config) -> None:
    """Each side's own vocabulary would split a text of the other language into characters."""
    ours, other = config.data, theirs.data
    if not theirs.tokenizer.joint and (ours.source == other.target or ours.target == other.source):
        raise UserError(
            f"init_from={config.init_from}: has a vocabulary for {other.source} and another for {other.target}, which "
            f"data.source={ours.source} data.target={ours.target} would exchange; start from a run with "
            "tokenizer.joint=true"
        )


def tokenizer_folder(config: Config) -> Path | None:
    """Where the tokenizer of a run with `init_from` is: in the other run or, once this one exists, in its folder."""
    if config.init_from is None:
        return None
    return RunDirectory(Path(str(config.run_dir))).tokenizer if config.resume else _initial_run(config).tokenizer


def _initial_run(config: Config) -> RunDirectory:
    path = resolve_run(Path(str(config.init_from)))
    find_weights(path, f"init_from={config.init_from}")
    return RunDirectory(path)


@torch.no_grad()
def take_over_weights(config: Config, model: Seq2Seq) -> TakenOver | None:
    """Copies the weights of the run that `init_from` names into a model that has not been trained.

    None if there is nothing to do: a run that has a checkpoint continues from it.
    """
    if config.init_from is None or _has_checkpoint(config):
        return None
    run = _initial_run(config)
    theirs, checksum = read_tensors_and_checksum(run.weights, needs_checksum=run.has_checksums)
    _require_same(config, checksum)
    own = collect_weights(model)
    taken = [name for name in own if name in theirs and theirs[name].shape == own[name].shape]
    found = TakenOver(
        run=config.init_from,
        checksum=checksum,
        taken=taken,
        missing=[name for name in own if name not in theirs],
        of_other_shape=[
            f"{name} {_shape(theirs[name])} instead of {_shape(own[name])}"
            for name in own
            if name in theirs and name not in taken
        ],
        unused=[name for name in theirs if name not in own],
    )
    if not taken:
        raise UserError(
            f"init_from={config.init_from}: none of its weights fits this model; give the model options of that run"
        )
    for name in taken:
        own[name].copy_(theirs[name])
    logger.info("%s", found.describe())
    their_config = load_file(run.config)
    if not found.is_most:
        logger.warning("%s", _why_so_little(config, their_config, found))
    is_reversed = their_config.data.reverse_target
    if is_reversed != config.data.reverse_target:
        logger.warning(
            "init_from=%s: was trained with data.reverse_target=%s, so its decoder has to learn the other order; to go "
            "on as it was, set the same here",
            *(config.init_from, str(is_reversed).lower()),
        )
    return found


def _why_so_little(config: Config, their_config: Config, found: TakenOver) -> str:
    theirs, ours = vars(their_config.model), vars(config.model)
    different = [f"model.{name}={value}" for name, value in theirs.items() if ours.get(name) != value]
    reason = f"; that run has {_listed(different)}" if different else ""
    return f"init_from={config.init_from}: most weights of this model begin at random{reason}"


def _shape(tensor: torch.Tensor) -> str:
    return "×".join(map(str, tensor.shape))


def _has_checkpoint(config: Config) -> bool:
    return bool(config.resume) and any(RunDirectory(Path(str(config.run_dir))).checkpoints.glob("step-*"))


def _require_same(config: Config, checksum: str) -> None:
    """A run that was stopped before its first checkpoint starts over, and needs the same weights as before."""
    if not config.resume:
        return
    recorded = RunDirectory(Path(str(config.run_dir))).read_manifest().get("init_from", {}).get("weights_sha256")
    if recorded not in (None, checksum):
        raise UserError(
            f"init_from={config.init_from}: its weights are no longer those that {config.run_dir} started with; start "
            "a new run with another run_dir"
        )
