"""Scores a run or an existing translation: `python -m translator.evaluate --help`."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from translator.command import Parser, exit_code, open_outputs, positive, whole_number
from translator.schema.decode import SearchOptions
from translator.schema.flags import add_arguments, given, naming_flags

if TYPE_CHECKING:
    from translator.evaluation.alignment import AlignmentScores

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
    result.add_argument("--threads", type=positive, metavar="N", help="processor threads; default: torch's choice")
    add_arguments(result.add_argument_group("search (default: as the run's configuration says)"), SearchOptions)
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    return exit_code("evaluate", lambda: run(parser().parse_args(arguments)))


def run(options: argparse.Namespace) -> None:
    # Only now, so that --help and mistyped options are answered at once.
    from translator.errors import UserError
    from translator.evaluation.report import evaluate_texts

    if options.model and not options.source:
        raise UserError("--source: is needed to translate with --model")
    if options.gold_alignment and not options.model:
        raise UserError("--gold-alignment: needs --model, whose attention is scored")
    if given(options, SearchOptions) and not options.model:
        raise UserError("--hypothesis: is a finished translation; search options need --model")
    if options.output and not options.model:
        raise UserError("--output: keeps the translation of --model; with --hypothesis there is none")
    inputs = [options.source, options.hypothesis, options.gold_alignment, *options.reference]
    with open_outputs(inputs, output=options.output, json=options.json) as write:
        references = [read_text(path) for path in options.reference]
        sources = read_text(options.source) if options.source else None
        hypotheses, language, alignment = _outputs(options, sources, references)
        if "output" in write:
            write["output"]("".join(line + "\n" for line in hypotheses))
        evaluation = evaluate_texts(
            hypotheses, references, language, sources=sources, num_bootstrap=options.bootstrap, alignment=alignment
        )
        if "json" in write:
            write["json"](to_json(evaluation.to_dict()))
        if "" in write:
            write[""](f"{evaluation}\n")


def _outputs(
    options: argparse.Namespace, sources: list[str] | None, references: list[list[str]]
) -> "tuple[list[str], str, AlignmentScores | None]":
    """The translation to score, its language and, where asked for, how good the run's attention is."""
    from translator.errors import UserError
    from translator.evaluation.texts import guess_language, require_equal_lengths

    texts: dict[str, Sequence[str]] = dict(zip(map(str, options.reference), references, strict=True))
    if sources is not None:
        texts[str(options.source)] = sources
    if not options.model:
        hypotheses = read_text(options.hypothesis)
        require_equal_lengths({**texts, str(options.hypothesis): hypotheses})
        language = options.target_language or guess_language(options.reference)
        if language is None:
            raise UserError("--target-language: give the code, such as de or zh; BLEU needs to know how to find words")
        return hypotheses, language, None
    assert sources is not None
    require_equal_lengths(texts)
    system = System(options.model, options)
    hypotheses = system.translate(sources)
    alignment = None
    if options.gold_alignment:
        alignment = system.score_alignment(sources, references[0], options.gold_alignment)
    return hypotheses, options.target_language or system.target_language, alignment


def read_text(path: Path) -> list[str]:
    from translator.files.lines import read_lines

    return list(read_lines(path))


class System:
    """A run, or an ensemble of several, loaded to be evaluated."""

    def __init__(self, runs: Sequence[Path], options: argparse.Namespace) -> None:
        import torch

        from translator.api import Translator
        from translator.config import load_file
        from translator.kernels.allocator import keep_memory
        from translator.runs.latest import resolve_run

        if options.threads:
            torch.set_num_threads(options.threads)
        with naming_flags(SearchOptions):
            self.translator = Translator.load(runs, options.device, **given(options, SearchOptions))
        if self.translator.device.type == "cpu":
            keep_memory()
        self.target_language = load_file(resolve_run(runs[0]) / "config.yaml").data.target

    def translate(self, sources: Sequence[str]) -> list[str]:
        from translator.decoding.output import one_line

        with naming_flags(SearchOptions):
            return [one_line(line) for line in self.translator.translate(sources)]

    def score_alignment(self, sources: Sequence[str], targets: Sequence[str], gold: Path) -> "AlignmentScores":
        """Compares the attention for the reference translation with the true alignment."""
        from translator.evaluation.alignment import parse_pharaoh, score_alignments

        truth = [parse_pharaoh(line, str(gold), number) for number, line in enumerate(read_text(gold), start=1)]
        return score_alignments(self.translator.align(sources, targets), truth)


def to_json(report: dict[str, Any]) -> str:
    return json.dumps(report, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.exit(main())
