"""Paired tests, against sacrebleu where there are no ties, and against full enumeration where there are many."""

import itertools
import json
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

from translator.evaluation.metrics import METRICS
from translator.evaluation.significance import compare_outputs, largest_differences

WORDS = ["a", "the", "man", "dog", "runs", "sees", "two", "red", "house", "street", "in", "on", "with", "and", "big"]


def corpus(seed: int, num_sentences: int, noise: float, references: list[str] | None = None) -> list[str]:
    rng = random.Random(seed)
    if references is None:
        return [" ".join(rng.choices(WORDS, k=rng.randrange(6, 14))) for _ in range(num_sentences)]
    return [
        " ".join(word if rng.random() > noise else rng.choice(WORDS) for word in line.split()) for line in references
    ]


REFERENCES = corpus(1, 80, 0)
GOOD = corpus(2, 80, 0.2, REFERENCES)
BAD = corpus(3, 80, 0.5, REFERENCES)


def test_a_clear_difference_is_significant_and_no_difference_is_not() -> None:
    options = {"num_bootstrap": 300, "num_randomizations": 300, "metrics": ("bleu", "chrf", "ter")}
    for one in compare_outputs(BAD, GOOD, REFERENCES, "en", **options):  # type: ignore[arg-type]
        assert one.better == "B"
        assert one.p_bootstrap < 0.02
        assert one.p_randomization < 0.02
    for one in compare_outputs(GOOD, GOOD, REFERENCES, "en", **options):  # type: ignore[arg-type]
        assert one.better == ""
        assert one.score_a == one.score_b
        assert (one.p_bootstrap, one.p_randomization) == (1, 1)


def test_the_p_values_are_those_of_the_sacrebleu_command(tmp_path: Path) -> None:
    for name, lines in (("good", GOOD), ("bad", BAD), ("reference", REFERENCES)):
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "sacrebleu",
        "reference",
        "-i",
        "bad",
        "good",
        "-m",
        "bleu",
        "-f",
        "json",
        "--force",
    ]
    output = subprocess.run(
        [*command, "--paired-bs", "--paired-bs-n", "200"], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    expected = json.loads(output)[1]["BLEU"]
    (found,) = compare_outputs(BAD, GOOD, REFERENCES, "en", metrics=("bleu",), num_bootstrap=200, num_randomizations=50)
    assert found.score_b == pytest.approx(expected["score"], abs=0.06)
    assert found.p_bootstrap == pytest.approx(expected["p_value"], abs=6e-5)


@pytest.mark.parametrize("metric", ["bleu", "chrf", "chrf_pp"])  # TER counts few edits, so ties are common
def test_without_ties_both_tests_are_those_of_sacrebleu(metric: str) -> None:
    other = corpus(4, 80, 0.25, REFERENCES)
    (found,) = compare_outputs(
        GOOD, other, REFERENCES, "en", metrics=(metric,), num_bootstrap=150, num_randomizations=150
    )
    for test, p_value in (("bs", found.p_bootstrap), ("ar", found.p_randomization)):
        maker = METRICS[metric].make("en", [REFERENCES])
        _, scores = PairedTest([("A", GOOD), ("B", other)], {metric: maker}, None, test, 150)()
        assert p_value == scores[maker.corpus_score(GOOD, None).name][1].p_value
        assert 0.01 < p_value < 1


def bleu(statistics: np.ndarray) -> float:
    """BLEU (Papineni et al. 2002) of summed statistics: both lengths, matches of each order, n-grams of each order."""
    length, reference_length, *counts = statistics
    precisions = np.array(counts[:4]) / np.array(counts[4:])
    return float(100 * np.exp(min(0, 1 - reference_length / length)) * np.exp(np.log(precisions).mean()))


def bleu_statistics(output: list[str], references: list[str]) -> np.ndarray:
    metric = BLEU(force=True, references=[references])
    return np.array(metric._extract_corpus_statistics(output, None), dtype=float)


def test_both_p_values_with_our_own_bleu_and_the_same_random_numbers() -> None:
    other = corpus(5, 80, 0.25, REFERENCES)
    (found,) = compare_outputs(
        GOOD, other, REFERENCES, "en", metrics=("bleu",), num_bootstrap=200, num_randomizations=200
    )
    a, b = bleu_statistics(GOOD, REFERENCES), bleu_statistics(other, REFERENCES)
    observed = abs(bleu(a.sum(0)) - bleu(b.sum(0)))
    chosen = np.random.default_rng(12345).choice(80, size=(200, 80))
    differences = np.array([abs(bleu(a[rows].sum(0)) - bleu(b[rows].sum(0))) for rows in chosen])
    num_as_large = np.sum(differences - differences.mean() >= observed)
    assert found.p_bootstrap == pytest.approx((num_as_large + 1) / 201)
    coins = np.random.default_rng(12345).integers(2, size=(200, 80), dtype=bool)[:, :, None]
    mixtures = [(np.where(coin, a, b).sum(0), np.where(coin, b, a).sum(0)) for coin in coins]
    num_as_large = sum(abs(bleu(one) - bleu(two)) >= observed for one, two in mixtures)
    assert found.p_randomization == pytest.approx((num_as_large + 1) / 201)


@pytest.mark.parametrize("num_different", [1, 3, 6])
def test_randomization_approaches_the_exact_test_even_if_most_sentences_are_the_same(num_different: int) -> None:
    other = [*BAD[:num_different], *GOOD[num_different:10]]
    (found,) = compare_outputs(
        GOOD[:10], other, REFERENCES[:10], "en", metrics=("bleu",), num_bootstrap=10, num_randomizations=4_000
    )
    a, b = bleu_statistics(GOOD[:10], REFERENCES[:10]), bleu_statistics(other, REFERENCES[:10])
    observed = abs(bleu(a.sum(0)) - bleu(b.sum(0)))
    as_large = [
        abs(bleu(np.where(coin, a, b).sum(0)) - bleu(np.where(coin, b, a).sum(0))) >= observed - 1e-9
        for coin in (np.array(coins)[:, None] for coins in itertools.product((True, False), repeat=10))
    ]
    assert found.p_randomization == pytest.approx(np.mean(as_large), abs=0.03)
    if num_different == 1:  # swapping one sentence only swaps the names of the outputs
        assert found.p_randomization == 1


def test_the_sentences_that_differ_most_come_first() -> None:
    references = ["one two three", "four five six", "seven eight nine", "ten"]
    a = ["one two three", "four five", "zzz", "ten"]
    b = ["one two", "four five six", "seven eight nine", "ten"]
    found = largest_differences(a, b, references, 2)
    assert found[0].line == 2
    assert len(found) == 2
    assert (found[0].score_a, found[0].score_b) == (0, 100)
    assert 3 not in {difference.line for difference in largest_differences(a, b, references, 10)}
