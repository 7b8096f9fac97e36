"""Constraints on hand-made cases, and their effect on a whole search."""

import math

import pytest
import torch

from support.fake_models import TableModel, all_outputs, batch_of
from translator.decoding.constraints import Constraints, ForbiddenSequences, ban_repeated_ngrams, penalize_repetition
from translator.decoding.forced_decoding import score_targets
from translator.decoding.search import SearchOptions, search
from translator.ids import BOS, EOS, PAD

SOURCES = [[4, 5, EOS], [6, EOS], [5, 5, 5, 4, EOS]]


def banned(history: list[int], size: int, vocab_size: int = 10) -> set[int]:
    log_probs = torch.zeros(1, vocab_size)
    ban_repeated_ngrams(log_probs, torch.tensor([history]), size)
    return set((log_probs[0] == -math.inf).nonzero().flatten().tolist())


def test_the_piece_that_would_repeat_an_ngram_is_banned() -> None:
    assert banned([4, 5, 6, 4, 5], 3) == {6}
    assert banned([4, 5, 6, 4, 5], 2) == {6}
    assert banned([4, 5, 4, 6, 4], 2) == {5, 6}
    assert banned([4, 4, 4], 3) == {4}
    assert banned([4, 5], 1) == {4, 5}
    assert banned([4, 5], 3) == set()
    assert banned([4, 5, 6], 5) == set()


def test_no_ngram_comes_twice_in_any_output() -> None:
    model = TableModel.random(2, vocab_size=7, end=-3)
    for beam_size in (1, 4):
        options = SearchOptions(beam_size=beam_size, no_repeat_ngram=2, num_hypotheses=beam_size)
        for hypotheses in search(model, *batch_of(SOURCES), options):
            for hypothesis in hypotheses:
                pairs = list(zip(hypothesis.ids, hypothesis.ids[1:], strict=False))
                assert len(pairs) == len(set(pairs))


def test_the_repetition_penalty_moves_logits_of_either_sign_towards_unlikely() -> None:
    logits = torch.tensor([[2.0, -2.0, 1.0, 0.5]])
    penalized = penalize_repetition(logits, torch.tensor([[0, 1, 0]]), 2.0)
    assert penalized.tolist() == [[1.0, -4.0, 1.0, 0.5]]
    assert logits.tolist() == [[2.0, -2.0, 1.0, 0.5]]


def test_forbidden_sequences_are_never_completed() -> None:
    forbidden = ForbiddenSequences([[4], [5, 6], [5, 5, 7], [8, 6]], torch.device("cpu"))
    log_probs = torch.zeros(3, 10)
    forbidden.ban(log_probs, torch.tensor([[9, 5], [5, 5], [9, 9]]))
    rows = [set((row == -math.inf).nonzero().flatten().tolist()) for row in log_probs]
    assert rows == [{4, 6}, {4, 6, 7}, {4}]
    log_probs = torch.zeros(1, 10)
    forbidden.ban(log_probs, torch.empty(1, 0, dtype=torch.long))
    assert set((log_probs[0] == -math.inf).nonzero().flatten().tolist()) == {4}


def test_search_finds_the_best_output_without_the_forbidden_sequences() -> None:
    model = TableModel.random(8, vocab_size=7)
    options = SearchOptions(
        beam_size=400,
        length_penalty="none",
        max_length_ratio=0,
        max_length_extra=3,
        min_length=0,
    )
    found = search(model, *batch_of(SOURCES), options, forbidden=[[4], [5, 6], [6, 6]])
    for source, hypotheses in zip(SOURCES, found, strict=True):
        outputs = {
            ids: score
            for ids, score in all_outputs(model, source, max_length=3).items()
            if 4 not in ids and not any(ids[i : i + 2] in ((5, 6), (6, 6)) for i in range(3))
        }
        assert tuple(hypotheses[0].ids) == max(outputs, key=lambda ids: outputs[ids])


