"""Divides lines into the parts that a model translates, and joins the translations."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from translator.data.normalization import is_blank
from translator.decoding.alignment import SplitWords, align_words
from translator.decoding.forced_decoding import Forced
from translator.decoding.hypotheses import Hypothesis
from translator.decoding.interfaces import AttentionMap, Output, TextTokenizer, Translation
from translator.decoding.segments import stretches
from translator.decoding.term_requirements import NO_TERMS, Requirements
from translator.ids import EOS


@dataclass
class Part:
    """A stretch of a line that the model translates at once, and what was found for it."""

    line: int
    text: str
    ids: list[int]
    seed: int
    prefix: list[int]
    is_first: bool  # of its line
    terms: Requirements = NO_TERMS
    left_by_engine: bool = False
    hypotheses: list[Hypothesis] = field(default_factory=list)  # best first
    texts: list[str] = field(default_factory=list)  # of the hypotheses
    forced: list[Forced] = field(default_factory=list)

    def hypothesis(self, rank: int) -> Hypothesis:
        """The hypothesis of this rank, or the last one if there are fewer."""
        return self.hypotheses[min(rank, len(self.hypotheses) - 1)]


def divide(
    lines: Sequence[str],
    tokenizer: TextTokenizer,
    *,
    tags: Sequence[int] = (),
    prefixes: Sequence[list[int]] | None = None,
    max_pieces: int = 0,
    at_sentences: bool = False,
    first_line: int = 0,
) -> list[Part]:
    """The parts of all lines that are not blank: whole lines, their sentences, or what `max_pieces` allows.

    The ids of every part begin with `tags`, which do not count as pieces. Samples depend on the number of a line in the
    whole text, which begins at `first_line`.
    """

    def count_pieces(texts: Sequence[str]) -> list[int]:
        return [_num_pieces(ids) for ids in tokenizer.encode_source(list(texts))]

    filled = [index for index, text in enumerate(lines) if not is_blank(text)]
    encoded = tokenizer.encode_source([lines[index] for index in filled])
    parts: list[Part] = []
    for line, ids in zip(filled, encoded, strict=True):
        texts, pieces = [lines[line]], [ids]
        if at_sentences or 0 < max_pieces < _num_pieces(ids):
            texts = stretches(lines[line], max_pieces, count_pieces, by_sentence=at_sentences)
            pieces = tokenizer.encode_source(texts)
        # Text may have no pieces at all, if the vocabulary knows none of its characters.
        known = [(text, ids) for text, ids in zip(texts, pieces, strict=True) if any(piece != EOS for piece in ids)]
        for number, (text, ids) in enumerate(known):
            seed = (first_line + line) * 1_000_003 + number
            prefix = prefixes[line] if prefixes and number == 0 else []
            parts.append(Part(line, text, [*tags, *ids], seed, prefix, is_first=number == 0))
    return parts


def _num_pieces(source_ids: Sequence[int]) -> int:
    """Without EOS, as the limit on training text counts them."""
    return len(source_ids) - 1


def join(
    parts: Sequence[Part],
    tokenizer: TextTokenizer,
    *,
    joiner: str,
    num_tags: int = 0,
    sum_scores: bool,
    split_words: SplitWords | None = None,
    need_attention: bool = False,
) -> Translation:
    """The translations of a line from those of its parts: the best of each part form the best, and so on.

    With `split_words` they are aligned, word by word. Sources begin with `num_tags` tags, which are not words.
    """
    outputs = []
    for rank in range(max(len(part.hypotheses) for part in parts)):
        chosen = [part.hypothesis(rank) for part in parts]
        texts = [part.texts[min(rank, len(part.texts) - 1)] for part in parts]
        maps = [_attention_map(part, rank, tokenizer) for part in parts] if split_words or need_attention else []
        mean = sum(hypothesis.normalized_score for hypothesis in chosen) / len(chosen)
        by_model = [hypothesis.model_score for hypothesis in chosen if hypothesis.model_score is not None]
        outputs.append(
            Output(
                text=joiner.join(text for text in texts if text),
                score=sum(hypothesis.score for hypothesis in chosen) if sum_scores else mean,
                normalized_score=mean,
                num_pieces=sum(len(hypothesis.ids) for hypothesis in chosen),
                alignment=join_alignments(maps, split_words, num_tags) if split_words else None,
                attention=maps if need_attention else None,
                model_score=sum(by_model) / len(by_model) if by_model else None,
            )
        )
    left_by_engine = any(part.left_by_engine for part in parts)
    num_source_pieces = sum(len(part.ids) - num_tags for part in parts)
    left_out = tuple(term for part in parts for term in part.terms.left_out)
    return Translation(outputs, num_source_pieces, len(parts), left_by_engine, left_out)


def _attention_map(part: Part, rank: int, tokenizer: TextTokenizer) -> AttentionMap:
    weights = part.forced[min(rank, len(part.forced) - 1)].attention
    assert weights is not None
    target_pieces = tokenizer.target_pieces([*part.hypothesis(rank).ids, EOS])
    return AttentionMap(tokenizer.source_pieces(part.ids), target_pieces, weights)


def join_alignments(maps: Sequence[AttentionMap], split_words: SplitWords, num_tags: int = 0) -> list[tuple[int, int]]:
    """The alignment of a line from those of its parts; words are numbered through all of them."""
    joined: list[tuple[int, int]] = []
    source_offset = target_offset = 0
    for source_pieces, target_pieces, weights in maps:
        pairs, num_source, num_target = align_words(
            source_pieces[num_tags:-1], target_pieces[:-1], weights[:-1, num_tags:-1], split_words
        )
        joined += [(source + source_offset, target + target_offset) for source, target in pairs]
        source_offset, target_offset = source_offset + num_source, target_offset + num_target
    return sorted(joined)
