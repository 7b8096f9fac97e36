"""Cross-attention, head by head: how spread out it is, how well it aligns words, and maps of a few sentences.

L decoder layers, H heads, T target pieces, S source pieces, Wt and Ws words.
"""

from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any

import numpy as np
import torch

from translator.data.tokenizer import Tokenizer
from translator.decoding.alignment import piece_words, word_attention
from translator.evaluation.alignment import GoldAlignment, score_alignments
from translator.languages import alignment_tokens
from translator.report.material import ForcedSentence

NUM_MAPS = 5
LONGEST_MAP = 40  # pieces on a side
MOST_WEIGHTS = 600_000  # of all maps together, so that the page stays small
Pairs = list[tuple[int, int]]


def attention_figures(
    sentences: Sequence[ForcedSentence],
    tokenizer: Tokenizer,
    gold: Sequence[GoldAlignment] | None,
) -> dict[str, Any] | None:
    """None where the model has no attention."""
    seen = [sentence for sentence in sentences if sentence.attention is not None]
    if not seen:
        return None
    return {
        "num_sentences": len(seen),
        "entropy": mean_entropy(seen).tolist(),
        "alignment": _alignment(seen, tokenizer, gold) if gold is not None else None,
        "maps": _maps(seen, tokenizer),
    }


def mean_entropy(sentences: Sequence[ForcedSentence]) -> "np.ndarray[Any, Any]":
    """−Σ_s a_s · log2 a_s in bits, averaged over all target pieces: (L, H). 0 = looks at one piece only."""
    total, count = 0.0, 0
    for sentence in sentences:
        weights = _weights(sentence).astype(np.float64)  # (L, H, T, S)
        logs = np.log2(weights, out=np.zeros_like(weights), where=weights > 0)
        total = total - (weights * logs).sum((-1, -2))  # (L, H)
        count += weights.shape[2]
    return np.asarray(total / max(1, count))


def _weights(sentence: ForcedSentence) -> "np.ndarray[Any, Any]":
    assert sentence.attention is not None
    return sentence.attention


def _alignment(
    sentences: Sequence[ForcedSentence], tokenizer: Tokenizer, gold: Sequence[GoldAlignment]
) -> dict[str, Any]:
    """The alignment error rate of each head, and of the mean over all heads, on the words of the reference."""
    truth = [gold[sentence.index] for sentence in sentences]
    layers, heads = _weights(sentences[0]).shape[:2]
    of_heads: list[list[Pairs]] = [[] for _ in range(layers * heads)]
    of_mean: list[Pairs] = []
    for sentence in sentences:
        align = _aligner(sentence, tokenizer)
        weights = torch.from_numpy(_weights(sentence)).float()
        for number, head in enumerate(weights.flatten(0, 1)):
            of_heads[number].append(align(head))
        of_mean.append(align(weights.mean((0, 1))))
    rates = [score_alignments(pairs, truth).error_rate for pairs in of_heads]
    return {
        "of_mean": score_alignments(of_mean, truth).to_dict(),
        "of_heads": [rates[layer * heads : (layer + 1) * heads] for layer in range(layers)],
    }


def _aligner(sentence: ForcedSentence, tokenizer: Tokenizer) -> Callable[[torch.Tensor], Pairs]:
    """For each target word the source word that gets most attention, as `align_words` does, but split once."""
    tags = set(tokenizer.tag_ids.values())
    first = sum(1 for _ in takewhile(tags.__contains__, sentence.source_ids))  # tags are not words
    sources = tokenizer.source_pieces(sentence.source_ids[first:-1])
    targets = tokenizer.target_pieces(sentence.target_ids[:-1])
    source_words, source_shares = piece_words(sources, alignment_tokens)
    target_words, target_shares = piece_words(targets, alignment_tokens)

    def align(weights: torch.Tensor) -> Pairs:  # (T, S)
        if not (source_words and target_words):
            return []
        best = word_attention(weights[:-1, first:-1], source_shares, target_shares).argmax(1).tolist()
        return [(source, target) for target, source in enumerate(best)]

    return align


def _maps(sentences: Sequence[ForcedSentence], tokenizer: Tokenizer) -> list[dict[str, Any]]:
    """Sentences of middling length, spread over the set."""
    layers, heads = _weights(sentences[0]).shape[:2]

    def fits(sentence: ForcedSentence) -> bool:
        sizes = len(sentence.target_ids), len(sentence.source_ids)
        return (
            min(sizes) > 3
            and max(sizes) <= LONGEST_MAP
            and NUM_MAPS * layers * heads * sizes[0] * sizes[1] <= MOST_WEIGHTS
        )

    fitting = sorted((s for s in sentences if fits(s)), key=lambda s: s.index)
    step = max(1, len(fitting) // NUM_MAPS)
    return [
        {
            "line": sentence.index + 1,
            "source": tokenizer.source_pieces(sentence.source_ids),
            "target": tokenizer.target_pieces(sentence.target_ids),
            "weights": np.round(_weights(sentence).astype(np.float64), 3).tolist(),  # (L, H, T, S)
        }
        for sentence in fitting[::step][:NUM_MAPS]
    ]
