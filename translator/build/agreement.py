"""Whether all ranks are about to train the same model on the same text."""

import socket
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from translator.build.data import PreparedData
from translator.config import Config
from translator.runs.directory import flatten
from translator.training.distributed import Ranks, refuse_together

# What may differ between machines: where things are and how they are computed. The text itself has fingerprints.
_LOCAL = (
    *("run_dir", "resume", "trainer.device", "trainer.threads", "data.cache_dir", "data.folder", "data.num_processes"),
    *("data.train", "data.valid", "data.test", "data.path", "data.data_files", "init_from"),
)


def check_same_options(config: Config, ranks: Ranks) -> None:
    """Refuses ranks whose options differ from the first rank's, before any text is read."""
    for rank, host, first, other in _compared(_options(config), ranks):
        values = ", ".join(f"{name}={other.get(name)} (not {first.get(name)})" for name in _unequal(first, other))
        refuse_together(ranks, f"rank {rank} on {host} has {values}: start all ranks with the same options")


def check_same_data(data: PreparedData, ranks: Ranks) -> None:
    """Refuses ranks whose corpora or tokenizer differ from the first rank's."""
    for rank, host, first, other in _compared(_contents(data), ranks):
        names = ", ".join(_unequal(first, other))
        remedy = "copy the same files to all machines, or keep them in a shared folder"
        refuse_together(ranks, f"rank {rank} on {host} does not have the same {names} as rank 0: {remedy}")


def _compared(own: dict[str, Any], ranks: Ranks) -> Iterator[tuple[int, str, dict[str, Any], dict[str, Any]]]:
    """The ranks whose values differ from the first rank's, with their hosts and both values."""
    (_, first), *others = ranks.gather((socket.gethostname(), own))
    for rank, (host, other) in enumerate(others, start=1):
        if other != first:
            yield rank, host, first, other


def _options(config: Config) -> dict[str, Any]:
    options = flatten(asdict(config))
    return {name: value for name, value in options.items() if not _is_local(name)}


def _is_local(name: str) -> bool:
    return any(name == local or name.startswith((f"{local}[", f"{local}.")) for local in _LOCAL)


def _contents(data: PreparedData) -> dict[str, Any]:
    """Fingerprints by the name that users know."""
    names = {"train": "training text", "valid": "validation set", "test": "test set", "tokenizer": "tokenizer"}
    return {names[name]: fingerprint for name, fingerprint in data.fingerprints().items()}


def _unequal(first: dict[str, Any], other: dict[str, Any]) -> list[str]:
    return [name for name in first | other if first.get(name) != other.get(name)]
