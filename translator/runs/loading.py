"""A finished model from the folder of its run."""

from dataclasses import dataclass
from pathlib import Path

import torch

from translator.config import Config, load_file
from translator.data.tokenizer import Tokenizer
from translator.models.base import Seq2Seq
from translator.runs.directory import RunDirectory, find_weights
from translator.runs.model import build_model
from translator.runs.weights import read_tensors_and_checksum, restore_weights


@dataclass(frozen=True)
class LoadedRun:
    config: Config
    tokenizer: Tokenizer
    model: Seq2Seq
    weights_checksum: str  # of the weights in the model; a run still training may have newer ones in its file by now


def load_run(path: Path, device: torch.device) -> LoadedRun:
    """The finished model of a run, or the best so far of one still training. Nothing that is read can execute code."""
    weights, run = find_weights(path), RunDirectory(path)
    config = load_file(run.config)
    tokenizer = Tokenizer.load(run.tokenizer)
    model = build_model(config.model, tokenizer.source_vocab_size, tokenizer.target_vocab_size)
    tensors, checksum = read_tensors_and_checksum(weights, needs_checksum=run.has_checksums)
    restore_weights(model, tensors, str(weights))
    return LoadedRun(config, tokenizer, model.to(device).eval(), checksum)
