"""Sentence-level chrF and BLEU of every pair of some texts: sacrebleu's definitions, for many pairs at once.

N-grams are extracted by sacrebleu, once for each text. The matches of all pairs are then matrix products, because

    Σ_g min(a_g, b_g) = Σ_k Σ_g [a_g ≥ k] [b_g ≥ k]

Letters: U texts, G distinct n-grams of one order.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.helpers import extract_all_char_ngrams, extract_all_word_ngrams

from translator.evaluation.metrics import bleu_tokenizer

Matrix = npt.NDArray[np.float64]
NGrams = Mapping[Hashable, int]


def pairwise_utility(name: str, target_language: str) -> Callable[[Sequence[str]], Matrix]:
    """U[hypothesis, reference] (U, U) of texts, from 0 to 100."""
    if name == "chrf":
        return pairwise_chrf
    metric = BLEU(tokenize=bleu_tokenizer(target_language).name, effective_order=True, force=True)
    return lambda texts: pairwise_bleu(texts, lambda text: metric.tokenizer(text.rstrip()))


def pairwise_chrf(texts: Sequence[str]) -> Matrix:
    """chrF (Popović 2015) as sacrebleu's `sentence_score`: precision and recall averaged over the orders both have."""
    by_text = [extract_all_char_ngrams(text, CHRF.CHAR_ORDER, False) for text in texts]
    precision, recall, num_orders = (np.zeros((len(texts), len(texts))) for _ in range(3))
    for order in range(CHRF.CHAR_ORDER):
        ngrams = [of_text[order] for of_text in by_text]
        totals = _totals(ngrams)  # (U,)
        exist = (totals[:, None] > 0) & (totals > 0)  # (U, U)
        matches, largest = common(ngrams), np.maximum(totals, 1)
        precision += np.where(exist, matches / largest[:, None], 0)
        recall += np.where(exist, matches / largest, 0)
        num_orders += exist
    num_orders = np.maximum(num_orders, 1)
    precision, recall = precision / num_orders, recall / num_orders
    factor = CHRF.BETA**2
    denominator = factor * precision + recall
    return 100 * (1 + factor) * precision * recall / np.where(denominator > 0, denominator, 1)


def pairwise_bleu(texts: Sequence[str], tokenize: Callable[[str], str]) -> Matrix:
    """BLEU as sacrebleu's `sentence_score` with effective order, and its default smoothing: the k-th order without a
    match counts as 1 / 2^k matches.
    """
    by_text, lengths = zip(*(extract_all_word_ngrams(tokenize(text), 1, 4) for text in texts), strict=True)
    shape = (len(texts), len(texts))
    log_precision, smoothing, num_orders = np.zeros(shape), np.ones(shape), np.zeros(len(texts))
    any_match = np.zeros(shape, dtype=bool)
    for order in range(1, 5):
        ngrams = [{ngram: count for ngram, count in of_text.items() if len(ngram) == order} for of_text in by_text]
        totals, matches = _totals(ngrams)[:, None], common(ngrams)  # (U, 1), (U, U)
        any_match |= matches > 0
        exists = totals > 0
        smoothing = np.where(exists & (matches == 0), 2 * smoothing, smoothing)
        precision = np.where(matches > 0, matches, 1 / smoothing) / np.maximum(totals, 1)
        log_precision += np.where(exists, np.log(precision), 0)
        num_orders += exists[:, 0]
    num_words = np.array(lengths, dtype=np.float64)
    ratio = num_words / np.maximum(num_words, 1)[:, None]  # (U, U), reference by hypothesis
    brevity = np.exp(np.minimum(0, 1 - ratio))
    scores = 100 * brevity * np.exp(log_precision / np.maximum(num_orders, 1)[:, None])
    return np.where(any_match, scores, 0)


def common(ngrams: Sequence[NGrams]) -> Matrix:
    """How many n-grams each pair of texts has in common, each counted as often as both have it: (U, U)."""
    places: dict[Hashable, int] = {}
    for of_text in ngrams:
        for ngram in of_text:
            places.setdefault(ngram, len(places))
    counts = np.zeros((len(ngrams), len(places)))  # (U, G)
    for row, of_text in zip(counts, ngrams, strict=True):
        row[[places[ngram] for ngram in of_text]] = list(of_text.values())
    matches = np.zeros((len(ngrams), len(ngrams)))
    threshold = 1
    while counts.size:
        at_least = (counts >= threshold).astype(np.float64)
        matches += at_least @ at_least.T
        threshold += 1
        counts = counts[:, counts.max(0) >= threshold]  # few n-grams occur twice in a sentence
    return matches


def _totals(ngrams: Sequence[NGrams]) -> Matrix:
    return np.array([sum(of_text.values()) for of_text in ngrams], dtype=np.float64)
