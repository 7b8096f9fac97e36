"""What the figures of the atlas may use: the package itself and, if given, trained runs."""

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
    """`quick` asks for smaller sizes and fewer repetitions of figures that take a while."""

    quick: bool = False
    run: TrainedRun | None = None  # a Transformer
    lstm_run: TrainedRun | None = None
