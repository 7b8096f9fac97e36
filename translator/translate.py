"""The `translate` command: text in, translated text out, line by line."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from translator.command import exit_code, positive

EPILOG = """
examples:
  translate input.txt -o output.txt                     with the newest run, runs/latest
  translate input.txt -o output.txt --model runs/first  with another one
  echo "A dog runs." | translate                        as a filter
  translate big.txt -o big.de --resume                  goes on where a killed translation stopped
  translate a.txt b.txt -o folder/                      folder/a.txt and folder/b.txt
  translate in.txt --format jsonl --nbest 5 --scores    five translations of each line, with log-probabilities

Every line of the input becomes a line of the output; blank lines stay blank. A line ends at a line feed only, and
carriage returns before it are kept.
"""


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(
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
    _add_output_options(result.add_argument_group("output"))
    _add_search_options(result.add_argument_group("search (default: as the run's configuration says)"))
    _add_machine_options(result.add_argument_group("input and machine"))
    return result


def _add_output_options(group: "argparse._ArgumentGroup") -> None:
    group.add_argument("--format", choices=["text", "tsv", "jsonl"], default="text", help="default: text")
    group.add_argument("--nbest", type=positive, default=1, metavar="N", help="so many translations of each line")
    group.add_argument("--scores", action="store_true", help="write the log-probability of each translation")
    group.add_argument(
        "--alignments", action="store_true", help="write word alignments from attention, as source-target pairs from 0"
    )
    group.add_argument(
        "--attention", type=Path, metavar="DIR", help="write attention maps: a PNG for each line, and index.html"
    )
    group.add_argument("--resume", action="store_true", help="go on with an output that was interrupted")
    group.add_argument("--stream", action="store_true", help="answer every line as soon as it has come in")
    group.add_argument("--quiet", action="store_true", help="no progress bar and no statistics")


def _add_search_options(group: "argparse._ArgumentGroup") -> None:
    group.add_argument("--beam", type=positive, metavar="K", help="beam size; 1 is greedy search")
    group.add_argument("--length-penalty", choices=["none", "average", "gnmt"], help="how scores are made comparable")
    group.add_argument("--alpha", type=float, help="exponent of the length penalty")
    group.add_argument(
        "--max-length-ratio", type=float, metavar="R", help="longest output, in pieces for a source piece"
    )
    group.add_argument("--max-length-extra", type=int, metavar="N", help="so many more pieces than the ratio gives")
    group.add_argument("--min-length", type=int, metavar="N", help="shortest output, in pieces; 0 allows an empty one")
    group.add_argument(
        "--min-length-ratio", type=float, metavar="R", help="shortest output, in pieces for a source piece"
    )
    group.add_argument("--no-repeat-ngram", type=int, metavar="N", help="no N pieces in a row come twice")
    group.add_argument("--repetition-penalty", type=float, metavar="P", help="above 1: words come again less often")
    group.add_argument(
        "--prefix", type=Path, metavar="FILE", help="what each translation must begin with; a line for each"
    )
    group.add_argument("--forbid", action="append", default=[], metavar="WORD", help="never write it; can be repeated")
    group.add_argument(
        "--sample", action="store_true", help="draw translations at random, as likely as the model thinks"
    )
    group.add_argument("--temperature", type=float, default=1.0, help="of the drawing; below 1 is more cautious")
    group.add_argument("--top-k", type=int, default=0, metavar="K", help="draw among the K likeliest pieces only")
    group.add_argument(
        "--top-p", type=float, default=1.0, metavar="P", help="draw among the likeliest pieces of share P"
    )
    group.add_argument("--seed", type=int, default=1, help="of the drawing; default: 1")


def _add_machine_options(group: "argparse._ArgumentGroup") -> None:
    group.add_argument("--split-sentences", action="store_true", help="translate the sentences of a line one by one")
    group.add_argument(
        "--errors", choices=["strict", "replace"], default="strict", help="what to do with invalid UTF-8"
    )
    group.add_argument("--batch-tokens", type=positive, metavar="N", help="source tokens translated together")
    group.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:N or mps; default: auto")
    group.add_argument("--threads", type=positive, metavar="N", help="processor threads; default: torch's choice")


def main(arguments: Sequence[str] | None = None) -> int:
    """Gives the exit code: 0, 2 for what the user can put right, 130 after Ctrl-C, 141 when nobody reads on."""
    options = parser().parse_args(arguments)

    def run() -> None:
        # Only now, so that --help and mistyped options are answered at once.
        from translator import translate_files

        translate_files.run(options)

    return exit_code("translate", run)


if __name__ == "__main__":
    sys.exit(main())
