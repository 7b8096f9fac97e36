"""The tree of a search against all continuations of the hypotheses it kept, found by brute force."""

import math
from typing import Any

import pytest
import torch

from support.fake_models import TableModel, all_outputs, batch_of
from translator.decoding.constraints import Constraints
from translator.decoding.hypotheses import length_penalty
from translator.decoding.search import SearchOptions, search
from translator.ids import BOS, EOS, PAD
from translator.inspection.beam_tree import beam_tree

SOURCE = [4, 6, 5, EOS]
OPTIONS = SearchOptions(beam_size=3, num_hypotheses=3, max_length_ratio=0, max_length_extra=5)


def tree_of(model: TableModel, options: SearchOptions = OPTIONS, **more: Any) -> list[dict[str, Any]]:
    return beam_tree(model, *batch_of([SOURCE]), options, str, **more)


def pieces_to(nodes: list[dict[str, Any]], node: dict[str, Any]) -> tuple[int, ...]:
    before = () if node["parent"] is None else pieces_to(nodes, nodes[node["parent"]])
    return (*before, int(node["piece"]))


def log_probability(model: TableModel, pieces: tuple[int, ...]) -> float:
    """Of the pieces after BOS, straight from the table."""
    code, total = int(model.encode(*batch_of([SOURCE])).summary), 0.0
    log_table = torch.log_softmax(model.table, -1)
    previous = BOS
    for piece in pieces:
        code = int(model.next_codes(torch.tensor(code), torch.tensor(previous)))
        total += float(log_table[code, piece])
        previous = piece
    return total


@pytest.mark.parametrize("seed", range(6))
def test_every_step_has_the_best_continuations_of_what_was_kept(seed: int) -> None:
    model = TableModel.random(seed, vocab_size=9)
    nodes = tree_of(model)
    assert [node["id"] for node in nodes] == list(range(len(nodes)))
    longest = int(Constraints(batch_of([SOURCE])[1], OPTIONS).longest)
    kept: list[tuple[int, ...]] = [()]
    for step in range(max(node["step"] for node in nodes) + 1):
        own = [node for node in nodes if node["step"] == step]
        pieces = [EOS] if step == longest else [p for p in range(9) if p not in (PAD, BOS) and (step or p != EOS)]
        every = [(log_probability(model, (*before, piece)), (*before, piece)) for before in kept for piece in pieces]
        expected = sorted(every, reverse=True)[: 2 * OPTIONS.beam_size]
        assert [pieces_to(nodes, node) for node in own] == [path for _, path in expected]
        for node, (score, _) in zip(own, expected, strict=True):
            assert node["score"] == pytest.approx(score, abs=1e-4)
        going_on = [path for _, path in expected if path[-1] != EOS][: OPTIONS.beam_size]
        assert [pieces_to(nodes, node) for node in own if node["kept"]] == going_on
        ended = [path for _, path in expected[: OPTIONS.beam_size] if path[-1] == EOS]
        assert [pieces_to(nodes, node) for node in own if node["ended"]] == ended
        kept = going_on
    assert any(not node["kept"] and not node["ended"] for node in nodes)  # there were branches to prune


@pytest.mark.parametrize("seed", range(6))
def test_the_marked_path_is_the_best_hypothesis(seed: int) -> None:
    model = TableModel.random(seed, vocab_size=7)
    (found,) = search(model, *batch_of([SOURCE]), OPTIONS)
    nodes = tree_of(model)
    *path, end = [node for node in nodes if node["best"]]
    assert [int(node["piece"]) for node in path] == found[0].ids
    assert end["ended"]
    assert end["score"] == pytest.approx(found[0].score, abs=1e-4)
    assert end["normalized_score"] == pytest.approx(found[0].normalized_score, abs=1e-4)
    finished = {pieces_to(nodes, node)[:-1] for node in nodes if node["ended"]}
    assert {tuple(hypothesis.ids) for hypothesis in found} <= finished


def test_a_beam_that_is_wide_enough_finds_the_best_of_all_outputs() -> None:
    model = TableModel.random(3, vocab_size=6)
    options = SearchOptions(beam_size=200, max_length_ratio=0, max_length_extra=4, stop="exact")
    end = next(node for node in tree_of(model, options) if node["best"] and node["ended"])
    outputs = all_outputs(model, SOURCE, 4)
    best = max(score / float(length_penalty(len(o) + 1.0, options)) for o, score in outputs.items() if o)
    assert end["normalized_score"] == pytest.approx(best, abs=1e-4)


def test_a_prefix_has_no_branches_and_another_output_can_be_marked() -> None:
    model = TableModel.random(1, vocab_size=7)
    nodes = tree_of(model, prefix=[5, 6])
    assert [(node["step"], node["piece"]) for node in nodes if node["step"] < 2] == [(0, "5"), (1, "6")]
    assert all(node["best"] for node in nodes[:2])
    other = pieces_to(nodes, [node for node in nodes if node["ended"]][-1])[:-1]
    assert [int(node["piece"]) for node in tree_of(model, prefix=[5, 6], best=other) if node["best"]] == [*other, EOS]
    assert not any(node["best"] for node in tree_of(model, best=[1, 1, 1, 1, 1, 1, 1])[1:])


def test_a_model_that_has_diverged_gives_an_empty_tree() -> None:
    model = TableModel(torch.full((11, 7), math.nan, dtype=torch.double))
    assert tree_of(model) == []
