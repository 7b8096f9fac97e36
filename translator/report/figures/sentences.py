"""Single sentences: their scores, their faults, and where output and reference differ."""

import random
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from functools import cache
from typing import Any

from translator.evaluation.metrics import METRICS
from translator.languages import alignment_tokens
from translator.report.html import json_text
from translator.report.material import HeldOut

MOST_BYTES = 2_400_000  # of all sentences in the page, so that it stays small
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


def alternating(segments: Segments) -> list[str]:
    """Stretches of text that are plain and marked in turn, the first plain, as sentences.js expects them."""
    stretches: list[str] = []
    for text, is_marked in segments:
        if len(stretches) % 2 != int(is_marked):
            stretches.append("")
        stretches.append(text)
    return stretches


def page_entry(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry of the list as the page has it, with differences marked."""
    runs = []
    for run in entry["runs"]:
        output, reference = mark_differences(run["output"], entry["reference"])
        marked = {"output": alternating(output), "reference": alternating(reference)}
        runs.append({**marked, "chrf": round(run["chrf"], 2), "faults": run["faults"]})
    return {"line": entry["line"], "random": entry["random"], "source": entry["source"], "runs": runs}


def choose_sentences(
    scores: Sequence[Sequence[float]],
    faults: Sequence[Sequence[str]],
    least: Sequence[int],
    size: Callable[[int], int],
) -> list[int]:
    """The sentences that are shown: all, or as many as fit, taken in turn from the worst, best, faulty and random.

    `scores` are those of each run. `size` tells the bytes that a sentence needs; it takes time and is asked only of
    sentences whose lower bound, in `least`, fits.
    """
    size, indices = cache(size), range(len(least))
    if sum(least) <= MOST_BYTES and sum(map(size, indices)) <= MOST_BYTES:
        return list(indices)
    means = [sum(of_runs) / len(of_runs) for of_runs in zip(*scores, strict=True)]
    worst = sorted(indices, key=lambda index: means[index])
    shuffled = list(indices)
    random.Random(RANDOM_SEED).shuffle(shuffled)
    faulty = [index for index in shuffled if faults[index]]
    chosen: set[int] = set()
    left = MOST_BYTES

    def fits(index: int) -> bool:
        return index not in chosen and least[index] <= left and size(index) <= left

    queues = [iter(worst), iter(reversed(worst)), iter(shuffled), iter(faulty)]
    while queues:
        for queue in list(queues):
            index = next(filter(fits, queue), None)
            if index is None:
                queues.remove(queue)
            else:
                chosen.add(index)
                left -= size(index)
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

    def entry(index: int) -> dict[str, Any]:
        runs = [
            {"output": output[index], "chrf": scores[number][index], "faults": list(faults[number][index])}
            for number, output in enumerate(outputs)
        ]
        return {
            "line": index + 1,
            "source": held_out.sources[index],
            "reference": held_out.references[index],
            "random": place[index],
            "runs": runs,
        }

    def size(index: int) -> int:
        return len(json_text(page_entry(entry(index))).encode()) + 1  # and the comma

    least = [len("".join(of_line).encode()) for of_line in texts]
    return [entry(index) for index in choose_sentences(scores, any_faults, least, size)]
