"""What the figures of the atlas may use: nothing but the package itself, and trained runs where they are given."""

from dataclasses import dataclass
from pathlib import Path

from translator.config import Config
from translator.decoding.line_translator import LineTranslator
from translator.report.material import HeldOut


@dataclass(frozen=True)
class TrainedRun:
    """A finished run, loaded."""

    folder: Path
    config: Config
    translator: LineTranslator  # with the model and the tokenizer
    held_out: HeldOut | None  # its test or validation set; None where the corpora are gone


@dataclass(frozen=True)
class Material:
    """`quick` asks for smaller sizes and fewer repetitions, where a figure takes more than a moment."""

    quick: bool = False
    run: TrainedRun | None = None  # a Transformer
    lstm_run: TrainedRun | None = None
