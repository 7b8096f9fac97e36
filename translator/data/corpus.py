"""Parallel text: pairs of a source and a target sentence, read in order, never all in memory.

PREFIX.en, PREFIX.de    two files with the same number of lines; each may be PREFIX.en.gz (a plain file is preferred)
NAME.tsv, NAME.tsv.gz   one file: the source, a tab, the target; any further columns are ignored. There is no header
                        line and no quoting; a line with fewer than two columns is rejected.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from pathlib import Path

from translator.errors import UserError
from translator.files.explain import reason
from translator.files.fingerprints import FileFingerprint, combined_fingerprint, fingerprint_file
from translator.files.lines import count_lines, read_lines, require_file


class Corpus(ABC):
    """One split, or one of several training corpora. Every reading yields the same pairs."""

    name: str  # for messages, for example "train (corpora/a)"

    @abstractmethod
    def __iter__(self) -> Iterator[tuple[str, str]]:
        """The (source, target) pairs in order, without changes. An empty corpus is rejected."""

    @property
    @abstractmethod
    def files(self) -> list[FileFingerprint]:
        """The files it is read from."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """SHA-256 of the content and of how it is read, but not of its location."""

    def check(self) -> None:
        """Rejects what `__iter__` would reject, as cheaply as possible."""
        for _ in self:
            pass


@dataclass
class Splits:
    """The corpora of a run. A weight is how often a pair appears per epoch: 2 = twice, 0.5 = every other epoch."""

    train: list[tuple[Corpus, float]]
    valid: Corpus
    test: Corpus | None

    @property
    def held_out(self) -> list[Corpus]:
        return [self.valid] if self.test is None else [self.valid, self.test]

    def check(self) -> None:
        """Checks all corpora, so that a broken one is rejected now and not after hours of training."""
        for corpus in [*(corpus for corpus, _ in self.train), *self.held_out]:
            corpus.check()


class TextCorpus(Corpus):
    """Two files aligned line by line."""

    def __init__(self, name: str, source_path: Path, target_path: Path) -> None:
        self.name = name
        self.source_path = source_path
        self.target_path = target_path

    def __iter__(self) -> Iterator[tuple[str, str]]:
        is_empty = True
        for source, target in zip_longest(read_lines(self.source_path), read_lines(self.target_path)):
            if source is None or target is None:
                raise self._uneven(count_lines(self.source_path), count_lines(self.target_path))
            yield source, target
            is_empty = False
        if is_empty:
            raise self._empty()

    def check(self) -> None:
        num_sources, num_targets = count_lines(self.source_path), count_lines(self.target_path)
        if num_sources != num_targets:
            raise self._uneven(num_sources, num_targets)
        if num_sources == 0:
            raise self._empty()

    def _uneven(self, num_sources: int, num_targets: int) -> UserError:
        return UserError(
            f"{self.name}: {self.source_path} has {num_sources} lines, but {self.target_path} has {num_targets}; "
            "line n of one must be the translation of line n of the other"
        )

    def _empty(self) -> UserError:
        return UserError(f"{self.name}: {self.source_path} and {self.target_path} are empty; a corpus needs sentences")

    @cached_property
    def files(self) -> list[FileFingerprint]:
        return [fingerprint_file(self.source_path), fingerprint_file(self.target_path)]

    @property
    def fingerprint(self) -> str:
        return combined_fingerprint("two files", *(file.sha256 for file in self.files))


class TsvCorpus(Corpus):
    """One file whose first two columns are the source and the target."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.path = path

    def __iter__(self) -> Iterator[tuple[str, str]]:
        number = 0
        for number, line in enumerate(read_lines(self.path), start=1):
            columns = line.split("\t", 2)
            if len(columns) < 2:
                raise UserError(
                    f"{self.path}, line {number}: no tab; every line needs the source, a tab and the target "
                    f"(the line starts with {line[:40]!r})"
                )
            yield columns[0], columns[1]
        if number == 0:
            raise UserError(f"{self.name}: {self.path} is empty; a corpus needs sentences")

    @cached_property
    def files(self) -> list[FileFingerprint]:
        return [fingerprint_file(self.path)]

    @property
    def fingerprint(self) -> str:
        return combined_fingerprint("first two columns", self.files[0].sha256)


def open_text(
    *, source: str, target: str, train: list[str], train_weights: list[float] | None, valid: str, test: str | None
) -> Splits:
    """Opens parallel files given by prefix, or tab-separated files given by name."""
    if source == target:
        raise UserError(f"data.target={target}: must differ from data.source, or a sentence is its own translation")
    weights = [1.0] * len(train) if train_weights is None else train_weights
    return Splits(
        train=[
            (_open_one("train", prefix, source, target), weight) for prefix, weight in zip(train, weights, strict=True)
        ],
        valid=_open_one("valid", valid, source, target),
        test=None if test is None else _open_one("test", test, source, target),
    )


def _open_one(split: str, prefix: str, source: str, target: str) -> Corpus:
    name = f"{split} ({prefix})"
    try:
        if prefix.endswith((".tsv", ".tsv.gz")):
            return TsvCorpus(name, _existing(split, prefix, Path(prefix)))
        sides = {"source": source, "target": target}
        paths = (
            _existing(split, prefix, Path(f"{prefix}.{language}"), f"data.{side}={language}")
            for side, language in sides.items()
        )
        return TextCorpus(name, *paths)
    except OSError as error:  # a name that is too long, for example
        raise UserError(f"data.{split}={prefix}: cannot be opened ({reason(error)}); give other files") from error


def _existing(split: str, prefix: str, path: Path, language: str = "") -> Path:
    """The file itself, or else its compressed form; `language` is the option that its name ends with."""
    compressed = path.with_name(path.name + ".gz")
    for candidate in (path, compressed):
        if candidate.is_file():
            return candidate
    option = f"data.{split}={prefix}"
    if path.name.endswith((".tsv", ".tsv.gz")) or path.is_dir():
        require_file(path)
    if compressed.is_dir():
        require_file(compressed)
    if Path(prefix).is_dir():
        remedy = f"{prefix} is a directory; add the name that the two files share, as in {Path(prefix) / split}"
    elif Path(prefix).is_file():
        remedy = (
            f"leave out the language: data.{split}={Path(prefix).with_suffix('')} (a file of two columns ends in .tsv)"
        )
    else:
        remedy = f"give the part of the file names before the language code ({language})"
    raise UserError(f"{option}: there is no file {path} or {compressed.name}; {remedy}")
