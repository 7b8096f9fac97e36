"""The `translate-serve` command: translation over HTTP."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from translator.command import Parser, exit_code, positive
from translator.schema.decode import SearchOptions
from translator.schema.flags import add_arguments
from translator.schema.rerank import RerankOptions
from translator.schema.serve import ServerOptions

EPILOG = """
examples:
  translate-serve                                          the newest run, runs/latest, on http://127.0.0.1:8000
  translate-serve --model runs/en-de --model runs/de-en    two directions
  translate-serve --engine auto --split-sentences          faster on a CPU; for lines of several sentences

The server offers LibreTranslate's interface (/translate), DeepL's (/v2/translate) and its own (/v1/translate); a page
to try it out is at /. After Ctrl-C or SIGTERM it answers the requests it has accepted and exits; a second one exits at
once.
"""


def parser() -> argparse.ArgumentParser:
    result = Parser(
        prog="translate-serve",
        description="Translates over HTTP.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    result.add_argument(
        "--model",
        type=Path,
        action="append",
        metavar="RUN",
        help="directory of a training run, or of an export to CTranslate2; one for each pair of languages; "
        "default: runs/latest",
    )
    add_arguments(result.add_argument_group("server and limits"), ServerOptions, show_defaults=True)
    search = result.add_argument_group("search (default: as the run's configuration says)")
    add_arguments(search, SearchOptions)
    add_arguments(search, RerankOptions)
    machine = result.add_argument_group("input and machine")
    machine.add_argument("--split-sentences", action="store_true", help="translate the sentences of a line one by one")
    machine.add_argument(
        "--engine",
        choices=["torch", "ctranslate2", "auto"],
        default="torch",
        help="search engine: torch, ctranslate2 (faster on CPUs), or auto = ctranslate2 where possible; default: torch",
    )
    machine.add_argument("--int8", action="store_true", help="compute in 8 bits; faster, less exact; needs ctranslate2")
    machine.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:N or mps; default: auto")
    machine.add_argument("--threads", type=positive, metavar="N", help="CPU threads; default: torch's choice")
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code: 0 once a signal has ended the server, 2 after a user error."""

    def run() -> None:
        options = parser().parse_args(arguments)
        # Only now, so that --help and mistyped options are answered at once.
        from translator.export.extras import load

        load("translator.serve.launch", "the server", "serve").run(options)

    return exit_code("translate-serve", run)
