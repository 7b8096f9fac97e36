"""Checkpoints of a run: written completely or not at all, verified when read, the best and the newest kept.

    checkpoints/step-00001234/model.safetensors      weights
                              ema.safetensors        their moving average, where one is kept
                              optimizer.safetensors  moments and step counters
                              state.json             progress, random numbers, position in the corpus
                              checksums.json         SHA-256 of the files above, written last
    checkpoints/index.json                           which one is last, which are best

A checkpoint is written to a hidden folder and renamed when everything is on the disk, so a kill or a full disk leaves
at most a hidden folder behind, which the next start removes. Nothing in a checkpoint is code.
"""

import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load_file
from torch import Tensor

from translator.files.atomic import read_json, sync_folder, write_json
from translator.files.checksums import CHECKSUMS, DamagedFolderError, verify_checksums, write_checksums
from translator.files.explain import reason
from translator.runs.weights import write_tensors
from translator.training.interfaces import Notify

_PREFIX, _UNFINISHED, _REPLACED = "step-", ".unfinished-", ".replaced-"
_STATE = "state.json"


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint on the disk whose checksums have been verified."""

    path: Path
    state: dict[str, Any]

    @property
    def step(self) -> int:
        return int(self.path.name.removeprefix(_PREFIX))

    @property
    def score(self) -> float | None:
        result: float | None = self.state["score"]
        return result

    def tensors(self, name: str) -> dict[str, Tensor]:
        return load_file(self.path / f"{name}.safetensors")

    def evaluated_weights(self) -> dict[str, Tensor]:
        """The weights that were validated: the moving average if there is one."""
        return self.tensors("ema" if (self.path / "ema.safetensors").exists() else "model")


class CheckpointStore:
    """The `checkpoints` folder of a run."""

    def __init__(self, folder: Path, *, keep_best: int, keep_last: int = 2) -> None:
        assert keep_last >= 2, "the newest may turn out to be damaged"
        self.folder = folder
        self.keep_best = keep_best
        self.keep_last = keep_last
        self._scores: dict[str, float | None] = {}  # by folder name; higher is better, None = not validated

    def open(self) -> None:
        """Removes what an interrupted write left behind, and reads which checkpoints there are."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for path in sorted(self.folder.glob(f"{_REPLACED}*")):
            original = self.folder / path.name.removeprefix(_REPLACED)
            if not original.exists():  # killed between the two renames of `save`
                path.rename(original)
        for prefix in (_UNFINISHED, _REPLACED):
            for path in self.folder.glob(f"{prefix}*"):
                shutil.rmtree(path, ignore_errors=True)
        self._scores = {path.name: _read_score(path) for path in sorted(self.folder.iterdir()) if _is_checkpoint(path)}

    def save(
        self, step: int, tensors: dict[str, dict[str, Tensor]], state: dict[str, Any], score: float | None
    ) -> Path:
        """Writes one checkpoint and removes those that are no longer among the best or newest.

        Raises OSError if it cannot be written; existing checkpoints are then left intact.
        """
        name = f"{_PREFIX}{step:08d}"
        unfinished, final = self.folder / f"{_UNFINISHED}{name}", self.folder / name
        replaced = self.folder / f"{_REPLACED}{name}"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        try:
            for key, values in tensors.items():
                write_tensors(unfinished / f"{key}.safetensors", values)
            write_json(unfinished / _STATE, {**state, "score": score})
            write_checksums(unfinished)
            if final.exists():  # saved again at the same step, for example with the result of a validation
                final.rename(replaced)
            unfinished.rename(final)
            sync_folder(self.folder)
            shutil.rmtree(replaced, ignore_errors=True)
        except BaseException:
            if replaced.exists() and not final.exists():
                replaced.rename(final)
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
        self._scores[name] = score
        self._remove_superseded()
        self._write_index()
        return final

    def holds(self, step: int) -> bool:
        return f"{_PREFIX}{step:08d}" in self._scores

    def has_any(self) -> bool:
        return bool(self._scores)

    def newest(self, notify: Notify) -> Checkpoint | None:
        """The newest checkpoint that is intact; damaged ones are reported and skipped."""
        return next(self._whole(sorted(self._scores, reverse=True), notify), None)

    def newest_first(self, notify: Notify) -> list[Checkpoint]:
        return list(self._whole(sorted(self._scores, reverse=True)[: self.keep_last], notify))

    def best(self, notify: Notify) -> list[Checkpoint]:
        """The best validated checkpoints, the best one first."""
        return list(self._whole(self._best_names(), notify))

    def _whole(self, names: list[str], notify: Notify) -> Iterator[Checkpoint]:
        for name in names:
            try:
                yield self.read(name)
            except DamagedFolderError as error:
                notify(f"checkpoint {self.folder / name} is damaged ({error}): skipped, an earlier one is used")

    def read(self, name: str) -> Checkpoint:
        """The checkpoint of that name; DamagedFolderError unless all its files are as they were written."""
        path = self.folder / name
        try:
            present = {file.name for file in path.iterdir() if not file.name.startswith(".")} - {CHECKSUMS}
            verify_checksums(path, *sorted({"model.safetensors", _STATE} | present))
            state = read_json(path / _STATE)
        except (OSError, ValueError, RecursionError) as error:
            raise DamagedFolderError(reason(error)) from error
        if not isinstance(state, dict):
            raise DamagedFolderError(f"{_STATE} is not a JSON object")
        return Checkpoint(path, state)

    def _best_names(self) -> list[str]:
        scored = [(score, name) for name, score in self._scores.items() if score is not None]
        return [name for _, name in sorted(scored, key=lambda item: (-item[0], item[1]))[: self.keep_best]]

    def _remove_superseded(self) -> None:
        # Checkpoints that somebody has deleted by hand are ignored.
        self._scores = {name: score for name, score in self._scores.items() if (self.folder / name).is_dir()}
        kept = {*self._best_names(), *sorted(self._scores)[-self.keep_last :]}
        for name in self._scores.keys() - kept:
            # A half-removed folder must not look like a damaged checkpoint.
            hidden = self.folder / f"{_UNFINISHED}{name}"
            shutil.rmtree(hidden, ignore_errors=True)
            with suppress(FileNotFoundError):
                (self.folder / name).rename(hidden)
            shutil.rmtree(hidden, ignore_errors=True)
            del self._scores[name]

    def _write_index(self) -> None:
        best = [{"checkpoint": name, "score": self._scores[name]} for name in self._best_names()]
        write_json(self.folder / "index.json", {"last": max(self._scores), "best": best})


def _read_score(path: Path) -> float | None:
    """For choosing what to keep; whether the checkpoint is intact is checked when it is used."""
    try:
        score = read_json(path / _STATE)["score"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return score if isinstance(score, int | float) else None


def _is_checkpoint(path: Path) -> bool:
    return path.name.startswith(_PREFIX) and path.name.removeprefix(_PREFIX).isdecimal() and path.is_dir()
