"""Learning rates against their formulas, and their shape at the edges."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from translator.training.schedule import LearningRate

NAMES = ("inverse_sqrt", "cosine", "wsd", "constant")


@pytest.mark.parametrize("update", [1, 399, 400, 401, 10_000])
def test_inverse_sqrt_is_the_transformer_papers_formula(update: int) -> None:
    warmup, size = 400, 512
    paper = size**-0.5 * min(update**-0.5, update * warmup**-1.5)  # Vaswani et al. 2017, equation 3
    peak = size**-0.5 * warmup**-0.5
    assert LearningRate("inverse_sqrt", peak, warmup)(update, 10_000) == pytest.approx(paper, rel=1e-12)


def test_cosine_halves_at_the_middle_and_ends_at_the_final_ratio() -> None:
    rate = LearningRate("cosine", 2.0, 100, final_ratio=0.1)
    assert rate(50, 1100) == pytest.approx(1.0)
    assert rate(100, 1100) == pytest.approx(2.0)
    assert rate(600, 1100) == pytest.approx(2.0 * 0.55)
    assert rate(350, 1100) == pytest.approx(2.0 * (0.1 + 0.9 * (1 + math.cos(math.pi / 4)) / 2))
    assert rate(1100, 1100) == pytest.approx(0.2)


def test_wsd_holds_the_peak_and_leaves_it_in_a_straight_line() -> None:
    rate = LearningRate("wsd", 3.0, 100, decay_share=0.2, final_ratio=0.0)
    assert [rate(update, 1000) for update in (50, 100, 500, 800)] == pytest.approx([1.5, 3.0, 3.0, 3.0])
    assert [rate(update, 1000) for update in (850, 900, 1000)] == pytest.approx([2.25, 1.5, 0.0])


def test_constant_stays() -> None:
    rate = LearningRate("constant", 1.0, 4)
    assert [rate(update, 100) for update in (1, 2, 4, 5, 100)] == pytest.approx([0.25, 0.5, 1, 1, 1])


def test_warm_up_takes_at_most_a_quarter_of_the_updates() -> None:
    rate = LearningRate("constant", 1.0, 1000)
    assert rate(25, 100) == pytest.approx(1.0)
    assert rate(5, 100) == pytest.approx(0.2)


@given(
    name=st.sampled_from(NAMES),
    update=st.integers(1, 5000),
    more=st.floats(0, 5000),
    warmup=st.integers(0, 6000),
    decay_share=st.floats(0.01, 1),
    final_ratio=st.floats(0, 0.99),
)
def test_every_rate_is_finite_and_between_zero_and_the_peak(
    name: str, update: int, more: float, warmup: int, decay_share: float, final_ratio: float
) -> None:
    value = LearningRate(name, 0.5, warmup, decay_share, final_ratio)(update, update + more)
    assert 0 <= value <= 0.5
    assert value > 0 or more < 1
