"""Corpora loaded by the `datasets` library: names on the hub, or local Parquet, JSON Lines and CSV files.

The two sentences of a pair are two columns, by default named after the language codes, or two fields of a nested column
such as {"translation": {"en": …, "de": …}}. Splits may be sliced and joined as `datasets` allows: "train[1000:]",
"train+extra".
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from datasets import Dataset, DatasetBuilder, IterableDataset, load_dataset_builder
from datasets.exceptions import DatasetNotFoundError

from translator.data.corpus import Corpus, Splits
from translator.errors import UserError
from translator.files.fingerprints import FileFingerprint, combined_fingerprint, fingerprint_file
from translator.files.lines import require_file, suggestion

BATCH_SIZE = 1_000
NESTED_BY_CUSTOM = "translation"
EMPTY = "is empty; a corpus needs sentences"
TEXT_TYPES = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
FILE_FORMATS = ("parquet", "json", "csv", "arrow", "text")  # `datasets` loads local files of these


class HubCorpus(Corpus):
    """One split, read from the library's memory-mapped copy or, when streaming, from its origin."""

    def __init__(
        self,
        name: str,
        dataset: Dataset | IterableDataset,
        *,
        origin: list[str],  # the files of the split, as far as known
        columns: tuple[str, str],
        nested_in: str | None,
        how: str,  # what else determines the content: the split expression
    ) -> None:
        self.name = name
        self.dataset = dataset
        self.origin = origin
        self.columns = columns
        self.nested_in = nested_in
        self.how = how

    def __iter__(self) -> Iterator[tuple[str, str]]:
        wanted = list(self.columns) if self.nested_in is None else [self.nested_in]
        batches = self.dataset.select_columns(wanted).with_format("arrow").iter(batch_size=BATCH_SIZE)
        is_empty = True
        while (table := self._next(batches)) is not None:
            yield from zip(self._texts(table, self.columns[0]), self._texts(table, self.columns[1]), strict=True)
            is_empty = False
        if is_empty:
            raise UserError(f"{self.name}: {EMPTY}")

    def _next(self, batches: Iterator[pa.Table]) -> pa.Table | None:
        with _explained(self.name):
            return next(batches, None)

    def _texts(self, table: pa.Table, column: str) -> list[str]:
        values = table[column] if self.nested_in is None else pc.struct_field(table[self.nested_in], column)
        if pa.types.is_null(values.type):
            return [""] * len(values)
        if not any(is_text(values.type) for is_text in TEXT_TYPES):
            raise UserError(f"{self.name}: column {column} holds {values.type}, not text; choose another column")
        return [value or "" for value in values.to_pylist()]  # a missing value is a blank sentence, cleaned as such

    def check(self) -> None:
        """Reads only the first pair: the columns were checked on opening and always have the same number of rows."""
        next(iter(self))

    @cached_property
    def files(self) -> list[FileFingerprint]:
        local = [Path(file) for file in self.origin]
        if not (local and all(path.is_file() for path in local)):
            local = [Path(file["filename"]) for file in getattr(self.dataset, "cache_files", [])]
        if local:
            return [fingerprint_file(path) for path in local]
        return [FileFingerprint(file, None, None) for file in self.origin]

    @property
    def fingerprint(self) -> str:
        # The address of a streamed file contains the commit, so it identifies the content.
        contents = [file.sha256 or file.path for file in self.files]
        return combined_fingerprint("datasets", *contents, self.how, *self.columns, self.nested_in)


def open_hub(
    *,
    path: str,
    source: str,
    target: str,
    name: str | None = None,
    revision: str | None = None,
    data_files: Mapping[str, str | list[str]] | None = None,
    train_split: str = "train",
    valid_split: str = "validation",
    test_split: str | None = "test",
    source_column: str | None = None,
    target_column: str | None = None,
    translation_column: str | None = None,
    streaming: bool = False,
    cache_dir: str | None = None,
) -> Splits:
    """`cache_dir` is where `datasets` keeps its copies, by default the library's own cache."""
    columns = (source_column or source, target_column or target)
    if columns[0] == columns[1]:
        raise UserError(f"data.target_column={columns[1]}: source and target would be read from the same column")
    _require_local_files(path, data_files)
    with _explained(f"data.path={path}" if name is None else f"data.path={path} data.name={name}"):
        builder = load_dataset_builder(
            path,
            name,
            revision=revision,
            data_files=None if data_files is None else dict(data_files),
            cache_dir=cache_dir,
            **_text_as_text(path, columns),
        )
    options = {"train_split": train_split, "valid_split": valid_split, "test_split": test_split}
    for option, split in options.items():
        _require_split(builder, path, option, split, streaming)
    if not streaming:
        with _explained(f"data.path={path}" if name is None else f"data.path={path} data.name={name}"):
            builder.download_and_prepare()

    def open_split(option: str) -> Corpus:
        return _open_split(builder, path, str(options[option]), columns, translation_column, streaming)

    return Splits(
        train=[(open_split("train_split"), 1.0)],
        valid=open_split("valid_split"),
        test=None if test_split is None else open_split("test_split"),
    )


def _text_as_text(path: str, columns: tuple[str, str]) -> dict[str, Any]:
    """Options that keep pandas from reading a cell such as None, NA or 12 as anything but text."""
    return {"na_filter": False, "converters": dict.fromkeys(columns, str)} if path == "csv" else {}


