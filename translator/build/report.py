"""The material of a report: from the folder of a finished run, or from a training that has just ended."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from translator.api import Translator
from translator.build.data import open_splits
from translator.config import Config, load_file
from translator.data.cleaning import Cleaning, clean
from translator.data.corpus import Splits, open_text
from translator.data.tokenizer import Tokenizer
from translator.decoding.hypotheses import length_penalty
from translator.decoding.output import one_line
from translator.errors import UserError
from translator.evaluation.alignment import GoldAlignment, parse_pharaoh
from translator.evaluation.texts import require_equal_lengths
from translator.files.lines import read_lines
from translator.progress_display import Watched, show_progress
from translator.report.forced_pass import force_references
from translator.report.material import HeldOut, RunMaterial, TextStatistics, text_statistics
from translator.report.search_sample import search_sample
from translator.runs.directions import Direction, choose_direction
from translator.runs.directory import RunDirectory, find_weights
from translator.runs.hypotheses import stored_hypotheses
from translator.runs.latest import resolve_run
from translator.schema.data import DataConfig, DemoDataConfig, Directions, TextDataConfig
from translator.schema.rerank import NONE

MOST_COUNTED_PAIRS = 1_000_000  # of the training text; more would take minutes and change little
REMEDY = "put the run's corpora back in their place, or give another set with --source FILE --reference FILE"


@dataclass(frozen=True)
class ReportRequest:
    """What the user has asked for."""

    runs: Sequence[Path]
    source: Path | None = None
    reference: Path | None = None
    gold_alignment: Path | None = None
    device: str = "auto"
    to: str | None = None


def load_material(request: ReportRequest) -> tuple[HeldOut, list[RunMaterial]]:
    """The held-out set and everything about the runs; translations that are not stored are made now."""
    folders = [resolve_run(path) for path in request.runs]
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise UserError(f"{request.runs[1]}: is the same run as {request.runs[0]}; give another run, or one only")
    for folder in folders:
        find_weights(folder)  # refuses what is not a run
    configs = [load_file(RunDirectory(folder).config) for folder in folders]
    directions = [
        choose_direction(config, Tokenizer.load(RunDirectory(folder).tokenizer), request.to, folder)
        for folder, config in zip(folders, configs, strict=True)
    ]
    _require_same_languages(folders, directions)
    held_out, split = read_held_out(request, configs[0], directions[0])
    materials = []
    for name, folder, config, direction in zip(_names(folders), folders, configs, directions, strict=True):
        material = RunMaterial(name, RunDirectory(folder), config)
        material.direction = str(direction) if config.data.directions is Directions.both else None
        material.training = _training_statistics(config, direction)
        _use_model(material, held_out, split, request)
        materials.append(material)
    return held_out, materials


def _names(folders: Sequence[Path]) -> list[str]:
    """The names of the folders, or the whole paths where the names are equal."""
    names = [folder.resolve().name for folder in folders]
    return names if len(set(names)) == len(names) else [str(folder) for folder in folders]


def _require_same_languages(folders: Sequence[Path], directions: Sequence[Direction]) -> None:
    languages = [str(direction) for direction in directions]
    if len(set(languages)) > 1:
        raise UserError(
            f"{folders[1]}: translates {languages[1]}, but {folders[0]} translates {languages[0]}; compare runs of the "
            "same languages"
        )


def read_held_out(
    request: ReportRequest, config: Config, direction: Direction, *, remedy: str = REMEDY
) -> tuple[HeldOut, str]:
    """The set that was asked for, or the run's test set, or else its validation set; and the name of the split."""
    if request.source is not None and request.reference is not None:
        sources, references = list(read_lines(request.source)), list(read_lines(request.reference))
        require_equal_lengths({str(request.source): sources, str(request.reference): references})
        if not sources:
            raise UserError(f"--source {request.source}: is empty; a report needs sentences")
        name, split, gold_file = str(request.source), "", request.gold_alignment
    else:
        splits = _open_existing(config.data, remedy)
        corpus = splits.test or splits.valid
        split = "test" if splits.test is not None else "valid"
        pairs = _directed(corpus, direction)
        sources, references = map(list, zip(*pairs, strict=True))
        own_gold = None if direction.reading.is_reversed else _gold_file(config.data, split)
        name, gold_file = corpus.name, request.gold_alignment or own_gold
    gold = _read_gold(gold_file, len(sources)) if gold_file is not None else None
    return HeldOut(name, sources, references, direction.source, direction.target, gold), split


