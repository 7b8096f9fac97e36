"""Scores a run or an existing translation: `python -m translator.evaluate --help`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from translator.command import Parser, add_direction, exit_code, positive, whole_number
from translator.schema.decode import SearchOptions
from translator.schema.flags import add_arguments
from translator.schema.rerank import RerankOptions

MOST_RESAMPLINGS = 1_000_000
EPILOG = """
examples:
  python -m translator.evaluate --model runs/latest --source test.en --reference test.de
  python -m translator.evaluate --hypothesis output.de --source test.en --reference test.de
  python -m translator.evaluate --hypothesis output.de --reference one.de two.de --json scores.json
  python -m translator.evaluate --model runs/latest --source test.en --reference test.de --gold-alignment test.align
"""


def parser() -> argparse.ArgumentParser:
    result = Parser(
        prog="python -m translator.evaluate",
        description="BLEU, chrF, chrF++ and TER with signatures and confidence intervals.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = result.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--model",
        type=Path,
        action="append",
        metavar="RUN",
        help="translate the source with this run; given several times, the runs are an ensemble",
    )
    what.add_argument("--hypothesis", type=Path, metavar="FILE", help="score this translation")
    add_direction(result)
    result.add_argument("--source", type=Path, metavar="FILE", help="needed with --model")
    result.add_argument("--reference", type=Path, nargs="+", required=True, metavar="FILE", help="one or several")
    result.add_argument(
        "--target-language", metavar="CODE", help="default: that of the run, or the ending of the reference's name"
    )
    result.add_argument(
        "--bootstrap",
        type=whole_number(0, MOST_RESAMPLINGS),
        default=1_000,
        metavar="N",
        help="resamplings for the intervals; 0 = none",
    )
    result.add_argument("--gold-alignment", type=Path, metavar="FILE", help="score the run's attention against it")
    result.add_argument("--output", type=Path, metavar="FILE", help="keep the run's translation")
    result.add_argument("--json", type=Path, metavar="FILE", help="write all figures; - is the standard output")
    result.add_argument("--device", default="auto", help="default: auto")
    result.add_argument("--threads", type=positive, metavar="N", help="CPU threads; default: torch's choice")
    search = result.add_argument_group("search (default: as the run's configuration says)")
    add_arguments(search, SearchOptions)
    add_arguments(search, RerankOptions)
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    def run() -> None:
        options = parser().parse_args(arguments)
        # Only now, so that --help and mistyped options are answered at once.
        from translator import evaluate_files

        evaluate_files.run(options)

    return exit_code("evaluate", run)


if __name__ == "__main__":
    sys.exit(main())
