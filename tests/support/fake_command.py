"""The `translate` command with a model that copies its input in capitals, optionally slowly."""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from support.fake_models import ByteTokenizer, CopyModel
from translator import translate, translate_files
from translator.api import Translator
from translator.data.examples import Reading
from translator.data.normalization import normalize_text
from translator.decoding.interfaces import Translation
from translator.decoding.search import SearchOptions
from translator.runs.directions import Direction

TranslateCommand = Callable[..., tuple[int, bytes, str]]  # exit code, standard output, standard error


class SlowTranslator(Translator):
    @classmethod
    def load(  # type: ignore[override]
        cls,
        run_dirs: object,
        device: str = "auto",
        *,
        to: str | None = None,
        engine: str = "torch",
        int8: bool = False,
        **options: Any,
    ) -> "SlowTranslator":
        assert engine == "torch"
        tokenizer = ByteTokenizer()
        model = CopyModel(tokenizer.target_vocab_size)
        search = SearchOptions(beam_size=2).changed(**options)
        translator = cls(model, tokenizer, "cpu", search, max_pieces=300, normalize=normalize_text)
        translator.direction = Direction("en", "de", Reading())
        return translator

    def translate_fully(self, lines: Sequence[str], **options: object) -> list[Translation]:  # type: ignore[override]
        time.sleep(float(os.environ.get("TRANSLATE_DELAY", "0")))
        return super().translate_fully(lines, **options)  # type: ignore[arg-type]


def main() -> int:
    """For a separate process, in which the patches need not be undone."""
    translate_files.Translator = SlowTranslator  # type: ignore[misc]
    translate_files.find_weights = lambda run_dir, option="": Path(__file__)
    return translate.main()
