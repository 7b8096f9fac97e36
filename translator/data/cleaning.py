"""Removes unsuitable pairs from the training text, and reports what was removed.

All decisions are based on the normalised text, in this order; the report counts a pair at the first step it fails.

    normalize         changes both sides (see `normalize_text`), removes nothing; counts the kept pairs that changed
    drop_blank        a side without any visible character
    max_characters    a side longer than the limit
    max_ratio         one side more than this many times as long as the other; only if the longer one has more than 20
                      characters, and not for blank sides
    drop_identical    source and target are the same text
    drop_leaked       the pair is also in validation or test; always counted, removed only if enabled
    drop_duplicates   the pair occurred before, in this or an earlier training corpus of the run

In the last two, a pair with its sides exchanged is the same pair where pairs are used in both directions.

Validation and test keep all their lines in order: only `normalize` applies to them.
The text is streamed. Only 16-byte hashes stay in memory: of the held-out pairs and, for `drop_duplicates`, of all
training pairs while they are read (about 100 bytes each, with the overhead of Python's set: 0.4 GB for the 4.5 million
pairs of WMT14; disable the step for much larger corpora).
"""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import blake2b

from translator.data.cleaning_report import CleaningReport, Overlap
from translator.data.corpus import Corpus, Splits
from translator.data.normalization import is_blank, normalize_text
from translator.errors import UserError
from translator.files.fingerprints import FileFingerprint, combined_fingerprint

VERSION = 1  # raise it when the same options would clean differently, so that nothing cached is reused
RATIO_FREE_CHARACTERS = 20


@dataclass(frozen=True)
class Cleaning:
    """Which steps are enabled; a limit of 0 means no limit."""

    normalize: bool = True
    drop_blank: bool = True
    max_characters: int = 2_000
    max_ratio: float = 9.0
    drop_identical: bool = True
    drop_duplicates: bool = True
    drop_leaked: bool = True

    def for_held_out(self) -> "Cleaning":
        """Only normalises: scores are comparable only if no line is missing."""
        return Cleaning(self.normalize, False, 0, 0, False, False, False)

    def fault(self, source: str, target: str) -> str | None:
        """The first step that the pair fails, regardless of other pairs."""
        if self.drop_blank and (is_blank(source) or is_blank(target)):
            return "drop_blank"
        shorter, longer = len(source), len(target)
        if shorter > longer:
            shorter, longer = longer, shorter
        if self.max_characters and longer > self.max_characters:
            return "max_characters"
        if self.max_ratio and shorter and longer > RATIO_FREE_CHARACTERS and longer > self.max_ratio * shorter:
            return "max_ratio"
        if self.drop_identical and source == target:
            return "drop_identical"
        return None


class HeldOut:
    """Validation and test, to be recognised in training text. They are read together with the first training corpus."""

    def __init__(self, corpora: Sequence[Corpus], *, two_way: bool = False) -> None:
        self.corpora = list(corpora)
        self.two_way = two_way  # each pair is translated in both directions, so a target is a source as well

    @cached_property
    def _index(self) -> tuple[list[int], dict[bytes, list[int]], dict[bytes, list[int]]]:
        """The number of lines of each corpus and, by hash, how many of them are a given pair or have a given source."""
        num_lines = [0] * len(self.corpora)
        pairs: dict[bytes, list[int]] = {}
        sources: dict[bytes, list[int]] = {}
        for which, corpus in enumerate(self.corpora):
            for source, target in corpus:
                num_lines[which] += 1
                source, target = normalize_text(source), normalize_text(target)
                for index, key in (
                    (pairs, pair_digest(source, target, self.two_way)),
                    *((sources, text_digest(text)) for text in ((source, target) if self.two_way else (source,))),
                ):
                    index.setdefault(key, [0] * len(self.corpora))[which] += 1
        return num_lines, pairs, sources

    @property
    def pairs(self) -> dict[bytes, list[int]]:
        return self._index[1]

    @property
    def sources(self) -> dict[bytes, list[int]]:
        return self._index[2]

    def overlaps(self, found_pairs: set[bytes], found_sources: set[bytes]) -> list[Overlap]:
        num_lines, pairs, sources = self._index
        return [
            Overlap(
                name=corpus.name,
                num_pairs=num_lines[which],
                two_way=self.two_way,
                num_pairs_in_training=sum(pairs[key][which] for key in found_pairs),
                num_sources_in_training=sum(sources[key][which] for key in found_sources),
            )
            for which, corpus in enumerate(self.corpora)
        ]


