"""Exports the finished model of a run to the format of another library: `python -m translator.export --help`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from translator.command import Parser, exit_code, positive

TARGETS = ("ctranslate2", "huggingface", "onnx")
QUANTIZATIONS = ("float32", "float16", "int8", "int8_float32")
EPILOG = """
examples:
  python -m translator.export runs/latest --to ctranslate2 -o exported
  python -m translator.export runs/latest --to ctranslate2 --quantization int8 --shortlist -o exported
  python -m translator.export runs/latest --to huggingface -o exported --license cc-by-4.0

Sentences of the run's validation set are translated with the exported model, and the export fails unless the
translations are those of the run.
"""


def parser() -> argparse.ArgumentParser:
    result = Parser(
        prog="python -m translator.export",
        description="Exports the finished model of a run to the format of another library.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    result.add_argument("run", type=Path, metavar="RUN", help="directory of a training run")
    result.add_argument("--to", choices=TARGETS, required=True, help="the library that will use the model")
    result.add_argument(
        "-o", "--output", type=Path, required=True, metavar="DIR", help="a new folder, or an earlier export to replace"
    )
    result.add_argument(
        "--quantization", choices=QUANTIZATIONS, default="float32", help="of CTranslate2's weights; default: float32"
    )
    result.add_argument(
        "--shortlist",
        action="store_true",
        help="for CTranslate2: a vocabulary map from the training corpus, used with use_vmap=True",
    )
    result.add_argument("--license", default="unknown", metavar="ID", help="for the model card, such as cc-by-4.0")
    check = result.add_argument_group("verification")
    check.add_argument(
        "--sample", type=Path, metavar="FILE", help="lines to translate; default: the run's validation set"
    )
    check.add_argument("--reference", type=Path, metavar="FILE", help="their translations, for BLEU")
    check.add_argument(
        "--sample-size", type=positive, default=200, metavar="N", help="lines to translate (default: %(default)s)"
    )
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code: 0, or 2 after a user error or if the exported model translates differently."""

    def run() -> None:
        options = parser().parse_args(arguments)
        # Only now, so that --help and mistyped options are answered at once.
        from translator.export import command

        command.run(options)

    return exit_code("export", run)


if __name__ == "__main__":
    sys.exit(main())
