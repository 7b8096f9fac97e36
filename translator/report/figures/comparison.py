"""Two runs side by side: is one better, and what does one get right that the other gets wrong?"""

from collections.abc import Mapping, Sequence
from typing import Any

from translator.evaluation.significance import compare_outputs
from translator.report.figures.frequency import matches_of_two
from translator.report.figures.scores import METRICS_SHOWN, NUM_BOOTSTRAP
from translator.report.figures.sentences import sentence_scores
from translator.report.material import HeldOut

NUM_SHOWN = 8
NUM_RANDOMIZATIONS = 5_000
CLOSE = 1e-6  # chrF of sentences nearer than this is equal


def compare_runs(
    first: Sequence[str], second: Sequence[str], held_out: HeldOut, training: Mapping[str, int] | None
) -> dict[str, Any]:
    tests = compare_outputs(
        first,
        second,
        held_out.references,
        held_out.target_language,
        metrics=METRICS_SHOWN,
        num_bootstrap=NUM_BOOTSTRAP,
        num_randomizations=NUM_RANDOMIZATIONS,
    )
    scores = sentence_scores(first, held_out), sentence_scores(second, held_out)
    gains = [b - a for a, b in zip(*scores, strict=True)]
    right = [
        [text == wanted for text, wanted in zip(side, held_out.references, strict=True)] for side in (first, second)
    ]
    exact = list(zip(*right, strict=True))
    order = sorted(range(len(gains)), key=gains.__getitem__)
    split = held_out.split_words
    words = None
    if training is not None:
        one, other, wanted = ([split(text) for text in side] for side in (first, second, held_out.references))
        words = matches_of_two(one, other, wanted, training)
    return {
        "tests": [test.to_dict() for test in tests],
        "sentences": {
            "first_better": sum(gain < -CLOSE for gain in gains),
            "second_better": sum(gain > CLOSE for gain in gains),
            "equal": sum(abs(gain) <= CLOSE for gain in gains),
        },
        "exact": {
            "both": exact.count((True, True)),
            "only_first": exact.count((True, False)),
            "only_second": exact.count((False, True)),
            "neither": exact.count((False, False)),
        },
        "words": words,
        "largest": {
            "first_better": [
                _example(i, first, second, held_out, scores) for i in order[:NUM_SHOWN] if gains[i] < -CLOSE
            ],
            "second_better": [
                _example(i, first, second, held_out, scores) for i in order[::-1][:NUM_SHOWN] if gains[i] > CLOSE
            ],
        },
    }


def _example(
    index: int,
    first: Sequence[str],
    second: Sequence[str],
    held_out: HeldOut,
    scores: tuple[Sequence[float], Sequence[float]],
) -> dict[str, Any]:
    return {
        "line": index + 1,
        "source": held_out.sources[index],
        "reference": held_out.references[index],
        "first": first[index],
        "second": second[index],
        "chrf_first": scores[0][index],
        "chrf_second": scores[1][index],
    }
