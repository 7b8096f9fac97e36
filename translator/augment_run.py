"""What `python -m translator.augment` does once its options are known.

All translations are first written to PREFIX.translations.jsonl.partial, which an interrupted command continues with
--resume. Once they are complete the pairs to keep are chosen, the corpus and its manifest are written, and the
translations are removed.
"""

import argparse
import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from translator import __version__
from translator.api import Translator
from translator.command import say
from translator.config import Config, load_file
from translator.data.cleaning import Cleaning
from translator.data.synthetic import Candidate, Selection, excluded_texts
from translator.data.tokenizer import Tokenizer
from translator.decoding.output import OutputFile, one_line, working_files
from translator.errors import UserError
from translator.files.atomic import atomic_file, write_json
from translator.files.destinations import STANDARD_STREAM, Destination, protect_inputs, require_writable
from translator.files.explain import explain_write_errors
from translator.files.fingerprints import fingerprint_file, sha256
from translator.files.lines import count_lines, open_text, read_lines
from translator.runs.directions import choose_direction
from translator.runs.directory import RunDirectory, find_weights, git_commit, versions
from translator.runs.latest import resolve_run
from translator.schema.augment import AugmentOptions, Kind
from translator.schema.flags import given, naming_flags
from translator.translate_files import Session, load_translator

FORMAT = 1  # of the manifest


@dataclass(frozen=True)
class Places:
    """The files of a corpus in two languages, and the translations that it is made from."""

    prefix: Path
    source: str
    target: str

    def side(self, language: str) -> Path:
        return self.prefix.with_name(f"{self.prefix.name}.{language}")

    @property
    def manifest(self) -> Path:
        return self.side("manifest.json")

    @property
    def translations(self) -> Path:
        return self.side("translations.jsonl")

    @property
    def results(self) -> list[Path]:
        return [self.side(self.source), self.side(self.target), self.manifest]


class KeptTranslations(OutputFile):
    """Translations that are kept, once complete, until the corpus has been written."""

    def finish(self) -> None:
        with explain_write_errors(self.partial):
            self.file.close()
        if self.num_lines == 0:
            self.remove()

    def remove(self) -> None:
        self.partial.unlink(missing_ok=True)
        self.progress_file.unlink(missing_ok=True)


class AugmentSession(Session):
    kept: KeptTranslations

    def open(self, output: Path, settings: dict[str, Any]) -> KeptTranslations:
        self.kept = KeptTranslations(output, settings, self.options.resume)
        return self.kept


def run(options: argparse.Namespace) -> None:
    with naming_flags(AugmentOptions):
        choice = AugmentOptions().changed(**given(options, AugmentOptions))
    models = [resolve_run(model) for model in options.model]
    weights = [find_weights(model, f"--model {model}") for model in models]
    config = load_file(models[0] / "config.yaml")
    with naming_flags(AugmentOptions, "to"):
        direction = choose_direction(config, Tokenizer.load(RunDirectory(models[0]).tokenizer), options.to, models[0])
    languages = (direction.source, direction.target)
    if options.kind == Kind.back:  # the corpus is for a model of the other direction
        languages = (direction.target, direction.source)
    places = Places(options.output, *languages)
    _check_files(options, places)
    translator, settings = load_translator(options, models)
    if options.reference and translator.options.num_hypotheses < 2:
        raise UserError("--reference: chooses among several translations of a line; add --nbest 8")
    session = AugmentSession(options, translator)
    session.translate(options.files, places.translations, settings)
    session.report()
    if session.kept.num_lines == 0:
        raise UserError(f"{', '.join(map(str, options.files))}: nothing to translate; give a text that is not empty")
    selection = _selection(options, choice, config)
    num_read, num_kept = _write_corpus(options, choice, places, selection, session.kept.partial)
    corpus = {"kind": options.kind, "source": places.source, "target": places.target}
    made_by = [{"run": str(model), "weights_sha256": sha256(path)} for model, path in zip(models, weights, strict=True)]
    counts = {"lines": session.kept.num_lines, "translations": num_read, "kept": num_kept}
    with explain_write_errors(places.manifest):
        write_json(
            places.manifest,
            {
                "format": FORMAT,
                **corpus,
                "counts": {**counts, "dropped": dict(sorted(selection.dropped.items()))},
                "models": made_by,
                "inputs": [{"role": role, **asdict(fingerprint_file(path))} for role, path in _inputs(options)],
                "files": {path.name: sha256(path) for path in places.results[:2]},
                "search": asdict(translator.options),
                "rerank": translator.reranker.identity if translator.reranker else None,
                "options": {
                    **asdict(choice),
                    "cleaning": asdict(selection.cleaning),  # as it was used: with the maximum ratio that counts
                    "split_sentences": options.split_sentences,
                    "engine": _engine(translator),
                },
                "versions": {"translator": __version__, **versions()},
                "git_commit": git_commit(),
            },
        )
    session.kept.remove()
    _report(options, places, counts, selection)


def _inputs(options: argparse.Namespace) -> list[tuple[str, Path]]:
    """All files that are read, each with what it is for."""
    paths: dict[str, list[Path]] = {
        "text": options.files,
        "reference": [options.reference] if options.reference else [],
        "exclude": options.exclude,
        "terms": [Path(options.terms)] if getattr(options, "terms", "") else [],
    }
    return [(role, path) for role, files in paths.items() for path in files]


