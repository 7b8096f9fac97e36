"""What `python -m translator.export` does once its options are known."""

import argparse
import time
from collections.abc import Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from string import ascii_letters, digits
from typing import NoReturn

import torch

from translator.build.data import open_splits
from translator.command import say
from translator.errors import UserError
from translator.export.extras import load_target
from translator.export.folder import check_free, export_folder
from translator.export.model_card import model_card
from translator.export.sample import Comparison, Sample, SampleSearch, Translate, compare, make_sample
from translator.files.lines import read_lines
from translator.runs.directions import directions_of
from translator.runs.directory import RunDirectory
from translator.runs.latest import resolve_run
from translator.runs.loading import LoadedRun, load_run
from translator.runs.reranking import tuned_judges
from translator.runs.translation import normalization

DEFAULT_BEAM = 5
SHOWN = 3  # differing lines
LICENSE_CHARACTERS = frozenset(ascii_letters + digits + "-._")


def run(options: argparse.Namespace) -> None:
    """Exports, verifies and reports; raises UserError for user errors."""
    _check_combinations(options)
    check_free(options.output)
    target = load_target(options.to)
    path = resolve_run(options.run)
    loaded = load_run(path, torch.device("cpu"))
    target.supported(loaded.model)
    _check_order(path, loaded)
    _check_tags(options, loaded)
    _note_judges(path)
    origin = f"--sample {options.sample}" if options.sample else "the run's validation set"
    sample = make_sample(loaded, _sample_pairs(options, loaded), options.sample_size, origin=origin)
    details = {"to": options.to, "run": path.resolve().name, "quantization": options.quantization}
    with export_folder(options.output, details) as folder:
        say(f"Writing {options.output} …")
        target.write(loaded, folder, **({"quantization": options.quantization} if options.to == "ctranslate2" else {}))
        is_exact = options.quantization == "float32"
        tags = loaded.tokenizer.source_pieces(directions_of(loaded.config, loaded.tokenizer)[0].tags)
        translate = partial(target.translate, folder, **({"tags": tags} if tags else {}))
        checks = [] if is_exact else [target.precision(folder, options.quantization)]
        for check in checks:
            say(f"  {check}")
        comparisons = _compare_all(loaded, sample, translate, is_exact)
        if is_exact and any(comparison.differing for comparison in comparisons):
            _refuse(sample, comparisons)
        checks += [str(comparison) for comparison in comparisons]
        if options.shortlist:
            checks += _add_shortlist(loaded, sample, folder)
        usage = target.usage(loaded, **({"shortlist": True} if options.shortlist else {}))
        card = model_card(
            RunDirectory(path),
            loaded.config,
            target=options.to,
            usage=usage.replace("FOLDER", options.output.resolve().name),
            normalization=target.NORMALIZATION,
            packages=target.PACKAGES,
            checks=checks,
            license_id=options.license,
        )
        (folder / "README.md").write_text(card, encoding="utf-8")
    print(f"{options.output}: {options.to}, {options.quantization}, {_size(options.output) / 1e6:.1f} MB")


def _check_combinations(options: argparse.Namespace) -> None:
    if options.to != "ctranslate2":
        if options.quantization != "float32":
            raise UserError(f"--quantization {options.quantization}: for --to ctranslate2 only")
        if options.shortlist:
            raise UserError("--shortlist: for --to ctranslate2 only")
    if options.reference and not options.sample:
        raise UserError(f"--reference {options.reference}: needs --sample, the lines that it translates")
    if not options.license or not set(options.license) <= LICENSE_CHARACTERS:
        raise UserError(f"--license {options.license}: give an identifier such as apache-2.0 or cc-by-4.0")


def _check_order(path: Path, loaded: LoadedRun) -> None:
    if loaded.config.data.reverse_target:
        raise UserError(
            f"{path}: was trained with data.reverse_target=true, and other programs would show its translations with "
            "their pieces in reverse order; export another run"
        )


