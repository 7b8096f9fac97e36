"""Compares two runs or two translations: `python -m translator.compare --help`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from translator.command import Parser, add_direction, exit_code, positive, whole_number
from translator.evaluate import MOST_RESAMPLINGS
from translator.schema.decode import SearchOptions
from translator.schema.flags import add_arguments
from translator.schema.rerank import RerankOptions

MOST_EXAMPLES = 1_000_000
EPILOG = """
examples:
  python -m translator.compare a.de b.de --reference test.de
  python -m translator.compare runs/one runs/two --source test.en --reference test.de
"""


def parser() -> argparse.ArgumentParser:
    result = Parser(
        prog="python -m translator.compare",
        description="Is B really better than A? Paired significance tests, and where the two differ most.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    result.add_argument("a", type=Path, metavar="A", help="a run, or a file with its translation")
    result.add_argument("b", type=Path, metavar="B", help="another one")
    add_direction(result)
    result.add_argument("--reference", type=Path, nargs="+", required=True, metavar="FILE", help="one or several")
    result.add_argument(
        "--source", type=Path, metavar="FILE", help="needed where A or B is a run; shown in the examples"
    )
    result.add_argument(
        "--target-language", metavar="CODE", help="default: that of the run, or the ending of the reference's name"
    )
    tries = whole_number(1, MOST_RESAMPLINGS)
    result.add_argument("--bootstrap", type=tries, default=1_000, metavar="N", help="resamplings; default: 1000")
    result.add_argument("--randomizations", type=tries, default=10_000, metavar="N", help="default: 10000")
    result.add_argument("--ter", action="store_true", help="compare TER too, which takes much longer")
    result.add_argument(
        "--examples",
        type=whole_number(0, MOST_EXAMPLES),
        default=5,
        metavar="N",
        help="sentences that differ most; default: 5",
    )
    result.add_argument("--json", type=Path, metavar="FILE", help="write the figures; - is the standard output")
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
        from translator import compare_files

        compare_files.run(options)

    return exit_code("compare", run)


if __name__ == "__main__":
    sys.exit(main())
