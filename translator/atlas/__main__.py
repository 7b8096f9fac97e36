"""The atlas of attention: `python -m translator.atlas --help`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from translator.command import Parser, exit_code, positive

EPILOG = """
examples:
  python -m translator.atlas -o atlas.html
  python -m translator.atlas --run runs/transformer --lstm-run runs/lstm -o atlas.html
  python -m translator.atlas --only pooling --json -
"""


def parser() -> argparse.ArgumentParser:
    result = Parser(
        prog="python -m translator.atlas",
        description="A measured walk through the ideas of attention, as one HTML file that needs no network.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    result.add_argument("-o", "--output", type=Path, metavar="FILE", help="the page")
    result.add_argument("--json", type=Path, metavar="FILE", help="write the same figures; - is the standard output")
    result.add_argument("--run", type=Path, metavar="RUN", help="a trained Transformer, for the chapters that need one")
    result.add_argument("--lstm-run", type=Path, metavar="RUN", help="a trained LSTM, for the chapters that need one")
    result.add_argument("--quick", action="store_true", help="smaller sizes and fewer repetitions")
    result.add_argument(
        "--only", action="append", default=[], metavar="CHAPTER", help="this chapter only; can be given several times"
    )
    result.add_argument("--threads", type=positive, metavar="N", help="CPU threads; default: torch's choice")
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    def run() -> None:
        options = parser().parse_args(arguments)
        # Only now, so that --help and mistyped options are answered at once.
        from translator.build import atlas_command

        atlas_command.run(options)

    return exit_code("atlas", run)


if __name__ == "__main__":
    sys.exit(main())
