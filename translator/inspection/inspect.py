"""Everything about the translation of one line: probabilities, runners-up, attention, n-best list and beam.

T target pieces with EOS, S source pieces with EOS, Wt and Ws words, L decoder layers, H heads.
"""

import copy
import math
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from translator.decoding.alignment import SplitWords, piece_texts, piece_words, word_attention
from translator.decoding.forced_decoding import Forced
from translator.decoding.interfaces import BLANK, Output
from translator.decoding.line_translator import LineTranslator
from translator.decoding.parts import Part
from translator.decoding.search import Hypothesis
from translator.errors import Interrupted
from translator.ids import BOS, EOS, PAD
from translator.inspection.beam_tree import beam_tree
from translator.models.base import evaluation_mode

WEIGHT_DIGITS = 3  # as many as can be seen
NEVER_WRITTEN = (PAD, BOS)
PROBABILITY_DIGITS = 4  # significant digits, since a small probability is not zero


def inspect_line(
    translator: LineTranslator,
    line: str,
    *,
    prefix: str | Sequence[str] = "",
    num_hypotheses: int | None = None,
    num_runners_up: int = 5,
    need_heads: bool = False,
    heads_rank: int = 0,
    need_beam: bool = False,
    number: int = 0,
) -> dict[str, Any]:
    """A translation with its inner workings, as values that JSON can hold.

    `text` is what `translate` gives; `segments` are the stretches of the line that the model translates at once.
    `prefix` is the start of the translation of the line, or a list with one for each segment. The search is the
    translator's own, with its engine if it has one. Probabilities and attention always come from torch, which is fed
    the finished hypotheses, and the beam is that of torch's search; it is None where there is none, in greedy search
    and sampling, and where terms are required. The heads are those of the best hypothesis of each segment, or of
    another one by its rank, counted from 0, or the last if there are fewer. A model with `reverse_target` writes the
    last piece first, as its beam shows; the probability of a piece is then the one given all pieces after it. `number`
    is the number of the line in its text, counted from 0; samples depend on it.
    """
    own = copy.copy(translator)  # the options of the caller's translator stay as they are
    if num_hypotheses is not None:
        own.options = translator.options.changed(num_hypotheses=num_hypotheses)
    parts = own.parts([line], [prefix] if isinstance(prefix, str) else None, number)
    if not isinstance(prefix, str):
        for part, text in zip(parts, prefix, strict=False):
            (part.prefix,) = own.encode_prefixes([text])
    own.find_hypotheses(parts)
    outputs = (own.assemble(parts, False, False) if parts else BLANK).outputs
    return {
        "source": line,
        "text": outputs[0].text,
        "hypotheses": [_scores(output) for output in outputs],
        "segments": [
            _segment(own, part, num_runners_up, heads_rank if need_heads else None, need_beam) for part in parts
        ],
    }


def _scores(found: Output) -> dict[str, Any]:
    return {"text": found.text, "score": found.score, "normalized_score": found.normalized_score}


def _segment(
    translator: LineTranslator, part: Part, num_runners_up: int, heads_rank: int | None, need_beam: bool
) -> dict[str, Any]:
    tokenizer = translator.tokenizer
    source, mask = translator.tensors([part.ids])  # (1, S)
    targets = [hypothesis.ids for hypothesis in part.hypotheses]
    with evaluation_mode(translator.model):
        forced = translator.force(
            source.expand(len(targets), -1),
            mask.expand(len(targets), -1),
            targets,
            need_attention=True,
            need_heads=heads_rank is not None,
            num_likeliest=num_runners_up
            + 1
            + len(NEVER_WRITTEN)
            + len(translator.never),  # the piece itself is usually among them
        )
    source_pieces, num_tags = tokenizer.source_pieces(part.ids), len(translator.source_tags)
    return {
        "source": "".join(piece_texts(source_pieces[num_tags:-1])).strip(),
        "source_pieces": source_pieces,
        "source_words": words_of(source_pieces[:-1], translator.split_words, num_tags),
        "num_forced": len(part.prefix),
        "reverse_target": translator.reverse_target,
        "hypotheses": [
            _hypothesis(translator, source_pieces, hypothesis, scored, num_runners_up)
            for hypothesis, scored in zip(part.hypotheses, forced, strict=True)
        ],
        "heads": _heads(forced, heads_rank) if heads_rank is not None else None,
        "beam": _beam(translator, part, source, mask) if need_beam else None,
    }


