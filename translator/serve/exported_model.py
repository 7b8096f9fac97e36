"""An export to CTranslate2 behind the server's interface, without torch.

Lines are treated as `LineTranslator` treats them. Where the shortest or longest length allowed makes a difference, and
with a forced prefix, the search is CTranslate2's own; for everything else its translations are those of the run.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ctranslate2

from translator.data.normalization import is_blank, normalize_text
from translator.data.tokenizer import Tokenizer
from translator.decoding.hypotheses import length_limit, length_penalty
from translator.decoding.segments import split_sentences, stretches
from translator.engines.choice import check_options
from translator.errors import Interrupted, OptionError
from translator.export.folder import SENTENCEPIECE_FILES, TRANSLATION
from translator.files.atomic import read_json
from translator.files.explain import explain_damage
from translator.ids import EOS
from translator.languages import is_written_without_spaces
from translator.schema.decode import SearchOptions
from translator.serve.models import Candidate, Details, Prefix, Result

BLANK = Result([Candidate("", 0.0)])


class ExportedModel:
    def __init__(
        self, folder: Path, *, num_threads: int | None = None, int8: bool = False, options: dict[str, Any] | None = None
    ) -> None:
        with explain_damage(folder / TRANSLATION):
            settings = read_json(folder / TRANSLATION)
            self.source, self.target = str(settings["source"]), str(settings["target"])
            self._normalizes, self._max_pieces = bool(settings["normalize"]), int(settings["max_pieces"])
            self._max_positions = int(settings["max_positions"])
            tags = [str(tag) for tag in settings["tags"]]  # in front of every source
            stored = SearchOptions(**settings["options"])
        self.options = stored.changed(**(options or {}))
        self.check_options(self.options)
        self.joiner = "" if is_written_without_spaces(self.target) else " "
        self._tokenizer = Tokenizer("bpe", [(folder / name).read_bytes() for name in SENTENCEPIECE_FILES])
        self._source_pieces = self._tokenizer.source_pieces(range(self._tokenizer.source_vocab_size))
        self._target_pieces = self._tokenizer.target_pieces(range(self._tokenizer.target_vocab_size))
        self._tags = [self._source_pieces.index(tag) for tag in tags]
        self._target_ids = {piece: number for number, piece in enumerate(self._target_pieces)}
        self._num_threads = num_threads or os.cpu_count() or 1
        self._engine = ctranslate2.Translator(
            str(folder),
            compute_type="int8" if int8 else "default",
            inter_threads=self._num_threads,
            intra_threads=1,
        )
        self.description = f"exported, ctranslate2 {self._engine.compute_type}"

    def check_options(self, options: SearchOptions) -> None:
        check_options(options)
        if options.mbr:
            raise OptionError("mbr", options.mbr, "an exported model cannot do this; leave it out, or give a run")

    def count_pieces(self, lines: Sequence[str]) -> list[int]:
        return [len(ids) for ids in self._tokenizer.encode_source(list(lines))]

    def _count_without_end(self, texts: Sequence[str]) -> list[int]:
        return [size - 1 for size in self.count_pieces(texts)]

    def split_sentences(self, line: str) -> list[str]:
        return split_sentences(self._normalized(line).strip())

    def _normalized(self, text: str) -> str:
        return normalize_text(text) if self._normalizes else text

    def translate(
        self,
        lines: Sequence[str],
        options: SearchOptions,
        *,
        prefixes: Sequence[Prefix] | None = None,
        split_sentences: bool = False,
        details: Details | None = None,
        need_links: bool = False,
        first_line: int = 0,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> list[Result]:
        if details is not None:
            raise OptionError("details", True, "an exported model has none; serve the run itself")
        if interrupted():
            raise Interrupted
        parts = [self._parts(line, by_sentence=split_sentences) for line in lines]  # the ids of each part of each line
        forced: list[list[int]] = []
        for own, prefix in zip(parts, prefixes or [""] * len(lines), strict=True):
            text = prefix if isinstance(prefix, str) else " ".join(prefix)
            first = self._tokenizer.encode_target([self._normalized(text)])[0] if text else []
            forced += [first if number == 0 else [] for number in range(len(own))]
        found = iter(self._find([ids for own in parts for ids in own], forced, options))
        return [self._assemble(own, [next(found) for _ in own]) if own else BLANK for own in parts]

    def _parts(self, line: str, *, by_sentence: bool) -> list[list[int]]:
        text = self._normalized(line).strip()
        if is_blank(text):
            return []
        most = self._max_positions - 1 - len(self._tags)
        limit = min(self._max_pieces or most, most)
        cut = stretches(text, limit, self._count_without_end, by_sentence=by_sentence)
        encoded = self._tokenizer.encode_source(cut)
        return [[*self._tags, *ids] for ids in encoded if any(piece != EOS for piece in ids)]

    def _find(
        self, sources: list[list[int]], prefixes: list[list[int]], options: SearchOptions
    ) -> list[list[tuple[list[int], float]]]:
        """The hypotheses of each source, with their log-probabilities."""
        most = self._max_positions - 1
        both = zip(sources, prefixes, strict=True)
        limits = [length_limit(len(ids) - 1, options, len(prefix)) for ids, prefix in both]
        limits = [(shortest, min(longest, most)) for shortest, longest in limits]
        longest = max((longest for _, longest in limits), default=0)
        found = self._search(sources, prefixes, options, 0, longest)
        for number, (shortest, longest) in enumerate(limits):
            if not all(shortest <= len(row) < longest for row, _ in found[number]):
                (found[number],) = self._search([sources[number]], [prefixes[number]], options, shortest, longest)
        return found

    def _search(
        self, sources: list[list[int]], prefixes: list[list[int]], options: SearchOptions, shortest: int, longest: int
    ) -> list[list[tuple[list[int], float]]]:
        if not sources:
            return []
        is_greedy = options.beam_size == 1
        forced = [[self._target_pieces[piece] for piece in ids] for ids in prefixes]
        results = self._engine.translate_batch(
            [[self._source_pieces[piece] for piece in ids[:-1]] for ids in sources],
            target_prefix=forced if any(prefixes) else None,
            beam_size=options.beam_size,
            num_hypotheses=options.beam_size,
            length_penalty=0 if is_greedy else options.alpha,
            max_input_length=0,
            min_decoding_length=shortest,
            max_decoding_length=longest,
            return_scores=True,
            max_batch_size=max(1, options.batch_tokens // self._num_threads),
            batch_type="tokens",
        )
        found = []
        for result in results:
            rows = [[self._target_ids[piece] for piece in pieces] for pieces in result.hypotheses]
            penalties = [1.0 if is_greedy else float(length_penalty(len(row) + 1.0, options)) for row in rows]
            scores = [score * penalty for score, penalty in zip(result.scores, penalties, strict=True)]
            found.append(list(zip(rows, scores, strict=True))[: options.num_hypotheses])
        return found

    def _assemble(self, parts: list[list[int]], found: list[list[tuple[list[int], float]]]) -> Result:
        """The translations of a line from those of its parts: the best of each part form the best, and so on."""
        candidates = []
        for rank in range(max(map(len, found))):
            chosen = [hypotheses[min(rank, len(hypotheses) - 1)] for hypotheses in found]
            texts = self._tokenizer.decode_target([ids for ids, _ in chosen])
            text = self.joiner.join(text for text in texts if text).replace("\r", " ").replace("\n", " ")
            candidates.append(Candidate(text, sum(score for _, score in chosen)))
        num_source = sum(len(ids) - len(self._tags) for ids in parts)
        return Result(candidates, num_source, sum(len(hypotheses[0][0]) for hypotheses in found))
