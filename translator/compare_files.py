"""What `python -m translator.compare` does once its options are known."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from translator.command import open_outputs
from translator.errors import UserError
from translator.evaluate_files import System, read_text, search_options, to_json
from translator.evaluation.metrics import METRICS, quick_metrics
from translator.evaluation.significance import Comparison, Difference, compare_outputs, largest_differences
from translator.evaluation.texts import guess_language, require_equal_lengths
from translator.runs.latest import resolve_run


def run(options: argparse.Namespace) -> None:
    is_about_runs = any(resolve_run(path).is_dir() for path in (options.a, options.b))
    if options.to and not is_about_runs:
        raise UserError(f"--to {options.to}: needs a run; {options.a} and {options.b} are finished translations")
    if search_options(options) and not is_about_runs:
        raise UserError(f"{options.a} and {options.b}: are finished translations; search options need a run")
    inputs = [options.a, options.b, options.source, *options.reference]
    with open_outputs(inputs, json=options.json) as write:
        _compare(options, write)


def _compare(options: argparse.Namespace, write: dict[str, Callable[[str], None]]) -> None:
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
        metrics=[*quick_metrics(), "ter"] if options.ter else None,
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
    folder = resolve_run(path)
    if not folder.is_dir():
        return read_text(path), None
    if sources is None:
        raise UserError(f"--source: is needed to translate with the run {path}")
    system = System([folder], options)
    return system.translate(sources), system.target_language


def _table(comparisons: Sequence[Comparison], name_a: str, name_b: str) -> str:
    lines = [f"A: {name_a}", f"B: {name_b}", "", "             A       B   B - A   p (bootstrap)  p (randomization)"]
    for one in comparisons:
        lines.append(
            f"{METRICS[one.metric].label:7}{one.score_a:7.2f} {one.score_b:7.2f} {one.score_b - one.score_a:+7.2f}"
            f"{one.p_bootstrap:16.4f}{one.p_randomization:19.4f}"
        )
    lines.append(
        "p: how likely a difference as large as this would be if A and B were equally good; usually, p below 0.05 is"
        " called significant."
    )
    return "\n".join([*lines, *(f"{METRICS[one.metric].label}: {one.signature}" for one in comparisons)])


def _examples(
    differences: Sequence[Difference],
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
