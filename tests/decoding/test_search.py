"""Search is correct when it finds what brute force finds."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from support.fake_models import TableModel, all_outputs, batch_of
from translator.decoding.beam import beam_search
from translator.decoding.constraints import Constraints
from translator.decoding.forced_decoding import score_targets
from translator.decoding.greedy_and_sampling import greedy_or_sample
from translator.decoding.hypotheses import length_penalty
from translator.decoding.search import Hypothesis, SearchOptions, search
from translator.ids import BOS, EOS, PAD
from translator.models.base import Memory

CONSTRAINED = {
    "no_repeat_ngram": 2,
    "repetition_penalty": 1.3,
    "min_length_ratio": 1.0,
}
FORBIDDEN = [[5], [6, 7]]
SOURCES = [[4, EOS], [5, 6, EOS], [4, 4, 5, EOS], [6, 6, 6, 6, 6, EOS], [EOS], [5, 4, 6, 5, EOS]]


def run(model: TableModel, sources: list[list[int]], **options: object) -> list[list[Hypothesis]]:
    return search(model, *batch_of(sources), SearchOptions(**options))  # type: ignore[arg-type]


@pytest.mark.parametrize("min_length", [0, 1])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("penalty", "alpha"), [("none", 1.0), ("average", 1.0), ("average", 0.6), ("gnmt", 0.8), ("gnmt", 0.0)]
)
def test_a_wide_enough_beam_finds_the_best_outputs_that_brute_force_finds(
    penalty: str, alpha: float, seed: int, min_length: int
) -> None:
    model = TableModel.random(seed, vocab_size=6)  # three pieces can be written: 1, 4 and 5
    options = SearchOptions(
        beam_size=130,
        num_hypotheses=20,
        length_penalty=penalty,
        alpha=alpha,
        max_length_ratio=0,
        max_length_extra=4,
        min_length=min_length,
    )
    found = search(model, *batch_of(SOURCES), options)
    for source, hypotheses in zip(SOURCES, found, strict=True):
        outputs = all_outputs(model, source, max_length=4)
        normalized = {
            ids: score / length_penalty(len(ids) + 1, options)
            for ids, score in outputs.items()
            if len(ids) >= min_length
        }
        best = sorted(normalized, key=lambda ids: -normalized[ids])[:20]
        assert [tuple(hypothesis.ids) for hypothesis in hypotheses] == best
        for hypothesis in hypotheses:
            assert hypothesis.score == pytest.approx(outputs[tuple(hypothesis.ids)])
            assert hypothesis.normalized_score == pytest.approx(normalized[tuple(hypothesis.ids)])


@pytest.mark.parametrize("penalty", ["none", "average", "gnmt"])
@pytest.mark.parametrize("seed", range(5))
def test_a_beam_of_one_is_greedy_search(penalty: str, seed: int) -> None:
    model = TableModel.random(seed, vocab_size=90)
    options = SearchOptions(beam_size=1, length_penalty=penalty, stop="first")
    source, mask = batch_of(SOURCES)
    beam, greedy = (
        method(model, source, mask, options, Constraints(mask, options), lambda: None)
        for method in (beam_search, greedy_or_sample)
    )
    assert [[h.ids for h in sentence] for sentence in beam] == [[h.ids for h in sentence] for sentence in greedy]
    for (one,), (other,) in zip(beam, greedy, strict=True):
        assert one.score == pytest.approx(other.score)
        assert one.normalized_score == pytest.approx(other.normalized_score)


def test_greedy_search_takes_the_likeliest_piece_at_every_step() -> None:
    model = TableModel.random(3, vocab_size=9)
    for source, (hypothesis,) in zip(SOURCES, run(model, SOURCES, beam_size=1), strict=True):
        code, previous = model.encode(*batch_of([source])).summary, BOS
        longest = 2 * (len(source) - 1) + 20
        for position in range(longest + 1):
            code = model.next_codes(code, torch.tensor(previous))
            logits = model.table[code].squeeze(0).clone()
            logits[[PAD, BOS]] = -math.inf
            previous = int(logits.argmax()) if position < longest else EOS
            if previous == EOS:
                assert len(hypothesis.ids) == position
                break
            assert hypothesis.ids[position] == previous


@pytest.mark.parametrize("options", [{"beam_size": 1}, {"beam_size": 4, "num_hypotheses": 4}])
def test_the_score_of_the_search_is_the_score_of_the_scorer(options: dict[str, int]) -> None:
    model = TableModel.random(11, vocab_size=50)
    source, mask = batch_of(SOURCES)
    found = run(model, SOURCES, **options)
    for rank in range(options.get("num_hypotheses", 1)):
        forced = score_targets(model, source, mask, [sentence[rank].ids for sentence in found])
        for sentence, given_score in zip(found, forced, strict=True):
            assert sentence[rank].score == pytest.approx(given_score.score)
            assert len(given_score.piece_scores) == len(sentence[rank].ids) + 1


@pytest.mark.parametrize("seed", range(6))
def test_a_beam_that_is_exhaustive_is_never_beaten_by_a_smaller_one(seed: int) -> None:
    model = TableModel.random(seed, vocab_size=6)
    limits = {"length_penalty": "none", "max_length_ratio": 0, "max_length_extra": 4}
    best = [sentence[0].score for sentence in run(model, SOURCES, beam_size=130, **limits)]
    for beam_size in (1, 2, 3, 5, 8):
        smaller = [sentence[0].score for sentence in run(model, SOURCES, beam_size=beam_size, **limits)]
        assert all(small <= large + 1e-9 for small, large in zip(smaller, best, strict=True))


@given(seed=st.integers(0, 10_000), beam_size=st.integers(2, 9), penalty=st.sampled_from(["none", "average", "gnmt"]))
@settings(max_examples=30, deadline=None)
def test_n_best_lists_are_sorted_and_distinct_and_within_their_limits(seed: int, beam_size: int, penalty: str) -> None:
    model = TableModel.random(seed, vocab_size=8)
    found = run(
        model, SOURCES, beam_size=beam_size, num_hypotheses=beam_size, length_penalty=penalty, max_length_extra=3
    )
    for source, hypotheses in zip(SOURCES, found, strict=True):
        assert 1 <= len(hypotheses) <= beam_size
        scores = [hypothesis.normalized_score for hypothesis in hypotheses]
        assert scores == sorted(scores, reverse=True)
        assert len({tuple(hypothesis.ids) for hypothesis in hypotheses}) == len(hypotheses)
        for hypothesis in hypotheses:
            assert len(hypothesis.ids) <= 2 * (len(source) - 1) + 3
            assert not {PAD, BOS, EOS} & set(hypothesis.ids)


@pytest.mark.parametrize(
    "options",
    [
        {"beam_size": 1},
        {"beam_size": 4, "num_hypotheses": 3},
        {"beam_size": 3, "length_penalty": "none"},
        {"num_hypotheses": 3, "sample": True, "seed": 5},
        {"beam_size": 3, **CONSTRAINED},
        {"beam_size": 1, **CONSTRAINED},
        {"num_hypotheses": 3, "sample": True, "seed": 5, **CONSTRAINED},
    ],
)
@pytest.mark.parametrize("dtype", [torch.double, torch.bfloat16])  # which makes many scores equal
def test_an_output_does_not_depend_on_batch_size_order_or_neighbours(
    options: dict[str, object], dtype: torch.dtype
) -> None:
    model = TableModel.random(21, vocab_size=70, end=0.5)
    model.table = model.table.to(dtype)
    generator = torch.Generator().manual_seed(1)
    sources = [
        [
            *torch.randint(4, 70, (int(torch.randint(0, 12, (), generator=generator)),), generator=generator).tolist(),
            EOS,
        ]
        for _ in range(24)
    ]
    seeds = list(range(len(sources)))
    search_options = SearchOptions(**options)  # type: ignore[arg-type]

    def outputs(order: list[int], batch_size: int) -> dict[int, list[list[int]]]:
        results = {}
        for first in range(0, len(order), batch_size):
            chosen = order[first : first + batch_size]
            source, mask = batch_of([sources[index] for index in chosen])
            found = search(
                model,
                source,
                mask,
                search_options,
                prefixes=[sources[index][:-1][:2] if index % 3 == 0 else [] for index in chosen],
                forbidden=FORBIDDEN if "no_repeat_ngram" in options else (),
                seeds=[seeds[index] for index in chosen],
            )
            results.update({i: [h.ids for h in hypotheses] for i, hypotheses in zip(chosen, found, strict=True)})
        return results

    expected = outputs(seeds, batch_size=1)
    assert outputs(seeds, batch_size=24) == expected
    assert outputs(seeds[::-1], batch_size=5) == expected
    assert outputs(torch.randperm(24, generator=generator).tolist(), batch_size=7) == expected


def test_more_padding_changes_nothing() -> None:
    model = TableModel.random(4, vocab_size=30)
    source, mask = batch_of(SOURCES)
    wider = torch.nn.functional.pad(source, (0, 9), value=PAD)
    options = SearchOptions(beam_size=3)
    assert search(model, wider, wider != PAD, options) == search(model, source, mask, options)


def test_a_finished_hypothesis_is_never_lost() -> None:
    # Ending at once is by far the best; after that, ending is impossible until the maximum length.
    table = torch.zeros(3, 12, dtype=torch.double)
    table[:, EOS] = -30.0

    class Once(TableModel):
        def next_codes(self, codes: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
            return torch.where(tokens == BOS, 1, 2)

    table[1, EOS] = 4.0
    for penalty in ("none", "average", "gnmt"):
        options = {"beam_size": 4, "num_hypotheses": 4, "length_penalty": penalty, "min_length": 0}
        for hypotheses in run(Once(table), SOURCES, **options):
            assert hypotheses[0].ids == []


def test_a_model_that_never_predicts_the_end_is_stopped_at_the_maximum_length() -> None:
    model = TableModel.random(1, vocab_size=12, end=-100)
    for beam_size in (1, 4):
        found = run(model, SOURCES, beam_size=beam_size, max_length_ratio=1.5, max_length_extra=2)
        for source, hypotheses in zip(SOURCES, found, strict=True):
            assert [len(h.ids) for h in hypotheses] == [int(1.5 * (len(source) - 1)) + 2]


def test_an_impossible_end_and_a_diverged_model_still_give_one_hypothesis_for_every_sentence() -> None:
    never = TableModel.random(1, vocab_size=12)
    never.table[:, EOS] = -math.inf
    diverged = TableModel(torch.full((10, 12), math.nan))
    for model, beam_size in itertools.product((never, diverged), (1, 3)):
        found = run(model, SOURCES, beam_size=beam_size, max_length_ratio=1, max_length_extra=1)
        assert [len(hypotheses) for hypotheses in found] == [1] * len(SOURCES)
        for source, (hypothesis,) in zip(SOURCES, found, strict=True):
            assert len(hypothesis.ids) <= len(source)


class Counting(TableModel):
    """Ends after as many steps as the source's first id says."""

    def __init__(self) -> None:
        table = torch.zeros(40, 12, dtype=torch.double)
        table[1:, EOS], table[0, EOS] = -60, 60
        super().__init__(table)

    def next_codes(self, codes: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        return (codes - 1).clamp_min(0)

    def encode(self, source: torch.Tensor, source_mask: torch.Tensor) -> Memory:
        return super().encode(source, source_mask)._replace(summary=source[:, 0])


def test_finished_sentences_leave_the_batch() -> None:
    model = Counting()
    found = run(model, [[4, EOS], [8, EOS], [16, EOS]], beam_size=1)
    assert [len(hypotheses[0].ids) for hypotheses in found] == [3, 7, 15]
    assert model.num_rows == 4 + 8 + 16
    model.num_rows = 0
    run(model, [[4, EOS], [8, EOS], [16, EOS]], beam_size=2)
    assert model.num_rows == 3 + 2 * (3 + 7 + 15)  # one row for each sentence in the first step, then two


def test_greedy_search_lets_the_sentences_of_a_large_batch_leave_in_groups() -> None:
    model = Counting()
    found = run(model, [[4, EOS], [6, EOS], *([16, EOS] for _ in range(14))], beam_size=1)
    assert [len(hypotheses[0].ids) for hypotheses in found] == [3, 5, *(15 for _ in range(14))]
    assert model.num_rows == 6 * 16 + 10 * 14  # the first stays until the second has ended too
