"""Search: what beam search gains over greedy search, what it costs, and how often it misses a better translation."""

from collections.abc import Callable, Sequence
from typing import Any

from translator.evaluation.metrics import score_corpus
from translator.report.figures.scores import METRICS_SHOWN
from translator.report.material import ForcedSentence, HeldOut, SearchSample

MARGIN = 1e-3  # scores closer than this are equal: they come from differently rounded computations


def search_figures(
    sample: SearchSample,
    held_out: HeldOut,
    forced: Sequence[ForcedSentence],
    length_penalty: Callable[[int], float],
) -> dict[str, Any]:
    """A search error is a sentence for which the model itself prefers another translation to the one that was found.

    Only two others are tried, the greedy output and the reference, so the share is a lower bound (Stahlberg and Byrne
    2019 find the true one). Scores are what the search compares: log-probability over length penalty.
    """
    by_index = {sentence.index: sentence for sentence in forced}
    greedy_better = reference_better = either = num_compared = 0
    for index, beam, greedy in zip(sample.indices, sample.beam_scores, sample.greedy_scores, strict=True):
        sentence = by_index.get(index)
        if sentence is None:
            continue
        num_compared += 1
        reference = float(sentence.log_probs.sum()) / length_penalty(len(sentence.target_ids))
        is_greedy, is_reference = greedy > beam + MARGIN, reference > beam + MARGIN
        greedy_better, reference_better = greedy_better + is_greedy, reference_better + is_reference
        either += is_greedy or is_reference
    references = [held_out.references[index] for index in sample.indices]

    def system(texts: Sequence[str], seconds: float) -> dict[str, Any]:
        scores = score_corpus(texts, references, held_out.target_language, metrics=METRICS_SHOWN).values
        return {**scores, "seconds": seconds, "sentences_per_second": len(texts) / max(1e-9, seconds)}

    return {
        "num_sentences": len(sample.indices),
        "num_in_parts": sample.num_in_parts,
        "num_compared": num_compared,
        "beam_size": sample.beam_size,
        "beam": system(sample.beam_texts, sample.beam_seconds),
        "greedy": system(sample.greedy_texts, sample.greedy_seconds),
        "share_different": sum(map(str.__ne__, sample.beam_texts, sample.greedy_texts)) / max(1, len(references)),
        "greedy_better": greedy_better / max(1, num_compared),
        "reference_better": reference_better / max(1, num_compared),
        "search_errors": either / max(1, num_compared),
    }
