"""Words as BLEU counts them."""

from collections.abc import Callable

from translator.evaluation.metrics import METRICS

SplitWords = Callable[[str], list[str]]


def bleu_words(target_language: str) -> SplitWords:
    """A function that splits text of the language into the words that sacrebleu's BLEU compares."""
    metric = METRICS["bleu"].make(target_language, None)
    return lambda text: metric._preprocess_segment(text).split()