class CleanedCorpus(Corpus):
    """The pairs of a corpus that pass cleaning. `report` covers the latest reading and is updated during it."""

    def __init__(
        self,
        corpus: Corpus,
        cleaning: Cleaning,
        *,
        held_out: HeldOut | None = None,
        earlier: Sequence["CleanedCorpus"] = (),  # cleaned the same way; their pairs are duplicates here
    ) -> None:
        self.corpus = corpus
        self.name = corpus.name
        self.cleaning = cleaning
        self.held_out = held_out or HeldOut([])
        self.earlier = list(earlier) if cleaning.drop_duplicates else []
        self.report = CleaningReport(corpus.name, asdict(cleaning))
        self._is_earlier = False  # than another corpus, which will need our hashes
        self._kept: set[bytes] | None = None
        for other in self.earlier:
            other._is_earlier = True

    def __iter__(self) -> Iterator[tuple[str, str]]:
        options = self.cleaning
        report = self.report = CleaningReport(self.name, asdict(options))
        before = [other._hashes() for other in self.earlier]
        kept: set[bytes] = set()
        found_pairs: set[bytes] = set()
        found_sources: set[bytes] = set()
        two_way = self.held_out.two_way
        hash_pairs = options.drop_duplicates or bool(self.held_out.corpora)
        held_out_pairs, held_out_sources = self.held_out.pairs, self.held_out.sources
        for line, (raw_source, raw_target) in enumerate(self.corpus, start=1):
            report.num_read = line
            source, target = normalize_text(raw_source), normalize_text(raw_target)
            fault = options.fault(source, target)
            if fault is None and hash_pairs:
                key = pair_digest(source, target, two_way)
                if key in held_out_pairs:
                    found_pairs.add(key)
                    report.count("drop_leaked", line, raw_source, raw_target)
                    if options.drop_leaked:
                        continue
                if options.drop_duplicates:
                    if key in kept or any(key in hashes for hashes in before):
                        fault = "drop_duplicates"
                    kept.add(key)
            if fault is not None:
                report.count(fault, line, raw_source, raw_target)
                continue
            if held_out_sources:
                texts = (source, target) if two_way else (source,)
                found_sources.update(key for key in map(text_digest, texts) if key in held_out_sources)
            report.num_kept += 1
            if not options.normalize:
                yield raw_source, raw_target
                continue
            if source != raw_source or target != raw_target:
                report.count("normalize", line, raw_source, raw_target)
            yield source, target
        report.overlaps = self.held_out.overlaps(found_pairs, found_sources)
        if self._is_earlier:
            self._kept = kept
        if report.num_kept == 0:
            raise UserError(f"{self.name}: cleaning leaves none of {report.num_read:,} pairs: {report.removed()}")

    def _hashes(self) -> set[bytes]:
        """Of all kept pairs; reads the corpus again if necessary."""
        if self._kept is None:
            for _ in self:
                pass
        assert self._kept is not None
        return self._kept

    def check(self) -> None:
        self.corpus.check()

    @property
    def files(self) -> list[FileFingerprint]:
        return self.corpus.files

    @property
    def fingerprint(self) -> str:
        """Of everything that determines the cleaned pairs."""
        options = self.cleaning
        held_out = [corpus.fingerprint for corpus in self.held_out.corpora] if options.drop_leaked else []
        earlier = [corpus.fingerprint for corpus in self.earlier]
        versions = (VERSION, unicodedata.unidata_version)
        parts = (versions, self.corpus.fingerprint, options, held_out, earlier)
        return combined_fingerprint("cleaned", *parts, *(["two-way"] if self.held_out.two_way else []))


@dataclass
class CleanedSplits:
    """Cleaned `Splits`, for the model. Scores are computed on the raw text of the `Splits` themselves."""

    train: list[tuple[CleanedCorpus, float]]
    valid: CleanedCorpus
    test: CleanedCorpus | None


def clean(splits: Splits, cleaning: Cleaning, *, two_way: bool = False) -> CleanedSplits:
    """Cleans lazily: each corpus is read and cleaned when it is iterated over.

    If pairs are used in both directions (`two_way`), a pair with its sides exchanged is the same pair.
    """
    held_out = HeldOut(splits.held_out, two_way=two_way)
    train: list[tuple[CleanedCorpus, float]] = []
    for corpus, weight in splits.train:
        earlier = [cleaned for cleaned, _ in train]
        train.append((CleanedCorpus(corpus, cleaning, held_out=held_out, earlier=earlier), weight))
    gentle = cleaning.for_held_out()
    return CleanedSplits(
        train=train,
        valid=CleanedCorpus(splits.valid, gentle),
        test=None if splits.test is None else CleanedCorpus(splits.test, gentle),
    )


def text_digest(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=16).digest()


def pair_digest(source: str, target: str, two_way: bool = False) -> bytes:
    if two_way and target < source:
        source, target = target, source
    return text_digest(f"{source}\n{target}")  # unambiguous, since normalised text has no line ends
