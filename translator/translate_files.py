"""What the `translate` command does once its options are known."""

import argparse
import hashlib
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from tqdm import tqdm

from translator.api import Translator
from translator.command import say
from translator.decoding.chunks import available_chunks, chunks
from translator.decoding.interfaces import Translation
from translator.decoding.output import DirectOutput, Format, OutputFile
from translator.decoding.target_order import refuse
from translator.engines.choice import AUTO
from translator.errors import UserError
from translator.files.destinations import STANDARD_STREAM, Destination, is_written_directly
from translator.files.fingerprints import fingerprint_file
from translator.files.lines import Line, iterate_lines, open_text
from translator.runs.directory import RunDirectory, find_weights
from translator.runs.latest import resolve_run
from translator.schema.decode import SearchOptions
from translator.schema.flags import given, naming_flags
from translator.schema.rerank import RerankOptions
from translator.translate_jobs import attention_folders, find_jobs

if TYPE_CHECKING:
    from translator.translate_pages import TranslationPages

DEFAULT_MODEL = Path("runs/latest")
SHOWN_WARNINGS = 5


def run(options: argparse.Namespace) -> None:
    """Translates the files that the options name; raises UserError for user errors."""
    jobs = find_jobs(options)
    translator, settings = load_translator(options, options.model or [DEFAULT_MODEL])
    if not options.quiet and (note := engine_note(options, translator)):
        say(f"Note: {note}.")
    session = Session(options, translator)
    for (inputs, output), folder in zip(jobs, attention_folders(options, jobs), strict=True):
        session.translate(inputs, output, settings, folder)
    session.report()


def load_translator(options: argparse.Namespace, given_models: Sequence[Path]) -> tuple[Translator, dict[str, Any]]:
    """The runs as the options say, and everything that their output depends on."""
    if options.threads:
        torch.set_num_threads(options.threads)
    models = [resolve_run(model) for model in given_models]
    weights = [find_weights(model, f"--model {model}") for model in models]
    for model in models:
        if RunDirectory(model).is_unfinished:
            say(f"Note: {model} has not finished training; these are its best weights so far.")
    with naming_flags(SearchOptions, "device", "engine", "int8", "to"), naming_flags(RerankOptions):
        translator = Translator.load(
            models,
            options.device,
            to=options.to,
            engine=options.engine,
            int8=options.int8,
            **given(options, SearchOptions),
            **given(options, RerankOptions),
        )
    translator.keep_memory()
    if options.prefix and translator.reverse_target:
        with naming_flags(SearchOptions, "prefix"):
            refuse("prefix", options.prefix)
    translator.split_sentences = options.split_sentences
    return translator, _settings(options, translator, weights)


def engine_note(options: argparse.Namespace, translator: Translator) -> str:
    """What `--engine auto` has chosen, and that a beam ends by another rule than the run's; empty if neither is so."""
    engine = translator.engine
    parts = [f"--engine auto uses {'torch' if engine is None else engine.name}"] if options.engine == AUTO else []
    if engine is not None and translator.options.for_candidates().beam_size > 1:
        rule, own = translator.options.stop, translator.config.decode.stop
        if rule is not own and "stop" not in given(options, SearchOptions):
            subject = "its beam" if parts else f"the beam of {engine.name}"
            parts.append(f"{subject} ends by --stop {rule}, where the run's own rule is {own}")
    return "; ".join(parts)


def _settings(options: argparse.Namespace, translator: Translator, weights: Sequence[Path]) -> dict[str, Any]:
    """Everything that the output depends on, for JSON: a resumed translation must have the same."""
    models = [[str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns] for path in weights]
    names = ("format", "scores", "alignments", "split_sentences", "errors")
    settings: dict[str, Any] = {name: getattr(options, name) for name in names}
    prefix = hashlib.sha256(options.prefix.read_bytes()).hexdigest() if options.prefix else None
    search = asdict(translator.options)
    del search["batch_tokens"]  # it only changes the speed
    if translator.reranker is not None:
        settings["rerank"] = translator.reranker.identity
    if translator.options.terms:
        settings["terms"] = fingerprint_file(Path(translator.options.terms)).sha256
    if translator.engine is not None:
        settings["engine"] = translator.engine.name
    if translator.source_tags:
        settings["tags"] = translator.source_tags  # they decide about the language
    return settings | {"models": models, "prefix": prefix, "search": search}


