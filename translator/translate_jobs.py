"""What the `translate` command reads and writes: its inputs and outputs, checked before any work begins."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from translator.decoding.output import working_files
from translator.errors import UserError
from translator.files.destinations import (
    STANDARD_STREAM,
    Destination,
    is_written_directly,
    protect_inputs,
    require_writable,
)
from translator.files.lines import open_text

Job = tuple[list[Path], Path]  # files, and the output that they go into


def find_jobs(options: argparse.Namespace) -> list[Job]:
    """Which files go into which output; what cannot be done, or would overwrite anything, is refused."""
    files: list[Path] = options.files or [STANDARD_STREAM]
    output = Path(options.output) if options.output else STANDARD_STREAM
    _check_combinations(options, files, output)
    prefixes = [options.prefix] if options.prefix else []
    prefixes += [Path(options.terms)] if getattr(options, "terms", "") else []
    for path in [*files, *prefixes]:
        if path != STANDARD_STREAM:
            open_text(path).close()  # a missing file is reported now, not after an hour
    if output.is_dir() or str(options.output).endswith(("/", os.sep)):
        if STANDARD_STREAM in files:
            raise UserError(f"-o {output}: is a directory; give a file for the translation of the standard input")
        jobs = [([path], output / path.name.removesuffix(".gz")) for path in files]
    else:
        jobs = [(files, output)]
    if options.prefix and len(jobs) > 1:
        raise UserError("--prefix: belongs to one output; translate the files one by one")
    destinations = [_destination(target) for _, target in jobs]
    targets = [destination.path.resolve() for destination in destinations]
    if len(set(targets)) < len(targets):
        raise UserError(f"-o {output}: two of the files have the same name and would overwrite each other")
    for folder in filter(None, attention_folders(options, jobs)):
        if not {folder.resolve(), *folder.resolve().parents}.isdisjoint(targets):
            raise UserError(f"--attention {options.attention}: {folder} is also written by -o; give another folder")
        destinations += [Destination("--attention", folder / name) for name in ("index.html", "maps.html")]
    protect_inputs(destinations, [*files, *prefixes])
    for destination in destinations:
        require_writable(destination)
    return jobs


def attention_folders(options: argparse.Namespace, jobs: Sequence[Job]) -> list[Path | None]:
    """Where the pages of each output go: its lines are numbered from 1, so each of several has a folder of its own."""
    if options.attention is None:
        return [None] * len(jobs)
    if len(jobs) == 1:
        return [options.attention]
    return [options.attention / output.name for _, output in jobs]


def _check_combinations(options: argparse.Namespace, files: Sequence[Path], output: Path) -> None:
    """Refuses options that contradict each other."""
    if options.resume and output == STANDARD_STREAM:
        raise UserError("--resume: needs -o FILE, since what went to the standard output cannot be found again")
    if options.resume and is_written_directly(output):
        raise UserError(f"--resume: {output} is a device or a pipe; what went there cannot be found again")
    if options.resume and options.attention:
        raise UserError("--resume: cannot be used together with --attention; translate the whole text again")
    if options.prefix == STANDARD_STREAM:
        raise UserError("--prefix -: prefixes are not read from the standard input; give a file")
    if files.count(STANDARD_STREAM) > 1:
        raise UserError("-: the standard input can be read only once")
    if STANDARD_STREAM in files and sys.stdin is None:
        raise UserError("standard input: is closed; give a file to translate")


def _destination(output: Path) -> Destination:
    is_file = output != STANDARD_STREAM and not is_written_directly(output)
    return Destination("-o", output, working_files(output) if is_file else ())
