import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

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


def test_a_clear_difference_is_significant_and_none_is_not() -> None:
    options = {"num_bootstrap": 300, "num_randomizations": 300, "metrics": ("bleu", "chrf", "ter")}
    for one in compare_outputs(BAD, GOOD, REFERENCES, "en", **options):  # type: ignore[arg-type]
        assert one.better == "B"
        assert one.p_bootstrap < 0.02
        assert one.p_randomization < 0.02
    for one in compare_outputs(GOOD, GOOD, REFERENCES, "en", **options):  # type: ignore[arg-type]
        assert one.better == ""
        assert one.score_a == one.score_b


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


def test_the_sentences_that_differ_most_come_first() -> None:
    references = ["one two three", "four five six", "seven eight nine", "ten"]
    a = ["one two three", "four five", "zzz", "ten"]
    b = ["one two", "four five six", "seven eight nine", "ten"]
    found = largest_differences(a, b, references, 2)
    assert found[0].line == 2
    assert len(found) == 2
    assert (found[0].score_a, found[0].score_b) == (0, 100)
    assert 3 not in {difference.line for difference in largest_differences(a, b, references, 10)}
