"""Whether the model is right as often as it believes.

The reference is given piece by piece (teacher forcing). The confidence at a position is the probability of the piece
that the model finds most likely, which is right if it is the reference's. With the positions in bins of confidence,
ECE = Σ_b |B_b| / N · |accuracy(B_b) − confidence(B_b)|

(Guo et al. 2017, equation 3; for translation, Wang et al. 2020).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from translator.report.material import ForcedSentence

NUM_BINS = 20


def calibration(sentences: Sequence[ForcedSentence]) -> dict[str, Any]:
    """The expected calibration error and the bins of the reliability diagram."""
    confidences = np.concatenate([sentence.confidences for sentence in sentences]).astype(np.float64)
    is_right = np.concatenate([sentence.predictions == np.array(sentence.target_ids) for sentence in sentences])
    # The interval of bin b is (b / B, (b + 1) / B].
    bins = np.clip(np.ceil(confidences * NUM_BINS).astype(int) - 1, 0, NUM_BINS - 1)
    counts = np.bincount(bins, minlength=NUM_BINS)
    accuracy_sums = np.bincount(bins, weights=is_right, minlength=NUM_BINS)
    confidence_sums = np.bincount(bins, weights=confidences, minlength=NUM_BINS)
    error = np.abs(accuracy_sums - confidence_sums).sum() / max(1, len(confidences))
    rows = [
        {
            "from": number / NUM_BINS,
            "to": (number + 1) / NUM_BINS,
            "num_pieces": int(counts[number]),
            "accuracy": float(accuracy_sums[number] / counts[number]) if counts[number] else None,
            "confidence": float(confidence_sums[number] / counts[number]) if counts[number] else None,
        }
        for number in range(NUM_BINS)
    ]
    return {
        "expected_calibration_error": float(error),
        "accuracy": float(is_right.mean()),
        "confidence": float(confidences.mean()),
        "num_pieces": len(confidences),
        "bins": rows,
    }
