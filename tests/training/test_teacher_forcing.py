import math

import pytest

from translator.training.teacher_forcing import teacher_forcing_ratio


@pytest.mark.parametrize("update", [0, 7, 10**9])
def test_constant_stays(update: int) -> None:
    assert teacher_forcing_ratio("constant", update, ratio=0.7, final_ratio=0.1, updates=10) == 0.7


@pytest.mark.parametrize(("update", "expected"), [(0, 0.9), (25, 0.7), (50, 0.5), (100, 0.1), (1000, 0.1)])
def test_linear_goes_straight_and_stops(update: int, expected: float) -> None:
    ratio = teacher_forcing_ratio("linear", update, ratio=0.9, final_ratio=0.1, updates=100)
    assert ratio == pytest.approx(expected)


@pytest.mark.parametrize("update", [0, 100, 400, 700])
def test_inverse_sigmoid_is_the_papers_formula(update: int) -> None:
    ratio = teacher_forcing_ratio("inverse_sigmoid", update, ratio=1.0, final_ratio=0.0, updates=100)
    assert ratio == pytest.approx(100 / (100 + math.exp(update / 100)))


def test_inverse_sigmoid_is_scaled_and_falls_no_further_than_the_final_ratio() -> None:
    def ratio(update: int) -> float:
        return teacher_forcing_ratio("inverse_sigmoid", update, ratio=0.8, final_ratio=0.25, updates=50)

    assert ratio(0) == pytest.approx(0.8 * 50 / 51)
    values = [ratio(update) for update in range(1000)]
    assert values == sorted(values, reverse=True)
    assert values[-1] == 0.25
    assert ratio(10**9) == 0.25  # exp would overflow


def test_unknown_schedule_is_refused() -> None:
    with pytest.raises(ValueError, match=r"teacher_forcing\.schedule=cosine"):
        teacher_forcing_ratio("cosine", 1, ratio=1.0, final_ratio=0.5, updates=10)
