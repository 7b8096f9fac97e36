"""What `python -m translator.report` does with its options."""

import argparse
import logging

import torch

from translator.build.report import ReportRequest, load_material
from translator.command import open_outputs, say
from translator.errors import UserError
from translator.evaluate_files import to_json
from translator.report.gather import gather_figures
from translator.report.page import report_page
from translator.runs.directory import RunDirectory
from translator.runs.latest import resolve_run
from translator.schema.decode import SearchOptions
from translator.schema.flags import naming_flags


def run(options: argparse.Namespace) -> None:
    if (options.source is None) != (options.reference is None):
        given, missing = ("source", "reference") if options.source else ("reference", "source")
        raise UserError(f"--{given}: needs --{missing} beside it")
    runs = [options.run, *([options.other] if options.other else [])]
    output = options.output or RunDirectory(resolve_run(options.run)).report
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    if options.threads:
        torch.set_num_threads(options.threads)
    inputs = [options.source, options.reference, options.gold_alignment]
    with open_outputs(inputs, output=output, json=options.json) as write:
        request = ReportRequest(
            runs, options.source, options.reference, options.gold_alignment, options.device, options.to
        )
        with naming_flags(SearchOptions, "device", "to"):
            material = load_material(request)
        figures = gather_figures(*material)
        write["output"](report_page(figures))
        if "json" in write:
            write["json"](to_json(figures))
    number = "one run" if len(runs) == 1 else "two runs"
    say(f"{output}: {number}, {figures['held_out']['num_sentences']:,} sentences")
