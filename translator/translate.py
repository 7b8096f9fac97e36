"""The `translate` command: text in, translated text out, line by line."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from translator.command import Parser, add_direction, exit_code, positive
from translator.schema.decode import SearchOptions
from translator.schema.flags import add_arguments
from translator.schema.rerank import RerankOptions

EPILOG = """
examples:
  translate input.txt -o output.txt                     with the newest run, runs/latest
  translate input.txt -o output.txt --model runs/first  with another one
  echo "A dog runs." | translate                        as a filter
  translate big.txt -o big.de --resume                  continues where a killed translation stopped
  translate a.txt b.txt -o folder/                      folder/a.txt and folder/b.txt
  translate in.txt --format jsonl --nbest 5 --scores    five translations of each line, with log-probabilities

Every line of the input becomes a line of the output; blank lines stay blank. A line ends at a line feed only, and
carriage returns before it are kept.
"""


def parser() -> argparse.ArgumentParser:
    result = Parser(
        prog="translate",
        description="Translates text, line by line.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    result.add_argument("files", nargs="*", type=Path, metavar="FILE", help="text files (also .gz); default: stdin")
    result.add_argument("-o", "--output", help="the file to write, or a folder/ for several; default: stdout")
    result.add_argument(
        "--model",
        type=Path,
        action="append",
        metavar="RUN",
        help="directory of a training run; given several times, the runs are an ensemble; default: runs/latest",
    )
    add_direction(result)
    _add_output_options(result.add_argument_group("output"))
    search = result.add_argument_group("search (default: as the run's configuration says)")
    add_arguments(search, SearchOptions)
    add_arguments(search, RerankOptions)
    search.add_argument(
        "--prefix", type=Path, metavar="FILE", help="what each translation must begin with; a line for each"
    )
    add_machine_options(result.add_argument_group("input and machine"))
    return result


def _add_output_options(group: "argparse._ArgumentGroup") -> None:
    group.add_argument("--format", choices=["text", "tsv", "jsonl"], default="text", help="default: text")
    group.add_argument(
        "--scores",
        action="store_true",
        help="write the log-probability of each translation, or with --mbr its expected utility",
    )
    group.add_argument(
        "--alignments", action="store_true", help="write word alignments from attention, as source-target pairs from 0"
    )
    group.add_argument(
        "--attention",
        type=Path,
        metavar="DIR",
        help="write an interactive page of the translations (index.html) and attention maps (PNGs, maps.html), in "
        "place of earlier ones; several files each get a folder of their own inside it",
    )
    group.add_argument("--resume", action="store_true", help="continue an output that was interrupted")
    group.add_argument("--stream", action="store_true", help="answer every line as soon as it arrives")
    group.add_argument("--quiet", action="store_true", help="no progress bar and no statistics")


def add_machine_options(group: "argparse._ArgumentGroup") -> None:
    group.add_argument("--split-sentences", action="store_true", help="translate the sentences of a line one by one")
    group.add_argument(
        "--errors", choices=["strict", "replace"], default="strict", help="what to do with invalid UTF-8"
    )
    group.add_argument(
        "--engine",
        choices=["torch", "ctranslate2", "auto"],
        default="torch",
        help="torch, ctranslate2 (faster on CPUs, with --stop first) or auto, the latter where it can; default: torch",
    )
    group.add_argument("--int8", action="store_true", help="compute in 8 bits; faster, less exact; needs ctranslate2")
    group.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:N or mps; default: auto")
    group.add_argument("--threads", type=positive, metavar="N", help="CPU threads; default: torch's choice")


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code: 0, 2 after a user error, 130 after Ctrl-C, 141 after a broken pipe."""

    def run() -> None:
        options = parser().parse_args(arguments)
        # Only now, so that --help and mistyped options are answered at once.
        from translator import translate_files

        translate_files.run(options)

    return exit_code("translate", run)


if __name__ == "__main__":
    sys.exit(main())
