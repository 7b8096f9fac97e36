"""Compares two runs or two translations: `python -m translator.compare --help`."""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from translator.command import Parser, exit_code, open_outputs, positive, whole_number
from translator.evaluate import MOST_RESAMPLINGS
from translator.schema.decode import SearchOptions
from translator.schema.flags import add_arguments, given

if TYPE_CHECKING:
    from translator.evaluation.significance import Comparison, Difference

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
    result.add_argument("--threads", type=positive, metavar="N", help="processor threads; default: torch's choice")
    add_arguments(result.add_argument_group("search (default: as the run's configuration says)"), SearchOptions)
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    return exit_code("compare", lambda: run(parser().parse_args(arguments)))


def run(options: argparse.Namespace) -> None:
    # Only now, so that --help and mistyped options are answered at once.
    from translator.errors import UserError
    from translator.runs.latest import resolve_run

    if given(options, SearchOptions) and not any(resolve_run(path).is_dir() for path in (options.a, options.b)):
        raise UserError(f"{options.a} and {options.b}: are finished translations; search options need a run")
    inputs = [options.a, options.b, options.source, *options.reference]
    with open_outputs(inputs, json=options.json) as write:
        _compare(options, write)


def _compare(options: argparse.Namespace, write: dict[str, Callable[[str], None]]) -> None:
    from translator.errors import UserError
    from translator.evaluate import read_text, to_json
    from translator.evaluation.metrics import METRICS
    from translator.evaluation.significance import compare_outputs, largest_differences
    from translator.evaluation.texts import guess_language, require_equal_lengths

    references = [read_text(path) for path in options.reference]
    texts: dict[str, Sequence[str]] = dict(zip(map(str, options.reference), references, strict=True))
    sources = read_text(options.source) if options.source else None
    if sources is not None:
        texts[str(options.source)] = sources
    require_equal_lengths(texts)
    (output_a, language_a), (output_b, language_b) = (
        _output(path, sources, options) for path in (options.a, options.b)
    )
    for path, output in ((options.a, output_a), (options.b, output_b)):
        require_equal_lengths({**texts, str(path): output})
    language = options.target_language or language_a or language_b or guess_language(options.reference)
    if language is None:
        raise UserError("--target-language: give the code, such as de or zh; BLEU needs to know how to find words")
    comparisons = compare_outputs(
        output_a,
        output_b,
        references,
        language,
        metrics=METRICS if options.ter else None,
        num_bootstrap=options.bootstrap,
        num_randomizations=options.randomizations,
    )
    differences = largest_differences(output_a, output_b, references, options.examples)
    if "json" in write:
        examples = [{**asdict(d), "a": output_a[d.line], "b": output_b[d.line]} for d in differences]
        write["json"](to_json({"metrics": [c.to_dict() for c in comparisons], "examples": examples}))
    if "" in write:
        table = _table(comparisons, str(options.a), str(options.b))
        write[""](f"{table}\n{_examples(differences, (output_a, output_b), references, sources)}\n")


def _output(path: Path, sources: list[str] | None, options: argparse.Namespace) -> tuple[list[str], str | None]:
    """The lines of a file, or a run's translation together with its target language."""
    from translator.errors import UserError
    from translator.evaluate import System, read_text
    from translator.runs.latest import resolve_run

    folder = resolve_run(path)
    if not folder.is_dir():
        return read_text(path), None
    if sources is None:
        raise UserError(f"--source: is needed to translate with the run {path}")
    system = System([folder], options)
    return system.translate(sources), system.target_language


def _table(comparisons: "Sequence[Comparison]", name_a: str, name_b: str) -> str:
    from translator.evaluation.metrics import METRICS

    lines = [f"A: {name_a}", f"B: {name_b}", "", "             A       B   B - A   p (bootstrap)  p (randomization)"]
    for one in comparisons:
        lines.append(
            f"{METRICS[one.metric].label:7}{one.score_a:7.2f} {one.score_b:7.2f} {one.score_b - one.score_a:+7.2f}"
            f"{one.p_bootstrap:16.4f}{one.p_randomization:19.4f}"
        )
    lines.append(
        "p: how likely a difference as large as this would be if A and B were equally good; below 0.05 is usual."
    )
    return "\n".join([*lines, *(f"{METRICS[one.metric].label}: {one.signature}" for one in comparisons)])


def _examples(
    differences: "Sequence[Difference]",
    outputs: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    sources: Sequence[str] | None,
) -> str:
    lines = []
    for difference in differences:
        number = difference.line
        lines += ["", f"Line {number + 1}: chrF {difference.score_a:.1f} for A, {difference.score_b:.1f} for B"]
        lines += [f"  source     {sources[number]}"] if sources else []
        lines += [f"  reference  {reference[number]}" for reference in references]
        lines += [f"  A          {outputs[0][number]}", f"  B          {outputs[1][number]}"]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
