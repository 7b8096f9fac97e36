"""Tunes a run's search on its validation set: `python -m translator.tune --help`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from translator.command import Parser, add_direction, exit_code, positive
from translator.schema.decode import Stop

EPILOG = """
examples:
  python -m translator.tune runs/latest --dry-run
  python -m translator.tune runs/latest --beam 4 5 8 --alpha 0.6 1.0 1.4 --stop first exact
  python -m translator.tune runs/en-de --rerank runs/de-en --rerank runs/en-de-seed2

The best setting is written into the run's config.yaml, and all scores with the setting before into its tuning.json.
With --rerank, other runs judge the hypotheses of the run's beam; their weights are written into tuning.json, and
`translate` uses them from then on.
"""


def parser() -> argparse.ArgumentParser:
    result = Parser(
        prog="python -m translator.tune",
        description="Chooses beam size, length penalty and, with --stop, stopping rule of a run on its validation set.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    result.add_argument("run", type=Path, metavar="RUN", help="directory of a training run")
    add_direction(result, default="all directions of the run, by their mean score")
    result.add_argument("--beam", type=positive, nargs="+", metavar="K", help="default: 1 3 5 8")
    result.add_argument(
        "--alpha",
        type=float,
        nargs="+",
        metavar="X",
        help="exponents of the length penalty; default: 0 0.5 1 1.5",
    )
    result.add_argument("--stop", choices=[stop.value for stop in Stop], nargs="+", help="default: the run's own rule")
    result.add_argument(
        "--rerank",
        action="append",
        metavar="RUN",
        help="tune the weight of this run, of the same or the opposite direction, for reranking; can be repeated",
    )
    result.add_argument("--metric", default="bleu", help="what decides: bleu, chrf or chrf_pp; default: bleu")
    result.add_argument("--dry-run", action="store_true", help="show the scores and change nothing")
    result.add_argument("--device", default="auto", help="default: auto")
    result.add_argument("--threads", type=positive, metavar="N", help="CPU threads; default: torch's choice")
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    def run() -> None:
        options = parser().parse_args(arguments)
        # Only now, so that --help and mistyped options are answered at once.
        from translator import tune_run

        tune_run.run(options)

    return exit_code("tune", run)


if __name__ == "__main__":
    sys.exit(main())