@pytest.mark.parametrize("beam_size", [1, 5])
def test_a_forced_prefix_is_written_and_scored_like_any_output(beam_size: int) -> None:
    model = TableModel.random(5, vocab_size=30)
    prefixes = [[9, 10, 11], [], [12]]
    source, mask = batch_of(SOURCES)
    found = search(model, source, mask, SearchOptions(beam_size=beam_size), prefixes=prefixes)
    free = search(model, source, mask, SearchOptions(beam_size=beam_size))
    assert found[1] == free[1]
    for prefix, hypotheses in zip(prefixes, found, strict=True):
        assert hypotheses[0].ids[: len(prefix)] == prefix
    forced = score_targets(model, source, mask, [hypotheses[0].ids for hypotheses in found])
    assert [h[0].score for h in found] == pytest.approx([result.score for result in forced])


def test_a_prefix_may_violate_every_other_constraint() -> None:
    model = TableModel.random(5, vocab_size=30)
    options = SearchOptions(beam_size=3, max_length_ratio=0, max_length_extra=2, no_repeat_ngram=1)
    found = search(model, *batch_of(SOURCES), options, prefixes=[[9, 9, 9, 9], [9], []], forbidden=[[9]])
    assert found[0][0].ids[:4] == [9, 9, 9, 9]
    assert len(found[0][0].ids) <= 6
    assert found[0][0].score > -1e6
    assert found[1][0].ids[0] == 9
    assert 9 not in found[1][0].ids[1:]


def test_outputs_have_at_least_the_minimum_length() -> None:
    model = TableModel.random(5, vocab_size=30, end=10)
    for beam_size in (1, 3):
        for ratio, min_length in ((0.0, 0), (0.0, 1), (0.0, 3), (1.5, 0), (1.5, 2)):
            options = SearchOptions(beam_size=beam_size, stop="first", min_length_ratio=ratio, min_length=min_length)
            found = search(model, *batch_of(SOURCES), options)
            for source, hypotheses in zip(SOURCES, found, strict=True):  # the model ends as soon as it may
                assert len(hypotheses[0].ids) == max(min_length, int(ratio * (len(source) - 1)))


def test_where_everything_is_forbidden_the_output_ends() -> None:
    model = TableModel.random(5, vocab_size=7)
    options = {"min_length_ratio": 2.0, "no_repeat_ngram": 1}  # four pieces can be written: 1, 4, 5 and 6
    for beam_size in (1, 3):
        found = search(model, *batch_of(SOURCES), SearchOptions(beam_size=beam_size, **options))  # type: ignore[arg-type]
        for hypotheses in found:
            assert len(set(hypotheses[0].ids)) == len(hypotheses[0].ids)
            assert math.isfinite(hypotheses[0].score)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_model_that_allows_nothing_but_the_end_may_end_before_the_minimum_length(beam_size: int) -> None:
    table = torch.full((7, 9), -math.inf, dtype=torch.double)
    table[:, EOS] = 0
    found = search(TableModel(table), *batch_of(SOURCES), SearchOptions(beam_size=beam_size, min_length=2))
    assert [(hypotheses[0].ids, hypotheses[0].score) for hypotheses in found] == [([], 0.0)] * len(SOURCES)


def test_pad_and_bos_are_never_written_and_half_precision_is_scored_in_float32() -> None:
    logits = torch.zeros(2, 9, dtype=torch.bfloat16)
    logits[:, [PAD, BOS]] = 20
    constraints = Constraints(torch.ones(2, 3, dtype=torch.bool), SearchOptions(min_length=0))
    log_probs = constraints.log_probs(logits, 0, lambda: torch.empty(2, 0, dtype=torch.long))
    assert log_probs.dtype == torch.float32
    assert (log_probs[:, [PAD, BOS]] == -math.inf).all()
    assert log_probs[:, [1, EOS, 4, 8]].isfinite().all()
