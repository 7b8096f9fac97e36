"""The `translate` command with a model that copies: `python fake_command.py OPTIONS`. Each call may be slowed down."""

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

from fake_models import ByteTokenizer, CopyModel  # noqa: E402

from translator import translate_files  # noqa: E402
from translator.api import Translator  # noqa: E402
from translator.data.normalization import normalize_text  # noqa: E402
from translator.decoding.line_translator import Translation  # noqa: E402
from translator.decoding.search import SearchOptions  # noqa: E402


class SlowTranslator(Translator):
    @classmethod
    def load(cls, run_dirs: object, device: str = "auto") -> "SlowTranslator":
        tokenizer = ByteTokenizer()
        model = CopyModel(tokenizer.target_vocab_size)
        return cls(model, tokenizer, "cpu", SearchOptions(beam_size=2), max_pieces=300, normalize=normalize_text)

    def translate_fully(self, lines: Sequence[str], **options: object) -> list[Translation]:  # type: ignore[override]
        time.sleep(float(os.environ.get("TRANSLATE_DELAY", "0")))
        return super().translate_fully(lines, **options)  # type: ignore[arg-type]


def install() -> None:
    translate_files.Translator = SlowTranslator  # type: ignore[misc]
    translate_files.find_weights = lambda run_dir: Path(__file__)  # type: ignore[assignment]


if __name__ == "__main__":
    from translator.translate import main

    install()
    sys.exit(main())