def _check_tags(options: argparse.Namespace, loaded: LoadedRun) -> None:
    """Only the program for CTranslate2 puts a tag in front of the source, and shortlists do not support tags."""
    tags = ", ".join(loaded.tokenizer.tag_ids)
    if tags and options.to != "ctranslate2":
        raise UserError(f"--to {options.to}: the run's vocabulary has tags ({tags}), which only ctranslate2 can export")
    if tags and options.shortlist:
        raise UserError(f"--shortlist: not for a run whose vocabulary has tags ({tags})")


def _note_judges(path: Path) -> None:
    """Says that what the run translates with other runs' help the export translates alone."""
    judges, _ = tuned_judges(path)
    if judges:
        names = ", ".join(judge.run for judge in judges)
        say(f"Note: {path} has judges from `tune --rerank` ({names}); an export has none, so translations may differ.")


# ---- the sample ----


def _sample_pairs(options: argparse.Namespace, loaded: LoadedRun) -> Sequence[tuple[str, str | None]]:
    """The lines of --sample, else the pairs of the run's validation set."""
    if options.sample:
        lines = list(read_lines(options.sample))
        references: list[str | None] = [*read_lines(options.reference)] if options.reference else [None] * len(lines)
        if len(references) != len(lines):
            raise UserError(
                f"--reference {options.reference}: has {len(references)} lines, but --sample {options.sample} has "
                f"{len(lines)}; give one reference per line"
            )
        return list(zip(lines, references, strict=True))
    try:
        return list(open_splits(loaded.config.data).valid)
    except (UserError, OSError) as error:
        raise UserError(
            f"the run's validation set cannot be read ({error}); give other lines with --sample FILE"
        ) from None


def _compare_all(loaded: LoadedRun, sample: Sample, translate: Translate, is_exact: bool) -> list[Comparison]:
    comparisons = []
    for beam_size in (1, max(2, min(loaded.config.decode.beam_size, DEFAULT_BEAM))):
        comparisons.append(compare(loaded, sample, translate, SampleSearch(beam_size), is_exact=is_exact))
        say(f"  {comparisons[-1]}")
    if not all(comparison.is_telling for comparison in comparisons):
        say(
            "Warning: the model writes the same for many lines or does not end its translations, so comparing them "
            "shows little; train it for longer and export it again, or give other lines with --sample FILE."
        )
    return comparisons


def _refuse(sample: Sample, comparisons: Sequence[Comparison]) -> NoReturn:
    """Fails, after showing a few of the differing lines."""
    for comparison in comparisons:
        for line in comparison.differing[:SHOWN]:
            ours, theirs = comparison.outputs[line]
            say(f"  {comparison.search.name}, {sample.lines[line]!r}: the run {ours!r}, the export {theirs!r}")
    raise UserError(
        "the exported model translates differently from the run, so nothing was written; please report it with the "
        "lines above"
    )


# ---- the shortlist ----


def _add_shortlist(loaded: LoadedRun, sample: Sample, folder: Path) -> list[str]:
    """Writes the vocabulary map and measures what it changes."""
    from translator.export.ctranslate2 import ExportedModel
    from translator.export.shortlist import FILE, write_shortlist

    normalize = normalization(loaded.config) or (lambda text: text)
    pairs = chain.from_iterable(corpus for corpus, _ in open_splits(loaded.config.data).train)
    normalized = ((normalize(source), normalize(target)) for source, target in pairs)
    say("Learning the shortlist from the training corpus …")
    num_pairs = write_shortlist(normalized, loaded.tokenizer, folder / FILE)
    search = SampleSearch(min(loaded.config.decode.beam_size, DEFAULT_BEAM))
    model = ExportedModel(folder)  # loading it is not measured
    outputs, seconds = [], []
    for use_shortlist in (False, True):
        model.translate(sample.lines[:1], search, use_shortlist=use_shortlist)  # warm-up
        start = time.perf_counter()
        outputs.append(model.translate(sample.lines, search, use_shortlist=use_shortlist))
        seconds.append(time.perf_counter() - start)
    num_equal = sum(one.text == other.text for one, other in zip(*outputs, strict=True))
    check = (
        f"shortlist from {num_pairs:,} pairs (use_vmap=True): {num_equal} of {len(sample.lines)} translations equal, "
        f"{seconds[0] / seconds[1]:.2f} times as fast"
    )
    say(f"  {check}")
    return [check]


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
