"""Beam search against a slow one in plain Python that follows the same published rules, sentence by sentence."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from support.fake_models import TableModel, batch_of
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
        if not running or (is_normalized(options) and len(finished) >= options.beam_size):
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
)
@settings(max_examples=60, deadline=None)
def test_batched_beam_search_finds_what_the_plain_one_finds(
    seed: int, beam_size: int, penalty: str, alpha: float, end: float, num_hypotheses: int, min_length: int
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