class Session:
    """Translates one text after another and counts lines, pieces and seconds."""

    def __init__(self, options: argparse.Namespace, translator: Translator) -> None:
        self.options = options
        self.translator = translator
        num_best = translator.options.num_hypotheses
        self.format = Format(options.format, num_best, options.scores, options.alignments)
        self.num_lines = self.num_sentences = self.num_pieces = self.num_split = self.num_left = 0
        self.num_without_terms = 0
        self.seconds = 0.0
        self.pages: TranslationPages | None = None  # of the present output
        self.bar: tqdm | None = None

    def translate(
        self, inputs: Sequence[Path], output: Path, settings: dict[str, Any], attention: Path | None = None
    ) -> None:
        """Writes the translations to `output`, and pages about them into the folder `attention`."""
        self.pages = _open_pages(attention, self.translator)
        lines = self._lines(inputs)
        digest = hashlib.sha256()
        file = self.open(output, settings)
        first_line = file.num_lines
        sizes = [path.stat().st_size for path in inputs if path != STANDARD_STREAM and path.suffix != ".gz"]
        total = sum(sizes) if len(sizes) == len(inputs) else None
        silent = self.options.quiet or not sys.stderr.isatty()
        self.bar = tqdm(total=total, unit="B", unit_scale=True, disable=silent, leave=False)
        try:
            for line in islice(lines, first_line):  # translated before the interruption
                self._advance(digest, [line])
            if isinstance(file, OutputFile) and file.resumed:
                file.check_input(digest.hexdigest())
                say(f"Continuing after line {first_line} of {output}.")
            prefixes = self._prefixes(first_line)
            if not first_line and self.format.heading:
                file.write(self.format.heading, 0, digest.hexdigest())
            number = first_line
            for chunk in available_chunks(lines) if self.options.stream else chunks(lines):
                text = self._translate_chunk(chunk, number, prefixes)
                number += len(chunk)
                self._advance(digest, chunk)
                file.write(text, len(chunk), digest.hexdigest())
            if prefixes is not None and next(prefixes, None) is not None:
                say(f"Warning: {self.options.prefix} has more lines than the input.")
            file.finish()
        finally:
            self.bar.close()
            file.close()
        if self.pages is not None:
            self.pages.close()
            if self.pages.note:
                say(f"Note: {self.pages.path}: {self.pages.note}")

    def open(self, output: Path, settings: dict[str, Any]) -> DirectOutput | OutputFile:
        if output == STANDARD_STREAM or is_written_directly(output):
            return DirectOutput(Destination("-o", output))
        return OutputFile(output, settings, self.options.resume)

    def _advance(self, digest: Any, lines: Sequence[Line]) -> None:
        for line in lines:
            digest.update(line.raw)
        assert self.bar is not None
        self.bar.update(sum(len(line.raw) for line in lines))

    def _prefixes(self, first_line: int) -> Iterator[str] | None:
        if self.options.prefix is None:
            return None
        lines = self._lines([self.options.prefix])
        return (line.text.strip() for line in islice(lines, first_line, None))

    def _lines(self, paths: Sequence[Path]) -> Iterator[Line]:
        """The lines of several files as if they were one."""
        replace_errors = self.options.errors == "replace"
        for path in paths:
            name = "standard input" if path == STANDARD_STREAM else str(path)
            with nullcontext(sys.stdin.buffer) if path == STANDARD_STREAM else open_text(path) as file:
                yield from iterate_lines(
                    file, name, replace_errors=replace_errors, remedy=", or go on with --errors replace"
                )

    def _translate_chunk(self, chunk: Sequence[Line], number: int, prefixes: Iterator[str] | None) -> str:
        started = time.perf_counter()
        chosen = list(islice(prefixes, len(chunk))) if prefixes is not None else None
        if chosen is not None and len(chosen) < len(chunk):
            raise UserError(
                f"--prefix {self.options.prefix}: has {number + len(chosen)} lines and the input has more; give a line "
                "for each, blank where there is no prefix"
            )
        with naming_flags(SearchOptions):
            translations = self.translator.translate_fully(
                [line.text for line in chunk],
                prefixes=chosen,
                need_scores=self.options.scores or self.pages is not None,
                need_alignment=self.options.alignments,
                need_attention=self.pages is not None,
                first_line=number,
            )
        self.seconds += time.perf_counter() - started
        for offset, translation in enumerate(translations):
            self._count(number + offset, translation)
            if self.pages is not None:
                self.pages.add(number + offset, chunk[offset].text, chosen[offset] if chosen else "", translation)
        written = zip(chunk, translations, strict=True)
        return "".join(self.format.write(number + i, line, result) for i, (line, result) in enumerate(written))

    def _count(self, number: int, translation: Translation) -> None:
        self.num_lines += 1
        self.num_sentences += translation.num_source_pieces > 0
        self.num_pieces += translation.outputs[0].num_pieces
        self.num_left += translation.left_by_engine
        self.num_without_terms += bool(translation.terms_left_out)
        if translation.terms_left_out and self.num_without_terms <= SHOWN_WARNINGS:
            with tqdm.external_write_mode(file=sys.stderr):
                say(
                    f"Warning: line {number + 1} has no room for {', '.join(translation.terms_left_out)} within its "
                    "maximum length; raise --max-length-extra."
                )
        if translation.num_parts > 1 and not self.options.split_sentences:
            self.num_split += 1
            if self.num_split <= SHOWN_WARNINGS:
                with tqdm.external_write_mode(file=sys.stderr):
                    say(
                        f"Warning: line {number + 1} has {translation.num_source_pieces} pieces, more than the "
                        f"{self.translator.max_pieces} of the longest training sentences; it was translated in "
                        f"{translation.num_parts} parts."
                    )

    def report(self) -> None:
        if self.num_split > SHOWN_WARNINGS:
            say(f"Warning: {self.num_split} long lines in all were translated in parts.")
        if self.num_without_terms > SHOWN_WARNINGS:
            say(f"Warning: {self.num_without_terms} lines in all had no room for their terms.")
        if self.num_left and not self.options.quiet:
            assert self.translator.engine is not None
            say(
                f"Note: {self.num_left:,} lines were searched by torch instead of {self.translator.engine.name}, "
                "which has no forced prefixes and cannot be sure of every beam that reaches its length limit."
            )
        if not self.options.quiet:
            seconds = max(self.seconds, 1e-9)
            lines = "1 line" if self.num_lines == 1 else f"{self.num_lines:,} lines"
            say(
                f"Translated {lines} in {self.seconds:.1f} s: {self.num_sentences / seconds:,.0f} sentences/s, "
                f"{self.num_pieces / seconds:,.0f} tokens/s."
            )


def _open_pages(folder: Path | None, translator: Translator) -> "TranslationPages | None":
    if folder is None:
        return None
    from translator.translate_pages import TranslationPages  # matplotlib is slow to load, and only needed here

    direction = translator.direction
    return TranslationPages(folder, translator, languages=(direction.source, direction.target))
