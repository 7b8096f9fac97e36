"""Beam search against a slow one in plain Python that follows the same published rules, sentence by sentence."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from support.fake_models import TableModel, all_outputs, batch_of
from translator.decoding.hypotheses import is_normalized, length_penalty
from translator.decoding.search import SearchOptions, search
from translator.ids import BOS, EOS, PAD

SOURCES = [[4, EOS], [5, 6, EOS], [4, 4, 5, EOS], [6, 6, 6, 6, 6, EOS], [EOS]]


def reference(model: TableModel, source: list[int], options: SearchOptions) -> list[tuple[list[int], float]]:
    """Finished hypotheses with their normalised scores, best first."""
    log_table = torch.log_softmax(model.table, -1).tolist()
    longest = max(1, int(options.max_length_ratio * (len(source) - 1) + options.max_length_extra))
    start = int(model.encode(*batch_of([source])).summary)
    running = [((), 0.0, start)]  # pieces, log-probability, code
    finished: list[tuple[float, int, tuple[int, ...]]] = []
    for step in range(longest + 1):
        candidates = []
        for ids, score, code in running:
            following = int(model.next_codes(torch.tensor(code), torch.tensor(ids[-1] if ids else BOS)))
            for piece, log_prob in enumerate(log_table[following]):
                is_allowed = step >= options.min_length if piece == EOS else step < longest
                if piece not in (PAD, BOS) and is_allowed:
                    candidates.append((score + log_prob, ids, piece, following))
        candidates.sort(key=lambda candidate: -candidate[0])
        for score, ids, piece, _ in candidates[: options.beam_size]:
            if piece == EOS:
                finished.append((score / length_penalty(step + 1, options), len(finished), ids))
        running = [(*_extended(candidate),) for candidate in candidates if candidate[2] != EOS][: options.beam_size]
        finished.sort(key=lambda entry: (-entry[0], entry[1]))
        stops_at_first = is_normalized(options) and options.stop == "first"
        if not running or (stops_at_first and len(finished) >= options.beam_size):
            break
        wanted = options.num_hypotheses
        last = finished[wanted - 1][0] if len(finished) >= wanted else -math.inf
        if running[0][1] / length_penalty(longest + 1, options) <= last:
            break
    return [(list(ids), score) for score, _, ids in finished[: options.num_hypotheses]]


def _extended(candidate: tuple[float, tuple[int, ...], int, int]) -> tuple[tuple[int, ...], float, int]:
    score, ids, piece, code = candidate
    return (*ids, piece), score, code


@given(
    seed=st.integers(0, 100_000),
    beam_size=st.integers(2, 6),
    penalty=st.sampled_from(["none", "average", "gnmt"]),
    alpha=st.sampled_from([0.0, 0.6, 1.0, 1.7]),
    end=st.sampled_from([-2.0, 0.0, 1.5]),
    num_hypotheses=st.integers(1, 3),
    min_length=st.integers(0, 2),
    stop=st.sampled_from(["first", "exact"]),
)
@settings(max_examples=60, deadline=None)
def test_batched_beam_search_finds_what_the_plain_one_finds(
    seed: int, beam_size: int, penalty: str, alpha: float, end: float, num_hypotheses: int, min_length: int, stop: str
) -> None:
    model = TableModel.random(seed, vocab_size=9, end=end)
    options = SearchOptions(
        beam_size=beam_size,
        num_hypotheses=min(beam_size, num_hypotheses),
        length_penalty=penalty,
        alpha=alpha,
        max_length_ratio=1.0,
        max_length_extra=4,
        min_length=min_length,
        stop=stop,
    )
    for source, hypotheses in zip(SOURCES, search(model, *batch_of(SOURCES), options), strict=True):
        expected = reference(model, source, options)
        assert [hypothesis.ids for hypothesis in hypotheses] == [ids for ids, _ in expected]
        assert [h.normalized_score for h in hypotheses] == pytest.approx([score for _, score in expected])


@pytest.mark.parametrize("penalty", ["average", "gnmt"])
def test_a_hypothesis_that_is_behind_may_still_win_by_its_length(penalty: str) -> None:
    class Late(TableModel):
        """Ending at once has probability 0.55; a hypothesis that continues writes six pieces at no cost and ends."""

        def next_codes(self, codes: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
            return torch.where(tokens == BOS, 0, codes + 1)

    table = torch.full((9, 6), -60.0, dtype=torch.double)
    table[0, EOS], table[0, 4] = math.log(0.55), math.log(0.45)
    table[1:7, 4] = 0.0
    table[7:, EOS] = 0.0
    model = Late(table)
    limits = {"beam_size": 2, "max_length_ratio": 0, "max_length_extra": 10, "min_length": 0}
    options = SearchOptions(length_penalty=penalty, **limits)  # type: ignore[arg-type]
    for (hypothesis,) in search(model, *batch_of(SOURCES), options):
        assert hypothesis.ids == [4] * 7
    plain = SearchOptions(length_penalty="none", **limits)  # type: ignore[arg-type]
    assert all(hypotheses[0].ids == [] for hypotheses in search(model, *batch_of(SOURCES), plain))


@given(
    seed=st.integers(0, 100_000),
    penalty=st.sampled_from(["average", "gnmt"]),
    alpha=st.sampled_from([0.3, 1.0, 1.7]),
    end=st.sampled_from([-2.0, 0.0, 1.5]),
    num_hypotheses=st.integers(1, 3),
)
@settings(max_examples=25, deadline=None)
def test_the_exact_rule_finds_the_best_of_all_outputs_where_the_beam_holds_them(
    seed: int, penalty: str, alpha: float, end: float, num_hypotheses: int
) -> None:
    """A beam wider than there are outputs misses nothing, unless it stops too early."""
    model = TableModel.random(seed, vocab_size=6, end=end)
    options = SearchOptions(
        beam_size=30,
        num_hypotheses=num_hypotheses,
        length_penalty=penalty,
        alpha=alpha,
        max_length_ratio=0,
        max_length_extra=3,
        min_length=0,
        stop="exact",
    )
    for source, hypotheses in zip(SOURCES, search(model, *batch_of(SOURCES), options), strict=True):
        outputs = all_outputs(model, source, max_length=3)
        scores = sorted((s / length_penalty(len(ids) + 1, options) for ids, s in outputs.items()), reverse=True)
        assert [h.normalized_score for h in hypotheses] == pytest.approx(scores[:num_hypotheses])


@given(
    seed=st.integers(0, 100_000),
    beam_size=st.integers(2, 5),
    penalty=st.sampled_from(["none", "average", "gnmt"]),
    end=st.sampled_from([-2.0, 0.0, 1.5]),
)
@settings(max_examples=40, deadline=None)
def test_the_exact_rule_is_never_worse_than_the_first(seed: int, beam_size: int, penalty: str, end: float) -> None:
    model = TableModel.random(seed, vocab_size=9, end=end)
    limits = {"beam_size": beam_size, "num_hypotheses": 2, "length_penalty": penalty, "max_length_extra": 6}
    first, exact = (
        search(model, *batch_of(SOURCES), SearchOptions(**limits, stop=stop)) for stop in ("first", "exact")
    )
    for of_first, of_exact in zip(first, exact, strict=True):
        assert len(of_exact) >= len(of_first)
        for one, other in zip(of_first, of_exact, strict=False):
            assert other.normalized_score >= one.normalized_score
    if penalty == "none":
        assert first == exact


def test_the_exact_rule_continues_for_a_longer_hypothesis() -> None:
    """Two short hypotheses end at once; a third, behind both, is continued at no cost and wins by its mean."""

    class Late(TableModel):
        def next_codes(self, codes: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
            started = torch.where(tokens == 4, 1, 2)  # after 4 a sentence ends; after 5 it continues
            return torch.where(tokens == BOS, 0, torch.where(codes == 0, started, (codes + 1).clamp_max(9)))

    table = torch.full((10, 6), -60.0, dtype=torch.double)
    table[0, EOS], table[0, 4], table[0, 5] = math.log(0.4), math.log(0.35), math.log(0.25)
    table[1, EOS] = 0.0
    table[2:8, 5] = 0.0
    table[8:, EOS] = 0.0
    limits = {"beam_size": 2, "max_length_ratio": 0, "max_length_extra": 10, "min_length": 0}
    found = {
        stop: search(Late(table), *batch_of(SOURCES), SearchOptions(stop=stop, **limits))[0][0].ids  # type: ignore[arg-type]
        for stop in ("first", "exact")
    }
    assert found == {"first": [4], "exact": [5] * 7}


@pytest.mark.parametrize("stop", ["first", "exact"])
def test_a_sentence_alone_is_searched_as_in_a_batch(stop: str) -> None:
    model = TableModel.random(3, vocab_size=9)
    options = SearchOptions(beam_size=4, num_hypotheses=3, stop=stop)
    together = search(model, *batch_of(SOURCES), options)
    assert together == [search(model, *batch_of([source]), options)[0] for source in SOURCES]
