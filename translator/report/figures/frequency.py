"""How accurately words are translated, by how often they occur in training (Neubig et al. 2019, section 2.2)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

CUTOFFS = (1, 2, 3, 4, 5, 10, 100, 1_000)  # first frequencies of the second and later classes, as compare-mt has them
CLASSES = ("never", "1", "2", "3", "4", "5–9", "10–99", "100–999", "1,000+")


def frequency_class(count: int) -> int:
    return sum(count >= cutoff for cutoff in CUTOFFS)


def f1(num_matched: int, num_output: int, num_reference: int) -> float | None:
    """2PR / (P + R), which is 2 · matched / (output + reference); None where there are no such words."""
    total = num_output + num_reference
    return 2 * num_matched / total if total else None


def word_accuracy(
    outputs: Sequence[Sequence[str]], references: Sequence[Sequence[str]], training: Mapping[str, int]
) -> list[dict[str, Any]]:
    """For each class of words: how many there are, and precision, recall and F1.

    A word of the output is right if the reference of the same sentence has it, each occurrence counted once.
    """
    num_output, num_reference, num_matched = Counter[int](), Counter[int](), Counter[int]()
    for output, reference in zip(outputs, references, strict=True):
        written, wanted = Counter(output), Counter(reference)
        for counts, totals in ((written, num_output), (wanted, num_reference), (written & wanted, num_matched)):
            for word, count in counts.items():
                totals[frequency_class(training.get(word, 0))] += count
    rows = []
    for number, name in enumerate(CLASSES):
        written_here, wanted_here, right = num_output[number], num_reference[number], num_matched[number]
        rows.append(
            {
                "frequency": name,
                "num_reference": wanted_here,
                "num_output": written_here,
                "num_matched": right,
                "precision": right / written_here if written_here else None,
                "recall": right / wanted_here if wanted_here else None,
                "f1": f1(right, written_here, wanted_here),
            }
        )
    return rows


def matches_of_two(
    first: Sequence[Sequence[str]],
    second: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    training: Mapping[str, int],
) -> list[dict[str, Any]]:
    """For each class of words: how many of the reference's both outputs have, only one of them has, and neither has."""
    names = ("both", "only_first", "only_second", "neither")
    totals = {name: Counter[int]() for name in names}
    for one, other, reference in zip(first, second, references, strict=True):
        wanted = Counter(reference)
        by_first, by_second = Counter(one) & wanted, Counter(other) & wanted
        by_any = by_first | by_second
        parts = (by_first & by_second, by_any - by_second, by_any - by_first, wanted - by_any)
        for name, part in zip(names, parts, strict=True):
            for word, count in part.items():
                totals[name][frequency_class(training.get(word, 0))] += count
    return [
        {"frequency": name, **{part: totals[part][number] for part in names}} for number, name in enumerate(CLASSES)
    ]
