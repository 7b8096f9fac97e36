"""A run behind the server's interface: what `Translator.load` gives, with torch or CTranslate2 searching."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from translator.api import Translator
from translator.data.tokenizer import Tokenizer
from translator.decoding.alignment import link_words
from translator.decoding.interfaces import AttentionMap, Translation
from translator.decoding.line_translator import LineTranslator
from translator.decoding.output import one_line
from translator.decoding.segments import split_sentences
from translator.inspection.inspect import inspect_line
from translator.runs.directions import directions_of
from translator.runs.directory import RunDirectory, find_weights
from translator.runs.latest import resolve_run
from translator.schema.decode import SearchOptions
from translator.serve.models import Candidate, Details, Prefix, Result, WordLinks


class TorchModel:
    def __init__(self, translator: LineTranslator, source: str, target: str, description: str = "") -> None:
        self.translator = translator
        self.source, self.target, self.description = source, target, description
        self.options = translator.options
        self.joiner = translator.joiner

    def check_options(self, options: SearchOptions) -> None:
        if self.translator.engine is not None:
            self.translator.engine.accepts(options.for_candidates())

    def count_pieces(self, lines: Sequence[str]) -> list[int]:
        return [len(ids) for ids in self.translator.tokenizer.encode_source(list(lines))]

    def split_sentences(self, line: str) -> list[str]:
        return split_sentences(self._normalized(line).strip())

    def _normalized(self, line: str) -> str:
        return self.translator.normalize(line) if self.translator.normalize else line

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
        """The translator belongs to the calling thread, so its attributes can be set here."""
        translator = self.translator
        translator.options, translator.split_sentences, translator.interrupted = options, split_sentences, interrupted
        prefixes = prefixes or [""] * len(lines)
        if details is not None:
            both = enumerate(zip(lines, prefixes, strict=True), start=first_line)
            return [self._inspect(line, prefix, details, number) for number, (line, prefix) in both]
        texts = [prefix if isinstance(prefix, str) else " ".join(prefix) for prefix in prefixes]
        forced = texts if any(texts) else None
        found = translator.translate_fully(lines, prefixes=forced, need_attention=need_links, first_line=first_line)
        return [self._result(translation) for translation in found]

    def _inspect(self, line: str, prefix: Prefix, details: Details, number: int) -> Result:
        shown = inspect_line(
            self.translator,
            line,
            prefix=prefix,
            num_runners_up=details.num_runners_up,
            need_heads=details.heads,
            heads_rank=details.heads_rank,
            need_beam=details.beam,
            number=number,
        )
        candidates = [Candidate(one_line(found["text"]), found["score"]) for found in shown["hypotheses"]]
        num_source = sum(len(segment["source_pieces"]) for segment in shown["segments"])
        num_target = sum(len(segment["hypotheses"][0]["pieces"]) - 1 for segment in shown["segments"])
        return Result(candidates, num_source, num_target, shown)

    def _result(self, translation: Translation) -> Result:
        candidates = [
            Candidate(one_line(output.text), output.score, self._links(output.attention))
            for output in translation.outputs
        ]
        return Result(candidates, translation.num_source_pieces, translation.outputs[0].num_pieces)

    def _links(self, maps: Sequence[AttentionMap] | None) -> WordLinks | None:
        """The links of all parts of a line; their words are numbered through."""
        if not maps:
            return None
        joined = WordLinks([], [], [])
        num_tags = len(self.translator.source_tags)
        for source_pieces, target_pieces, weights in maps:
            source, target, links = link_words(
                source_pieces[num_tags:-1],
                target_pieces[:-1],
                weights[:-1, num_tags:-1],
                self.translator.split_words,
            )
            joined.links.extend(len(joined.source) + link for link in links)
            joined.source.extend(source)
            joined.target.extend(target)
        return joined if len(joined.links) == len(joined.target) else None


def load_models(
    folder: Path, device: str, *, engine: str, int8: bool, options: dict[str, Any]
) -> tuple[TorchModel, ...]:
    """The finished model of a run, once for each direction that it translates in."""
    folder = resolve_run(folder)
    find_weights(folder, f"--model {folder}")  # names the option if this is not a run
    translator = Translator.load(folder, device, engine=engine, int8=int8, **options)
    translator.keep_memory()
    used = translator.engine.name if translator.engine is not None else f"torch on {translator.device}"
    description = f"{translator.config.model.kind}, {used}"
    if RunDirectory(folder).is_unfinished:
        description += "; training has not finished, these are its best weights so far"
    assert isinstance(translator.tokenizer, Tokenizer)
    directions = directions_of(translator.config, translator.tokenizer)
    translators = [translator, *(translator.towards(other) for other in directions[1:])]
    return tuple(
        TorchModel(translator, direction.source, direction.target, description)
        for translator, direction in zip(translators, directions, strict=True)
    )


def set_threads(number: int) -> None:
    torch.set_num_threads(number)