def _open_split(
    builder: DatasetBuilder,
    path: str,
    split: str,
    columns: tuple[str, str],
    translation_column: str | None,
    streaming: bool,
) -> Corpus:
    name = f"{split} ({path})"
    with _explained(name):
        dataset = builder.as_streaming_dataset(split) if streaming else builder.as_dataset(split)
        fields = _fields(dataset)
    if not fields:
        raise UserError(f"{name}: {EMPTY}")
    nested_in = _find_columns(name, fields, columns, translation_column)
    files = builder.config.data_files or {}
    origin = [str(file) for part in _split_names(split) for file in files.get(part, [])]
    return HubCorpus(name, dataset, origin=origin, columns=columns, nested_in=nested_in, how=split)


def _fields(dataset: Dataset | IterableDataset) -> dict[str, list[str]]:
    """The columns, each with the names of its nested fields."""
    features = dataset.features
    if features is None:  # a stream whose files have no schema; take the first row's
        row: dict[str, object] = next(iter(dataset), {})
        return {column: list(value) if isinstance(value, dict) else [] for column, value in row.items()}
    fields = {}
    for column, feature in features.items():
        languages = getattr(feature, "languages", None)  # datasets.Translation
        fields[column] = list(feature) if isinstance(feature, dict) else list(languages or [])
    return fields


def _find_columns(
    name: str, fields: dict[str, list[str]], columns: tuple[str, str], translation_column: str | None
) -> str | None:
    """The column in which both sentences are nested, or None if they are columns themselves."""
    nested_in = translation_column
    if nested_in is None and not set(columns) <= fields.keys() and fields.get(NESTED_BY_CUSTOM):
        nested_in = NESTED_BY_CUSTOM
    if nested_in is not None and nested_in not in fields:
        raise UserError(_missing(name, "data.translation_column", nested_in, list(fields)))
    available = list(fields) if nested_in is None else fields[nested_in]
    for option, column in zip(("data.source_column", "data.target_column"), columns, strict=True):
        if column not in available:
            raise UserError(_missing(name, option, column, available, f" inside {nested_in}" if nested_in else ""))
    return nested_in


def _missing(name: str, option: str, column: str, available: list[str], where: str = "") -> str:
    names = ", ".join(available) or "none"
    return f"{name}: {option}={column}: no such column{where}; there are {names}{suggestion(column, available)}"


def _split_names(split: str) -> list[str]:
    """The split names in an expression such as train[:10%]+extra."""
    return [re.sub(r"\[.*\]", "", part).strip() for part in split.split("+")]


def _require_split(builder: DatasetBuilder, path: str, option: str, split: str | None, streaming: bool) -> None:
    files = builder.config.data_files or {}
    available = [str(known) for known in (files or builder.info.splits or {})]
    if split is None or not available:
        return
    if streaming and split not in available and set(_split_names(split)) <= set(available):
        raise UserError(f"data.{option}={split}: a streamed split cannot be sliced or joined; use data.streaming=false")
    for part in _split_names(split):
        if part not in available:
            remedy = "; set data.test_split=null to go without" if option == "test_split" else ""
            raise UserError(
                f"data.{option}={split}: {path} has no split {part}; there are {', '.join(available)}"
                f"{suggestion(part, available)}{remedy}"
            )
        if files and not files[part]:
            raise UserError(f"data.data_files: no file matches what is given for {part}")


def _require_local_files(path: str, data_files: Mapping[str, str | list[str]] | None) -> None:
    if path not in FILE_FORMATS:
        return
    if not data_files:
        raise UserError(
            f"data.path={path}: which files? Give data.data_files, as in "
            f"'data.data_files={{train: corpora/train.{path}, validation: corpora/valid.{path}}}'"
        )
    for split, files in data_files.items():
        names = [files] if isinstance(files, str) else files
        if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
            raise UserError(f"data.data_files={{{split}: {files}}}: give the name of a file, or a list of names")
        for file in names:
            if "://" not in file and not re.search(r"[*?\[]", file):
                require_file(Path(file))
                _require_rows(path, split, Path(file))


def _require_rows(path: str, split: str, file: Path) -> None:
    """Rejects an empty Parquet file by name: the library fails on it without saying which file it was."""
    if path == "parquet":
        with _explained(str(file)):
            num_rows = pq.read_metadata(file).num_rows
        if num_rows == 0:
            raise UserError(f"data.data_files={{{split}: {file}}}: {path} file {EMPTY}")


@contextmanager
def _explained(subject: str) -> Iterator[None]:
    """Turns the library's exceptions about the user's dataset into one sentence, with a remedy."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"{subject}: {_explanation(error)}") from error


def _explanation(error: Exception) -> str:
    reasons = [reason for reason in (error, error.__cause__) if reason is not None]
    text = "; ".join(dict.fromkeys(_one_line(reason) for reason in reasons))
    if any(_is_connection_failure(reason) for reason in (*reasons, error.__context__)):
        return (
            f"the hub cannot be reached ({text}); load local files with data.path=parquet (json, csv) and "
            "data.data_files, or copy the `datasets` cache (HF_HOME) of a machine that has it and set HF_HUB_OFFLINE=1"
        )
    if isinstance(error, DatasetNotFoundError):
        return f"{text}; check the name, or log in if it is private"
    if "scripts are no longer supported" in text:
        return (
            f"{text}; most such datasets have a converted copy: set data.revision=refs/convert/parquet and "
            "data.data_files to its Parquet files, as configs/data/iwslt2017.yaml does"
        )
    # The library's messages for a Parquet file without rows and for an empty split.
    if "BatchSize must be greater than 0" in text or "corresponds to no data" in text:
        return EMPTY
    return text


def _is_connection_failure(error: BaseException | None) -> bool:
    module = type(error).__module__.partition(".")[0]
    return isinstance(error, ConnectionError | TimeoutError) or module in ("httpx", "requests", "aiohttp")


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
