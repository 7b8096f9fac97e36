"""What `python -m translator.evaluate` does once its options are known."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from translator.api import Translator
from translator.command import open_outputs
from translator.decoding.output import one_line
from translator.errors import UserError
from translator.evaluation.alignment import AlignmentScores, parse_pharaoh, score_alignments
from translator.evaluation.report import evaluate_texts
from translator.evaluation.texts import guess_language, require_equal_lengths
from translator.files.lines import read_lines
from translator.runs.directory import find_weights
from translator.runs.latest import resolve_run
from translator.schema.decode import SearchOptions
from translator.schema.flags import given, naming_flags
from translator.schema.rerank import RerankOptions


def run(options: argparse.Namespace) -> None:
    if options.model and not options.source:
        raise UserError("--source: is needed to translate with --model")
    if options.gold_alignment and not options.model:
        raise UserError("--gold-alignment: needs --model, whose attention is scored")
    if search_options(options) and not options.model:
        raise UserError("--hypothesis: is a finished translation; search options need --model")
    if options.to and not options.model:
        raise UserError(f"--to {options.to}: is for --model; give the language of --hypothesis with --target-language")
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
) -> tuple[list[str], str, AlignmentScores | None]:
    """The translation to score, its language and, where asked for, how good the run's attention is."""
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
    for run in options.model:
        find_weights(resolve_run(run), f"--model {run}")  # refuses what is not a run
    system = System(options.model, options)
    hypotheses = system.translate(sources)
    alignment = None
    if options.gold_alignment:
        alignment = system.score_alignment(sources, references[0], options.gold_alignment)
    return hypotheses, options.target_language or system.target_language, alignment


def search_options(options: argparse.Namespace) -> dict[str, Any]:
    """What the user asked for that is only about runs."""
    return given(options, SearchOptions) | given(options, RerankOptions)


def read_text(path: Path) -> list[str]:
    return list(read_lines(path))


class System:
    """A run, or an ensemble of several, loaded to be evaluated."""

    def __init__(self, runs: Sequence[Path], options: argparse.Namespace) -> None:
        if options.threads:
            torch.set_num_threads(options.threads)
        with naming_flags(SearchOptions, "device", "to"), naming_flags(RerankOptions):
            self.translator = Translator.load(runs, options.device, to=options.to, **search_options(options))
        self.translator.keep_memory()
        self.target_language = self.translator.direction.target

    def translate(self, sources: Sequence[str]) -> list[str]:
        with naming_flags(SearchOptions):
            return [one_line(line) for line in self.translator.translate(sources)]

    def score_alignment(self, sources: Sequence[str], targets: Sequence[str], gold: Path) -> AlignmentScores:
        """Compares the attention for the reference translation with the true alignment."""
        truth = [parse_pharaoh(line, str(gold), number) for number, line in enumerate(read_text(gold), start=1)]
        return score_alignments(self.translator.align(sources, targets), truth)


def to_json(report: dict[str, Any]) -> str:
    return json.dumps(report, indent=2, ensure_ascii=False) + "\n"
