"""Makes synthetic training data with trained runs: `python -m translator.augment --help`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from translator.command import Parser, add_direction, exit_code
from translator.schema.augment import AugmentOptions, Kind
from translator.schema.decode import SearchOptions
from translator.schema.flags import add_arguments
from translator.schema.rerank import RerankOptions
from translator.translate import add_machine_options

EPILOG = """
kinds:
  back     back-translation: the run translates from the target language of the model to be trained into its source
           language; the given text becomes the target side, the translations the source side
  forward  self-training: the given text is in the source language; its translations become the target side
  distill  the given text is the source side of the training corpus; a teacher's translations replace the target side

examples:
  python -m translator.augment --kind back --model runs/de-en news.de -o corpora/back --sample --exclude valid.de
  python -m translator.augment --kind distill --model runs/big --model runs/big2 train.en -o corpora/distilled
  python -m translator.augment --kind distill --model runs/big train.en -o corpora/near --nbest 8 --reference train.de
  python -m translator.train data=text 'data.train=[corpora/train,corpora/back]' 'data.train_tags=[null,bt]' …

The output is two files, PREFIX and each language code, and PREFIX.manifest.json, which records how they were made. They
hold plain text; data.train_tags puts a reserved tag in front of the sources when a model is trained on them.
"""


def parser() -> argparse.ArgumentParser:
    result = Parser(
        prog="python -m translator.augment",
        description="Translates text with a run or an ensemble and writes a parallel corpus to train on.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    result.add_argument("files", nargs="+", type=Path, metavar="FILE", help="text to translate (also .gz)")
    result.add_argument(
        "--kind", choices=[kind.value for kind in Kind], required=True, help="what the corpus is for; see below"
    )
    result.add_argument(
        "--model",
        type=Path,
        action="append",
        required=True,
        metavar="RUN",
        help="directory of a training run; given several times, the runs are an ensemble",
    )
    add_direction(result)
    result.add_argument("-o", "--output", type=Path, required=True, metavar="PREFIX", help="of the files to write")
    result.add_argument("--resume", action="store_true", help="continue after an interruption")
    result.add_argument("--overwrite", action="store_true", help="replace files that are there already")
    result.add_argument("--quiet", action="store_true", help="no progress bar and no statistics")
    chosen = result.add_argument_group("what is kept")
    add_arguments(chosen, AugmentOptions)
    chosen.add_argument(
        "--reference",
        type=Path,
        metavar="FILE",
        help="for distill: of the --nbest translations keep the one closest to its line here (Kim and Rush 2016)",
    )
    chosen.add_argument(
        "--exclude",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="drop lines that also occur in this file, such as a test set; can be repeated",
    )
    search = result.add_argument_group("search (default: as the run's configuration says)")
    add_arguments(search, SearchOptions)
    add_arguments(search, RerankOptions)
    add_machine_options(result.add_argument_group("input and machine"))
    # How the translations are kept until the corpus is written.
    result.set_defaults(format="jsonl", scores=True, alignments=False, attention=None, stream=False, prefix=None)
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    def run() -> None:
        options = parser().parse_args(arguments)
        # Only now, so that --help and mistyped options are answered at once.
        from translator import augment_run

        augment_run.run(options)

    return exit_code("augment", run)


if __name__ == "__main__":
    sys.exit(main())
