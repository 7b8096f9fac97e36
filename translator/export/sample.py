"""The sentences with which an export is verified, and how both sides translate them.

Everything is translated greedily and with a beam, by our own search and by the target library; hypotheses are ranked by
log-probability per piece on both sides, and end at the same length.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from translator.decoding.line_translator import LineTranslator
from translator.errors import UserError
from translator.evaluation.metrics import score_corpus
from translator.runs.loading import LoadedRun
from translator.runs.translation import normalization, translation_options
from translator.schema.decode import LengthPenalty, SearchOptions, Stop

MAX_LENGTH = 200  # pieces of an output; sentences that reach it are not compared
BATCH_TOKENS = 2_048
TIE = 1e-5  # of log-probability per piece: two outputs this close are equally good to the precision of float32


@dataclass(frozen=True)
class SampleSearch:
    """A search that every library can do."""

    beam_size: int
    max_length: int = MAX_LENGTH
    batch_tokens: int = BATCH_TOKENS

    @property
    def name(self) -> str:
        return "greedy" if self.beam_size == 1 else f"beam {self.beam_size}"


Translate = Callable[[Sequence[str], SampleSearch], list[str]]


@dataclass(frozen=True)
class Sample:
    """Normalised, non-blank lines that need not be split, with their references if there are any."""

    lines: list[str]
    references: list[str] | None


@dataclass(frozen=True)
class Comparison:
    """One search, done by both sides."""

    search: SampleSearch
    num_compared: int
    num_unfinished: int  # reached the maximum length, where libraries differ in how a sentence ends
    ties: list[int]  # lines with different outputs that are equally likely
    differing: list[int]  # all other lines with different outputs
    bleu: tuple[float, float] | None  # of our outputs and of theirs
    outputs: list[tuple[str, str]]  # ours and theirs, line by line

    @property
    def num_equal(self) -> int:
        return self.num_compared - len(self.ties) - len(self.differing)

    def __str__(self) -> str:
        text = f"{self.search.name}: {self.num_equal} of {self.num_compared} translations equal"
        if self.ties:
            text += f", {len(self.ties)} different but equally likely"
        if self.num_unfinished:
            text += f"; {self.num_unfinished} longer than {self.search.max_length} pieces not compared"
        if self.bleu:
            before, after = self.bleu
            text += f"; BLEU {before:.2f} before the export, {after:.2f} after it ({after - before:+.2f})"
        return text


def make_sample(run: LoadedRun, pairs: Sequence[tuple[str, str | None]], most: int) -> Sample:
    """At most this many pairs, spread over all of them."""
    normalize = normalization(run.config) or (lambda text: text)
    fitting = []
    for source, reference in pairs:
        line = normalize(source).strip()
        num_pieces = len(run.tokenizer.encode_source([line])[0]) - 1 if line else 0
        if 0 < num_pieces <= (run.config.data.max_pieces or MAX_LENGTH):
            fitting.append((line, reference))
    chosen = [fitting[number * len(fitting) // most] for number in range(most)] if len(fitting) > most else fitting
    if not chosen:
        raise UserError(
            "--sample: has no line that is neither blank nor too long for the model; give ordinary sentences"
        )
    references = [reference for _, reference in chosen if reference is not None]
    return Sample([line for line, _ in chosen], references if len(references) == len(chosen) else None)


def search_options(search: SampleSearch) -> SearchOptions:
    """The options of the same search in our own code."""
    return SearchOptions(
        beam_size=search.beam_size,
        length_penalty=LengthPenalty.average,
        stop=Stop.first,
        max_length_ratio=0,
        max_length_extra=search.max_length,
    )


def compare(run: LoadedRun, sample: Sample, translate: Translate, search: SampleSearch) -> Comparison:
    """How our search and the target library translate the sample."""
    own = translation_options(run.config, run.tokenizer)
    tags = {name: own[name] for name in ("source_tags", "never")}
    translator = LineTranslator(run.model, run.tokenizer, options=search_options(search), **tags)
    ours = [translation.outputs[0] for translation in translator.translate_fully(sample.lines)]
    theirs = translate(sample.lines, search)
    finished = [line for line, output in enumerate(ours) if output.num_pieces < search.max_length]
    if not finished:
        raise UserError(
            f"{search.name}: every translation of the sample is longer than {search.max_length} pieces, so nothing can "
            "be compared; train the model for longer"
        )
    different = [line for line in finished if ours[line].text != theirs[line]]
    ties = [line for line in different if _is_tie(translator, sample.lines[line], ours[line].text, theirs[line])]
    bleu = None
    if sample.references is not None:
        both = ([output.text for output in ours], theirs)
        scores = [score_corpus(texts, sample.references, run.config.data.target, metrics=("bleu",)) for texts in both]
        bleu = scores[0]["bleu"], scores[1]["bleu"]
    differing = [line for line in different if line not in ties]
    outputs = [(output.text, text) for output, text in zip(ours, theirs, strict=True)]
    return Comparison(search, len(finished), len(ours) - len(finished), ties, differing, bleu, outputs)


def _is_tie(translator: LineTranslator, source: str, ours: str, theirs: str) -> bool:
    """Whether two outputs are equally likely under the model, so that rounding decides which is found."""
    results = translator.score([source, source], [ours, theirs])
    first, second = (result.score / len(result.piece_scores) for result in results)
    return abs(first - second) < TIE
