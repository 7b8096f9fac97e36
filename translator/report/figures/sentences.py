"""Single sentences: their scores, their faults, and where output and reference differ."""

import random
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any

from translator.evaluation.metrics import METRICS
from translator.languages import alignment_tokens
from translator.report.material import HeldOut

MOST_CHARACTERS = 1_200_000  # of all texts shown, so that the page stays small
RANDOM_SEED = 1
Segments = list[tuple[str, bool]]  # stretches of a text, and whether the other text lacks them


def sentence_scores(hypotheses: Sequence[str], held_out: HeldOut) -> list[float]:
    """chrF of each sentence, the metric that means most for a single one."""
    metric = METRICS["chrf"].make(held_out.target_language, None)
    pairs = zip(hypotheses, held_out.references, strict=True)
    return [float(metric.sentence_score(hypothesis, [reference]).score) for hypothesis, reference in pairs]


def mark_differences(output: str, reference: str) -> tuple[Segments, Segments]:
    """Both texts as segments; words that the longest matching blocks leave out are marked."""
    words = alignment_tokens(output), alignment_tokens(reference)
    is_different = [True] * len(words[0]), [True] * len(words[1])
    for block in SequenceMatcher(None, *words, autojunk=False).get_matching_blocks():
        for side, start in ((0, block.a), (1, block.b)):
            is_different[side][start : start + block.size] = [False] * block.size
    return _segments(output, words[0], is_different[0]), _segments(reference, words[1], is_different[1])


def _segments(text: str, words: Sequence[str], is_different: Sequence[bool]) -> Segments:
    """The text in stretches that are all marked or all plain. The space between two marked words is marked too."""
    segments: list[list[Any]] = []
    position, was_different = 0, False

    def add(stretch: str, mark: bool) -> None:
        if segments and segments[-1][1] == mark:
            segments[-1][0] += stretch
        elif stretch:
            segments.append([stretch, mark])

    for word, mark in zip(words, is_different, strict=True):
        start = text.index(word, position)
        add(text[position:start], mark and was_different)
        add(word, mark)
        position, was_different = start + len(word), mark
    add(text[position:], False)
    return [(stretch, mark) for stretch, mark in segments]


def choose_sentences(
    scores: Sequence[Sequence[float]], faults: Sequence[Sequence[str]], sizes: Sequence[int]
) -> list[int]:
    """The sentences that are shown: all, or as many as fit, taken in turn from the worst, best, faulty and random.

    `scores` are those of each run; `sizes` are the characters that each sentence needs.
    """
    if sum(sizes) <= MOST_CHARACTERS:
        return list(range(len(sizes)))
    means = [sum(of_runs) / len(of_runs) for of_runs in zip(*scores, strict=True)]
    worst = sorted(range(len(sizes)), key=lambda index: means[index])
    shuffled = list(range(len(sizes)))
    random.Random(RANDOM_SEED).shuffle(shuffled)
    faulty = [index for index in shuffled if faults[index]]
    chosen: set[int] = set()
    left = MOST_CHARACTERS
    queues = [iter(worst), iter(reversed(worst)), iter(shuffled), iter(faulty)]
    while queues:
        for queue in list(queues):
            index = next((index for index in queue if index not in chosen and sizes[index] <= left), None)
            if index is None:
                queues.remove(queue)
            else:
                chosen.add(index)
                left -= sizes[index]
    return sorted(chosen)


def sentence_list(
    held_out: HeldOut, outputs: Sequence[Sequence[str]], faults: Sequence[Sequence[Sequence[str]]]
) -> list[dict[str, Any]]:
    """One entry for each sentence shown, with the output, score and faults of every run."""
    scores = [sentence_scores(output, held_out) for output in outputs]
    texts = list(zip(held_out.sources, held_out.references, *outputs, strict=True))
    any_faults = [sorted({name for of_run in of_runs for name in of_run}) for of_runs in zip(*faults, strict=True)]
    order = list(range(len(held_out)))
    random.Random(RANDOM_SEED).shuffle(order)
    place = {index: rank for rank, index in enumerate(order)}
    entries = []
    for index in choose_sentences(scores, any_faults, [sum(map(len, of_line)) for of_line in texts]):
        runs = [
            {"output": output[index], "chrf": scores[number][index], "faults": list(faults[number][index])}
            for number, output in enumerate(outputs)
        ]
        entries.append(
            {
                "line": index + 1,
                "source": held_out.sources[index],
                "reference": held_out.references[index],
                "random": place[index],
                "runs": runs,
            }
        )
    return entries
