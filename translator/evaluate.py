"""Scores a run, or a translation that exists already: `python -m translator.evaluate --help`."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from translator.command import exit_code

EPILOG = """
examples:
  python -m translator.evaluate --model runs/latest --source test.en --reference test.de
  python -m translator.evaluate --hypothesis output.de --source test.en --reference test.de
  python -m translator.evaluate --hypothesis output.de --reference one.de two.de --json scores.json
  python -m translator.evaluate --model runs/latest --source test.en --reference test.de --gold-alignment test.en-de.align
"""


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(
        prog="python -m translator.evaluate",
        description="BLEU, chrF, chrF++ and TER with signatures and confidence intervals.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = result.add_mutually_exclusive_group(required=True)
    what.add_argument("--model", type=Path, nargs="+", metavar="RUN", help="translate the source with this run, or ensemble")
    what.add_argument("--hypothesis", type=Path, metavar="FILE", help="score this translation")
    result.add_argument("--source", type=Path, metavar="FILE", help="needed with --model")
    result.add_argument("--reference", type=Path, nargs="+", required=True, metavar="FILE", help="one or several")
    result.add_argument("--target-language", metavar="CODE", help="default: as the run says, or as the reference's name ends")
    result.add_argument("--bootstrap", type=int, default=1_000, metavar="N", help="resamplings for the intervals; 0 = none")
    result.add_argument("--gold-alignment", type=Path, metavar="FILE", help="score the run's attention against it")
    result.add_argument("--output", type=Path, metavar="FILE", help="keep the run's translation")
    result.add_argument("--json", type=Path, metavar="FILE", help="write all figures; - is the standard output")
    result.add_argument("--beam", type=int, metavar="K", help="beam size; default: as the run says")
    result.add_argument("--device", default="auto", help="default: auto")
    result.add_argument("--threads", type=int, metavar="N", help="processor threads; default: torch's choice")
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    return exit_code("evaluate", lambda: run(options))


def run(options: argparse.Namespace) -> None:
    from translator.evaluation.report import Evaluation, evaluate

    evaluation: Evaluation = evaluate(options)
    if options.json:
        _write_json(options.json, evaluation.to_dict())
    if options.json is None or str(options.json) != "-":
        print(evaluation)


def _write_json(path: Path, report: dict[str, Any]) -> None:
    text = json.dumps(report, indent=2, ensure_ascii=False) + "\n"
    if str(path) == "-":
        sys.stdout.write(text)
    else:
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
