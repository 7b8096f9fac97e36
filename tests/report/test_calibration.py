import numpy as np
import pytest

from translator.report.figures.calibration import NUM_BINS, calibration
from translator.report.material import ForcedSentence


def sentence(confidences: list[float], is_right: list[bool]) -> ForcedSentence:
    target = list(range(10, 10 + len(confidences)))
    predictions = np.array([piece if right else 5 for piece, right in zip(target, is_right, strict=True)])
    return ForcedSentence(0, [4, 3], target, np.zeros(len(target)), np.array(confidences), predictions, None)


def test_the_error_is_the_weighted_distance_of_the_bins() -> None:
    rng = np.random.default_rng(0)
    confidences, is_right = rng.uniform(0.001, 1, 500), rng.random(500) < 0.6
    found = calibration(
        [
            sentence(list(confidences[:200]), list(is_right[:200])),
            sentence(list(confidences[200:]), list(is_right[200:])),
        ]
    )
    error = 0.0
    for number in range(NUM_BINS):  # Guo et al. 2017, equations 1 to 3, one bin at a time
        inside = (confidences > number / NUM_BINS) & (confidences <= (number + 1) / NUM_BINS)
        if inside.any():
            error += inside.sum() / 500 * abs(is_right[inside].mean() - confidences[inside].mean())
            assert found["bins"][number]["accuracy"] == pytest.approx(is_right[inside].mean())
            assert found["bins"][number]["confidence"] == pytest.approx(confidences[inside].mean())
        assert found["bins"][number]["num_pieces"] == inside.sum()
    assert found["expected_calibration_error"] == pytest.approx(error)
    assert found["accuracy"] == pytest.approx(is_right.mean())
    assert found["num_pieces"] == 500


def test_a_certain_model_that_is_always_right_has_no_error() -> None:
    found = calibration([sentence([1.0, 1.0], [True, True])])
    assert found["expected_calibration_error"] == 0
    assert found["bins"][-1]["num_pieces"] == 2
    assert found["bins"][0]["accuracy"] is None
