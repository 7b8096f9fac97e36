"""The longer measurements of the atlas: `python -m translator.atlas.measure NAME -o FILE`."""

import argparse
import importlib
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from translator.command import Parser, exit_code, open_outputs, positive, say
from translator.evaluate_files import to_json

# One module of this package each, with `add_options(parser)` and `measure(options) -> dict`.
MEASUREMENTS: tuple[str, ...] = ("bahdanau", "complexity", "extrapolation", "heads", "positions", "trainings")


def parser(name: str | None = None) -> argparse.ArgumentParser:
    """The command line, with the options of the measurement NAME."""
    result = Parser(
        prog="python -m translator.atlas.measure",
        description="Makes the data that the atlas ships: " + ", ".join(MEASUREMENTS) + ".",
    )
    result.add_argument("name", choices=MEASUREMENTS, metavar="NAME", help="what to measure")
    result.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="the measurement, as JSON")
    result.add_argument("--quick", action="store_true", help="smaller sizes and fewer repetitions")
    result.add_argument("--threads", type=positive, metavar="N", help="CPU threads; default: torch's choice")
    if name in MEASUREMENTS:
        importlib.import_module(f"translator.atlas.measure.{name}").add_options(result)
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)

    def run() -> None:
        options = parser(next((word for word in given if word in MEASUREMENTS), None)).parse_args(given)
        # Only now, so that --help and mistyped options are answered at once.
        import torch

        from translator.atlas.shipped import with_provenance

        if options.threads:
            torch.set_num_threads(options.threads)
        with open_outputs([], output=options.output) as write:
            module = importlib.import_module(f"translator.atlas.measure.{options.name}")
            command = shlex.join(["python", "-m", "translator.atlas.measure", *given])
            write["output"](to_json(with_provenance(command, module.measure(options))))
        say(f"{options.output}: {options.name}")

    return exit_code("atlas.measure", run)


if __name__ == "__main__":
    sys.exit(main())