def _hypothesis(
    translator: LineTranslator,
    source_pieces: list[str],
    hypothesis: Hypothesis,
    forced: Forced,
    num_runners_up: int,
) -> dict[str, Any]:
    tokenizer = translator.tokenizer
    ids = [*hypothesis.ids, EOS]
    pieces = tokenizer.target_pieces(ids)
    assert forced.likeliest is not None
    described = []
    for piece, name, score, likeliest in zip(ids, pieces, forced.piece_scores, forced.likeliest, strict=True):
        excluded = {piece, *NEVER_WRITTEN, *translator.never}
        others = [(other, value) for other, value in likeliest if other not in excluded][:num_runners_up]
        names = tokenizer.target_pieces([other for other, _ in others])
        runners_up = [
            {"piece": other, "probability": probability(value)} for other, (_, value) in zip(names, others, strict=True)
        ]
        described.append({"piece": name, "probability": probability(score), "runners_up": runners_up})
    (text,) = tokenizer.decode_target([hypothesis.ids])
    return {
        "text": text,
        "score": hypothesis.score,
        "normalized_score": hypothesis.normalized_score,
        "pieces": described,
        "target_words": words_of(pieces[:-1], translator.split_words),
        **_attention(source_pieces, pieces, forced.attention, translator.split_words, len(translator.source_tags)),
    }


def _attention(
    source_pieces: list[str],
    target_pieces: list[str],
    weights: Tensor | None,
    split_words: SplitWords,
    num_tags: int,
) -> dict[str, Any]:
    """The mean of all heads between pieces (T, S) and between words (Wt, Ws), and the alignment that follows."""
    if weights is None:
        return {"attention": None, "word_attention": None, "alignment": []}
    source_words, source_shares = piece_words(source_pieces[num_tags:-1], split_words)
    target_words, target_shares = piece_words(target_pieces[:-1], split_words)
    between_words = word_attention(weights[:-1, num_tags:-1], source_shares, target_shares)  # (Wt, Ws)
    best = between_words.argmax(1).tolist() if source_words and target_words else []
    return {
        "attention": rounded(weights),
        "word_attention": rounded(between_words),
        "alignment": sorted([source, target] for target, source in enumerate(best)),
    }


def words_of(pieces: Sequence[str], split_words: SplitWords, num_tags: int = 0) -> list[list[Any]]:
    """The words of a text given as pieces, after its tags: [first piece, the one after the last piece, the word]."""
    words, shares = piece_words(pieces[num_tags:], split_words)
    spans = []
    for word, share in zip(words, shares, strict=True):
        places = share.nonzero().flatten().tolist()
        first, after = (num_tags + places[0], num_tags + places[-1] + 1) if places else (0, 0)
        spans.append([first, after, word])
    return spans


def _heads(forced: Sequence[Forced], rank: int) -> dict[str, Any] | None:
    """Those of the hypothesis with this rank; `rank` is the one whose they are."""
    rank = min(rank, len(forced) - 1)
    weights = forced[rank].heads
    if weights is None:
        return None
    return {"rank": rank, "layers": weights.size(0), "heads": weights.size(1), "weights": rounded(weights)}


def _beam(translator: LineTranslator, part: Part, source: Tensor, mask: Tensor) -> dict[str, Any] | None:
    options = translator.options.for_candidates(all_of_beam=translator.reranker is not None)
    if options.sample or options.beam_size == 1 or part.terms.required is not None:
        return None

    def stop_if_interrupted() -> None:
        if translator.interrupted():
            raise Interrupted

    nodes = beam_tree(
        translator.model,
        source,
        mask,
        options,
        lambda piece: translator.tokenizer.target_pieces([piece])[0],
        prefix=part.prefix,
        forbidden=translator.forbidden(),
        never=translator.never,
        best=translator.turned(part.hypotheses[0].ids),
        before_step=stop_if_interrupted,
    )
    return {"nodes": nodes}


def rounded(weights: Tensor) -> Any:
    """Nested lists of numbers with few digits; NaN, from a model that has diverged, becomes 0."""
    scale = 10**WEIGHT_DIGITS
    return ((weights.double().nan_to_num(0) * scale).round() / scale).tolist()


def probability(log_probability: float) -> float:
    value = math.exp(min(0.0, log_probability)) if math.isfinite(log_probability) else 0.0
    return float(f"{value:.{PROBABILITY_DIGITS}g}")
