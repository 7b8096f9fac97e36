"""Translation in a few lines of Python:

from translator import Translator

translator = Translator.load("runs/latest")
print(translator.translate(["A dog runs through the snow."]))
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import torch

from translator.config import Config
from translator.data.cleaning import normalize_text
from translator.decoding.line_translator import LineTranslator, TextTokenizer
from translator.decoding.options import SearchOptions
from translator.errors import UserError
from translator.languages import alignment_tokens, is_written_without_spaces
from translator.models.base import Seq2Seq
from translator.runs.directory import resolve_run
from translator.schema.training import DecodeConfig
from translator.training.precision import choose_device


def search_options(config: DecodeConfig) -> SearchOptions:
    """The part of the configuration that the search itself needs."""
    return SearchOptions(
        beam_size=config.beam_size,
        length_penalty=config.length_penalty.value,
        alpha=config.alpha,
        max_length_ratio=config.max_length_ratio,
        max_length_extra=config.max_length_extra,
        min_length=config.min_length,
        min_length_ratio=config.min_length_ratio,
        no_repeat_ngram=config.no_repeat_ngram,
        repetition_penalty=config.repetition_penalty,
    )


class Translator(LineTranslator):
    """A trained model that translates lines of text; see `LineTranslator` for what can be asked of it."""

    @classmethod
    def from_config(
        cls,
        config: Config,
        models: Seq2Seq | Sequence[Seq2Seq],
        tokenizer: TextTokenizer,
        device: torch.device | str,
    ) -> Self:
        """Set up as a run's configuration says."""
        return cls(
            models,
            tokenizer,
            device,
            search_options(config.decode),
            batch_tokens=config.decode.batch_tokens,
            max_pieces=config.data.max_pieces,
            normalize=normalize_text if config.data.cleaning.normalize else None,
            joiner="" if is_written_without_spaces(config.data.target) else " ",
            split_words=alignment_tokens,
        )

    @classmethod
    def load(cls, run_dirs: str | Path | Sequence[str | Path], device: str = "auto") -> Self:
        """The finished model of a training run, or of several runs with the same vocabulary as an ensemble."""
        from translator.build import load_run  # here, since build needs `from_config`

        given = [run_dirs] if isinstance(run_dirs, str | Path) else run_dirs
        folders = [resolve_run(Path(folder)) for folder in given]
        try:
            chosen = choose_device(device)
        except (RuntimeError, UserError) as error:
            raise UserError(f"device {device}: not there; use auto, cpu, cuda, cuda:N or mps") from error
        runs = [load_run(folder, chosen) for folder in folders]
        for folder, run in zip(folders[1:], runs[1:], strict=True):
            if run.tokenizer.fingerprint != runs[0].tokenizer.fingerprint:
                raise UserError(
                    f"--model {folder}: its vocabulary is not that of {folders[0]}; an ensemble needs runs that were "
                    "trained on the same data with the same tokenizer options"
                )
        return cls.from_config(runs[0].config, [run.model for run in runs], runs[0].tokenizer, chosen)