def _engine(translator: Translator) -> str:
    return "torch" if translator.engine is None else translator.engine.name


def _check_files(options: argparse.Namespace, places: Places) -> None:
    """Refuses early what would fail later or overwrite something."""
    if places.prefix.is_dir():
        raise UserError(
            f"-o {places.prefix}: is a folder; give the beginning of the files' names, such as "
            f"{places.prefix / options.kind}"
        )
    inputs = [path for _, path in _inputs(options)]
    for path in inputs:
        if path == STANDARD_STREAM:
            raise UserError("-: the standard input cannot be read twice; give a file")
        open_text(path).close()
    partial_files = working_files(places.translations)
    destinations = [Destination("-o", path) for path in (*places.results, *partial_files)]
    protect_inputs(destinations, inputs)
    for destination in destinations:
        require_writable(destination)
    interrupted = all(path.exists() for path in partial_files)
    if interrupted and not (options.resume or options.overwrite):
        raise UserError(
            f"-o {places.prefix}: {partial_files[0]} was interrupted; continue it with --resume, or start again with "
            "--overwrite"
        )
    if not options.overwrite and not (options.resume and interrupted):
        for path in places.results:
            if path.exists():
                raise UserError(
                    f"-o {places.prefix}: {path} exists; give another prefix, or replace it with --overwrite"
                )
    if options.reference:
        if options.kind != Kind.distill:
            raise UserError(f"--reference: only for --kind distill, and this is --kind {options.kind}")
        num_lines, num_references = sum(map(count_lines, options.files)), count_lines(options.reference)
        if num_lines != num_references:
            raise UserError(
                f"--reference {options.reference}: has {num_references} lines and the text to translate has "
                f"{num_lines}; they must be the two sides of a corpus"
            )


def _selection(options: argparse.Namespace, choice: AugmentOptions, config: Config) -> Selection:
    cleaning = Cleaning(**vars(config.data.cleaning))
    if choice.max_ratio is not None:
        cleaning = replace(cleaning, max_ratio=choice.max_ratio)
    excluded: set[bytes] = set()
    for path in options.exclude:
        excluded |= excluded_texts(read_lines(path))
    return Selection(cleaning, options.kind != Kind.back, choice.min_score, choice.keep_share, excluded)


def _write_corpus(
    options: argparse.Namespace, choice: AugmentOptions, places: Places, selection: Selection, translations: Path
) -> tuple[int, int]:
    """Writes both sides of the corpus; returns the number of translations and the number of pairs kept."""
    read = partial(candidates, translations)
    if options.reference:
        read = partial(_closest, translations, options.reference, choice.closest, places.target)
    num_kept = 0
    with ExitStack() as stack:
        files = []
        for language in (places.source, places.target):
            path = places.side(language)
            stack.enter_context(explain_write_errors(path))
            temporary = stack.enter_context(atomic_file(path))
            files.append(stack.enter_context(temporary.open("w", encoding="utf-8", newline="\n")))
        for pair in selection.pairs(read):
            num_kept += 1
            for file, text in zip(files, pair, strict=True):
                file.write(one_line(text) + "\n")
        if num_kept == 0:
            raise UserError(
                f"-o {places.prefix}: no pair is left ({_dropped(selection)}); the translations are kept, and --resume "
                "with other limits selects among them without translating again"
            )
    return num_kept + selection.dropped.total(), num_kept


def candidates(translations: Path) -> Iterator[Candidate]:
    """All translations of all lines, as Session has written them."""
    for found in _read(translations):
        yield from found


def _read(translations: Path) -> Iterator[list[Candidate]]:
    for line in read_lines(translations):
        entry = json.loads(line)
        outputs = entry.get("nbest", [entry])
        # Scores by which other models or a utility have chosen say little about how likely a translation is.
        scores = [one.get("model_score", one["normalized_score"]) for one in outputs]
        texts = [one["translation"] for one in outputs]
        yield [Candidate(entry["source"], text, score) for text, score in zip(texts, scores, strict=True)]


def _closest(translations: Path, reference: Path, name: str, language: str) -> Iterator[Candidate]:
    """For each line the translation most similar to its reference (Kim and Rush 2016, section 3.3)."""
    # Only now: nothing else here needs sacrebleu, which takes a while to load.
    from translator.evaluation.utilities import pairwise_utility

    utility = pairwise_utility(name, language)
    for found, wanted in zip(_read(translations), read_lines(reference), strict=True):
        similarity = utility([*(one.synthetic for one in found), wanted])[:-1, -1]
        yield found[int(similarity.argmax())]  # of equally close ones the first, which is the most likely


def _dropped(selection: Selection) -> str:
    return ", ".join(f"{name} dropped {count:,}" for name, count in selection.dropped.items() if count)


def _report(options: argparse.Namespace, places: Places, counts: dict[str, int], selection: Selection) -> None:
    say(f"{counts['translations']:,} translations of {counts['lines']:,} lines; {counts['kept']:,} pairs kept.")
    if text := _dropped(selection):
        say(f"Of the others, {text}.")
    names = " and ".join(str(path) for path in places.results[:2])
    tags = " 'data.train_tags=[null,bt]'" if options.kind == Kind.back else ""
    print(
        f"{names}: for data.source={places.source} data.target={places.target} 'data.train=[…,{places.prefix}]'{tags}"
    )
