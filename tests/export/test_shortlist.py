"""The translation probabilities behind a shortlist, and its file."""

from pathlib import Path

import numpy as np
import pytest

from translator.data.tokenizer import Tokenizer
from translator.errors import UserError
from translator.export import shortlist
from translator.export.shortlist import translation_table, write_shortlist


def model_one(pairs: list[tuple[list[int], list[int]]], num_iterations: int) -> dict[tuple[int, int], float]:
    """IBM Model 1 with dictionaries, as in figure 1 of Brown et al. 1993."""
    table = {(s, t): 1.0 for source, target in pairs for s in source for t in target}
    for _ in range(num_iterations):
        counts = dict.fromkeys(table, 0.0)
        for source, target in pairs:
            for t in target:
                total = sum(table[s, t] for s in source)
                for s in source:
                    counts[s, t] += table[s, t] / total
        totals: dict[int, float] = {}
        for (s, _t), count in counts.items():
            totals[s] = totals.get(s, 0) + count
        table = {(s, t): count / totals[s] for (s, t), count in counts.items()}
    return table


def test_the_table_is_that_of_model_one() -> None:
    generator = np.random.default_rng(3)
    pairs = [
        (generator.integers(4, 9, size).tolist(), generator.integers(4, 11, 1 + size // 2).tolist())
        for size in generator.integers(1, 7, 30)
    ]
    table = translation_table([np.array(s) for s, _ in pairs], [np.array(t) for _, t in pairs])
    found = {(int(s), int(t)): float(p) for s, t, p in zip(*table, strict=True)}
    assert found == pytest.approx(model_one(pairs, shortlist.NUM_ITERATIONS))


def test_the_file_lists_likely_translations_copies_and_frequent_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shortlist, "NUM_FREQUENT", 2)
    monkeypatch.setattr(shortlist, "NUM_TRANSLATIONS", 1)
    pairs = [("red house", "rotes Haus"), ("red", "rotes"), ("house", "Haus"), ("old house", "altes Haus")] * 20
    tokenizer = Tokenizer.train(pairs, vocab_size=330)
    assert write_shortlist([*pairs, ("", "nichts"), ("nothing", "")], tokenizer, tmp_path / "vmap.txt") == len(pairs)
    lines = (tmp_path / "vmap.txt").read_text(encoding="utf-8").splitlines()
    table = dict(line.split("\t") for line in lines)
    always = table[""].split()
    assert always[0] == "</s>"
    assert "▁Haus" in always
    assert len(always) == 3
    assert table["▁red"].split() == ["▁red", "▁rotes"]
    assert table["▁house"].split()[-1] == "▁Haus"


def test_a_corpus_without_a_pair_is_refused(tmp_path: Path) -> None:
    tokenizer = Tokenizer.train([("a b", "c d")], vocab_size=300)
    for pairs in ([], [("", "c"), ("a", "")]):
        with pytest.raises(UserError, match=r"^--shortlist: the run's training corpus has no pair .*; leave it out$"):
            write_shortlist(pairs, tokenizer, tmp_path / "vmap.txt")
    assert not (tmp_path / "vmap.txt").exists()
