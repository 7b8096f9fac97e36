"""The sentences with which an export is verified, and how both sides translate them.

Everything is translated greedily and with a beam, by our own search and by the target library; hypotheses are ranked by
log-probability per piece on both sides, and end at the same length. Greedy outputs that reach this length are compared
all the same, because the pieces up to there do not depend on it; beams are not.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from translator.data.normalization import SENTENCEPIECE_SPACE, is_blank
from translator.decoding.line_translator import LineTranslator
from translator.errors import UserError
from translator.evaluation.metrics import score_corpus
from translator.models.base import evaluation_mode
from translator.runs.loading import LoadedRun
from translator.runs.translation import normalization, translation_options
from translator.schema.decode import LengthPenalty, SearchOptions, Stop

LONGEST_LINE = 1_000  # pieces of a source; every format has positions for that
MAX_LENGTH = 200  # pieces of an output; beams that reach it are not compared
BATCH_TOKENS = 2_048
TIE = 1e-5  # of log-probability per piece: what differs by less is equally good to the precision of float32


@dataclass(frozen=True)
class SampleSearch:
    """A search that every library can do."""

    beam_size: int
    max_length: int = MAX_LENGTH
    batch_tokens: int = BATCH_TOKENS

    @property
    def is_greedy(self) -> bool:
        return self.beam_size == 1

    @property
    def name(self) -> str:
        return "greedy" if self.is_greedy else f"beam {self.beam_size}"


@dataclass(frozen=True)
class Written:
    """What one side writes for a line."""

    text: str
    ids: list[int]  # without EOS


Translate = Callable[[Sequence[str], SampleSearch], list[Written]]


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
    num_unfinished: int  # reached the maximum length
    num_distinct: int  # different texts among ours
    ties: list[int]  # lines with different outputs that are equally likely
    differing: list[int]  # all other lines with different outputs
    bleu: tuple[float, float] | None  # of our outputs and of theirs
    own_bleu: float | None  # of their outputs, with ours as references
    outputs: list[tuple[str, str]]  # ours and theirs, line by line

    @property
    def num_equal(self) -> int:
        return self.num_compared - len(self.ties) - len(self.differing)

    @property
    def is_varied(self) -> bool:
        """Whether at least half of our outputs are different texts: otherwise their being equal shows little."""
        return 2 * self.num_distinct >= len(self.outputs)

    @property
    def is_telling(self) -> bool:
        return self.is_varied and 2 * self.num_compared >= len(self.outputs)

    def __str__(self) -> str:
        text = f"{self.search.name}: {self.num_equal} of {self.num_compared} translations equal"
        if self.ties:
            text += f", {len(self.ties)} different but equally likely"
        if not self.is_varied:
            texts = "the same text" if self.num_distinct == 1 else f"only {self.num_distinct} different texts"
            text += f"; they are {texts}, which shows little"
        if self.num_unfinished:
            done = "compared up to there" if self.search.is_greedy else "not compared"
            text += f"; {self.num_unfinished} longer than {self.search.max_length} pieces {done}"
        if self.bleu:
            before, after = self.bleu
            text += f"; BLEU {before:.2f} before the export, {after:.2f} after it ({after - before:+.2f})"
        if self.own_bleu is not None:
            text += f"; BLEU {self.own_bleu:.2f} against the run's own translations"
        return text


def make_sample(
    run: LoadedRun, pairs: Sequence[tuple[str, str | None]], most: int, *, origin: str = "--sample"
) -> Sample:
    """At most this many pairs, spread over all of them; `origin` is where they come from, for the user."""
    normalize = normalization(run.config) or (lambda text: text)
    longest = min(run.config.data.max_pieces or MAX_LENGTH, LONGEST_LINE)
    fitting = []
    for source, reference in pairs:
        line = normalize(source).strip()
        if is_blank(line) or SENTENCEPIECE_SPACE in line:  # which only our own tokenizer tells from a space
            continue
        if 0 < len(run.tokenizer.encode_source([line])[0]) - 1 <= longest:
            fitting.append((line, reference))
    chosen = [fitting[number * len(fitting) // most] for number in range(most)] if len(fitting) > most else fitting
    if not chosen:
        raise UserError(
            f"{origin}: has no line that is neither blank nor longer than {longest} pieces; give ordinary sentences "
            "with --sample FILE"
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


def written_by(translator: LineTranslator, lines: Sequence[str]) -> list[Written]:
    """What our own search writes for lines that it does not split."""
    parts = translator.parts(lines, None, 0)
    translator.find_hypotheses(parts)
    ids = [part.hypothesis(0).ids for part in parts]
    return [Written(text, row) for text, row in zip(translator.tokenizer.decode_target(ids), ids, strict=True)]


def compare(
    run: LoadedRun, sample: Sample, translate: Translate, search: SampleSearch, *, is_exact: bool = True
) -> Comparison:
    """How our search and the target library translate the sample; `is_exact` is False in lower precision."""
    own = translation_options(run.config, run.tokenizer)
    tags = {name: own[name] for name in ("source_tags", "never")}
    translator = LineTranslator(run.model, run.tokenizer, options=search_options(search), **tags)
    ours, theirs = written_by(translator, sample.lines), translate(sample.lines, search)
    both = list(zip(ours, theirs, strict=True))
    unfinished = {line for line, written in enumerate(ours) if len(written.ids) >= search.max_length}
    compared = [line for line in range(len(ours)) if search.is_greedy or line not in unfinished]
    different = [line for line in compared if not _is_same(*both[line], is_cut=line in unfinished)]
    ties = [line for line in different if _is_tie(translator, search, sample.lines[line], *both[line])]
    texts, their_texts = [written.text for written in ours], [written.text for written in theirs]

    def bleu(outputs: list[str], references: list[str]) -> float:
        return score_corpus(outputs, references, run.config.data.target, metrics=("bleu",))["bleu"]

    references = sample.references
    return Comparison(
        search,
        num_compared=len(compared),
        num_unfinished=len(unfinished),
        num_distinct=len(set(texts)),
        ties=ties,
        differing=[line for line in different if line not in ties],
        bleu=None if references is None else (bleu(texts, references), bleu(their_texts, references)),
        own_bleu=bleu(their_texts, texts) if references is None and not is_exact else None,
        outputs=list(zip(texts, their_texts, strict=True)),
    )


def _is_same(ours: Written, theirs: Written, *, is_cut: bool) -> bool:
    """Of an output of ours that is cut at the longest length, only the pieces up to there count."""
    return ours.ids == theirs.ids[: len(ours.ids)] if is_cut else ours.text == theirs.text


def _is_tie(translator: LineTranslator, search: SampleSearch, source: str, ours: Written, theirs: Written) -> bool:
    """Whether the model finds two outputs equally likely, so that rounding decides which is written.

    Greedily it decides about the first piece that differs, and all others follow from that one.
    """
    first, second = ours.ids, theirs.ids
    if first == second:  # the same pieces, put together differently
        return False
    place = _num_common(first, second)
    if search.is_greedy:
        first, second = first[: place + 1], second[: place + 1]
    with evaluation_mode(translator.model):
        tensors = translator.tensors(translator.encode_sources([source, source]))
        one, other = translator.force(*tensors, [first, second])
    if search.is_greedy:
        return abs(one.piece_scores[place] - other.piece_scores[place]) < TIE
    return abs(one.score / len(one.piece_scores) - other.score / len(other.piece_scores)) < TIE


def _num_common(first: Sequence[int], second: Sequence[int]) -> int:
    """How many pieces two outputs have in common at the beginning."""
    pairs = zip(first, second, strict=False)
    return next((place for place, (one, other) in enumerate(pairs) if one != other), min(len(first), len(second)))
