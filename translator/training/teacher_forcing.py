"""How often the decoder is given the reference's previous piece, as training progresses.

Scheduled sampling, Bengio et al. 2015 (arXiv:1506.03099), section 2.4.
"""

import math

SCHEDULES = ("constant", "linear", "inverse_sigmoid")


def teacher_forcing_ratio(schedule: str, update: int, *, ratio: float, final_ratio: float, updates: int) -> float:
    """The probability of the reference's piece in an update; updates are numbered from 0.

    constant: `ratio`. linear: from `ratio` to `final_ratio` within `updates`. inverse_sigmoid: `ratio` times
    k / (k + exp(i / k)) with k = `updates`, never below `final_ratio`.
    """
    if schedule == "constant":
        return ratio
    if schedule == "linear":
        return ratio + (final_ratio - ratio) * min(update / updates, 1.0)
    if schedule == "inverse_sigmoid":
        exponential = math.exp(min(update / updates, 700.0))  # a double overflows near 709
        return max(ratio * updates / (updates + exponential), final_ratio)
    raise ValueError(f"teacher_forcing.schedule={schedule}: must be one of {', '.join(SCHEDULES)}")
