"""The report of a run, or of two side by side: `python -m translator.report --help`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from translator.command import Parser, add_direction, exit_code, positive

EPILOG = """
examples:
  python -m translator.report runs/latest -o report.html
  python -m translator.report runs/one runs/two -o comparison.html --json comparison.json
  python -m translator.report runs/latest --source news.en --reference news.de -o news.html
"""


def parser() -> argparse.ArgumentParser:
    result = Parser(
        prog="python -m translator.report",
        description="One HTML file about a run: scores, curves, errors, attention, data.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    result.add_argument("run", type=Path, metavar="RUN", help="the folder of a run")
    result.add_argument("other", type=Path, nargs="?", metavar="RUN2", help="another run to compare with")
    result.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="the page; default: report.html in the folder of RUN"
    )
    result.add_argument("--json", type=Path, metavar="FILE", help="write the same figures; - is the standard output")
    add_direction(result)
    result.add_argument(
        "--source", type=Path, metavar="FILE", help="evaluate the run on this text; default: its test or validation set"
    )
    result.add_argument("--reference", type=Path, metavar="FILE", help="the translation of --source")
    result.add_argument(
        "--gold-alignment",
        type=Path,
        metavar="FILE",
        help="gold word alignment; the demo corpus has one",
    )
    result.add_argument("--device", default="auto", help="default: auto")
    result.add_argument("--threads", type=positive, metavar="N", help="processor threads; default: torch's choice")
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    def run() -> None:
        options = parser().parse_args(arguments)
        # Only now, so that --help and mistyped options are answered at once.
        from translator.build import report_command

        report_command.run(options)

    return exit_code("report", run)


if __name__ == "__main__":
    sys.exit(main())