def _directed(pairs: Iterable[tuple[str, str]], direction: Direction) -> Iterable[tuple[str, str]]:
    return (pair[::-1] if direction.reading.is_reversed else pair for pair in pairs)


def _open_existing(data: DataConfig, remedy: str = REMEDY) -> Splits:
    """The corpora of a run; unlike training, a report does not generate missing ones."""
    try:
        if isinstance(data, DemoDataConfig):
            train, valid, test = (str(Path(data.folder) / split) for split in ("train", "valid", "test"))
            return open_text(
                source=data.source, target=data.target, train=[train], train_weights=None, valid=valid, test=test
            )
        return open_splits(data)
    except UserError as error:
        raise UserError(f"{error}; {remedy}") from error


def _gold_file(data: DataConfig, split: str) -> Path | None:
    """Alignments beside the corpus, as the demo corpus has them: PREFIX.en-de.align."""
    if isinstance(data, DemoDataConfig):
        prefix: str | None = str(Path(data.folder) / split)
    else:
        prefix = getattr(data, split) if isinstance(data, TextDataConfig) else None
    path = Path(f"{prefix}.{data.source}-{data.target}.align")
    return path if prefix and path.is_file() else None


def _read_gold(path: Path, num_sentences: int) -> list[GoldAlignment]:
    gold = [parse_pharaoh(line, str(path), number) for number, line in enumerate(read_lines(path), start=1)]
    if len(gold) != num_sentences:
        raise UserError(
            f"{path} has {len(gold)} lines, but the set has {num_sentences} sentences; they must be the same"
        )
    return gold


def cleaned_training_pairs(config: Config, splits: Splits) -> Iterable[tuple[str, str]]:
    two_way = config.data.directions is Directions.both
    cleaned = clean(splits, Cleaning(**vars(config.data.cleaning)), two_way=two_way)
    return chain.from_iterable(corpus for corpus, _ in cleaned.train)


def count_training_text(
    config: Config,
    corpora: Iterable[tuple[str, str]],
    at_most: int = MOST_COUNTED_PAIRS,
    is_late: Callable[[], bool] = lambda: False,
    languages: tuple[str, str] | None = None,
) -> TextStatistics:
    pairs = Watched(corpora, "report: counting the words of the training text", None)
    languages = languages or (config.data.source, config.data.target)
    return text_statistics(pairs, *languages, at_most=at_most, is_late=is_late)


def _training_statistics(config: Config, direction: Direction) -> TextStatistics | None:
    """None where the training text is gone: the sections that need it are then left out."""
    try:
        pairs = _directed(cleaned_training_pairs(config, _open_existing(config.data)), direction)
        return count_training_text(config, pairs, languages=(direction.source, direction.target))
    except UserError:
        return None


def _use_model(material: RunMaterial, held_out: HeldOut, split: str, request: ReportRequest) -> None:
    """Everything that needs the model itself; without runs that judge it, which know nothing of its figures."""
    translator = Translator.load(material.run.path, request.device, to=request.to, rerank=[NONE])
    translator.keep_memory()
    options = translator.options
    stored = stored_hypotheses(material.run, split, held_out.sources, options) if split else None
    if stored is None:
        with show_progress(f"report: translating with {material.name}", len(held_out), "sentences") as advance:
            stored = [one_line(text) for text in translator.translate(held_out.sources, advance=advance)]
    material.hypotheses = stored
    material.forced = force_references(translator, held_out.sources, held_out.references)
    material.search = search_sample(translator, held_out.sources)
    material.length_penalty = lambda length: float(length_penalty(float(length), options))
