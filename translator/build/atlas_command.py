"""What `python -m translator.atlas` does with its options."""

import argparse
import difflib
import json
import logging
from pathlib import Path

import torch

from translator.api import Translator
from translator.atlas.contents import CHAPTERS, chosen_chapters
from translator.atlas.material import Material, TrainedRun
from translator.atlas.page import atlas_page
from translator.build.report import ReportRequest, read_held_out
from translator.command import open_outputs, say
from translator.config import load_file
from translator.errors import UserError
from translator.progress_display import show_progress
from translator.report.material import HeldOut
from translator.runs.directions import Direction
from translator.runs.directory import RunDirectory
from translator.runs.latest import resolve_run
from translator.schema.rerank import NONE

WITHOUT_CORPORA = "figures that need the run's corpora are left out or come from the package"


def run(options: argparse.Namespace) -> None:
    if options.output is None and options.json is None:
        raise UserError("nothing to write; give the page with -o atlas.html, or --json FILE")
    _require_chapters(options.only)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    if options.threads:
        torch.set_num_threads(options.threads)
    with open_outputs([], output=options.output, json=options.json) as write:
        material = Material(
            quick=options.quick,
            run=load_trained_run("--run", options.run, "transformer"),
            lstm_run=load_trained_run("--lstm-run", options.lstm_run, "lstm"),
        )
        chapters = chosen_chapters(options.only)
        figures = {}
        with show_progress("atlas: computing", len(chapters), "chapters") as advance:
            for chapter in chapters:
                figures[chapter.name] = chapter.compute(material)
                advance(1)
        if "output" in write:
            write["output"](atlas_page(figures))
        if "json" in write:
            write["json"](json.dumps(figures, ensure_ascii=False) + "\n")
    if options.output is not None:
        say(f"{options.output}: {len(figures)} chapter{'s' * (len(figures) != 1)}")


def _require_chapters(names: list[str]) -> None:
    known = [chapter.name for chapter in CHAPTERS]
    for name in names:
        if name not in known:
            closest = difflib.get_close_matches(name, known, n=1)
            remedy = f"did you mean {closest[0]}?" if closest else f"the chapters are {', '.join(known)}"
            raise UserError(f"--only {name}: no such chapter; {remedy}")


def load_trained_run(option: str, path: Path | None, kind: str) -> TrainedRun | None:
    """The run that an option names, which must have this kind of model; None if the option is not given."""
    if path is None:
        return None
    try:
        folder = resolve_run(path)
        translator = Translator.load(folder, "cpu", rerank=[NONE])
    except UserError as error:
        raise UserError(f"{option} {error}") from error
    config = load_file(RunDirectory(folder).config)
    if config.model.kind != kind:
        other = {"--run": "--lstm-run", "--lstm-run": "--run"}[option]
        raise UserError(f"{option} {path}: is a run with model={config.model.kind}; give it as {other}")
    if config.data.reverse_target:
        raise UserError(
            f"{option} {path}: was trained with data.reverse_target=true, and the atlas shows models that write from "
            "left to right; give another run"
        )
    return TrainedRun(folder, config, translator, _held_out(folder, translator.direction))


def _held_out(folder: Path, direction: Direction) -> HeldOut | None:
    """None if the corpora of the run are gone: figures that need them are then left out."""
    try:
        config = load_file(RunDirectory(folder).config)
        return read_held_out(ReportRequest([folder]), config, direction, remedy=WITHOUT_CORPORA)[0]
    except UserError as error:
        logging.getLogger(__name__).warning("%s", error)
        return None
