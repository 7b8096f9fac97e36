"""How often the decoder is given the reference's previous piece, as training goes on.

Scheduled sampling, Bengio et al. 2015 (arXiv:1506.03099), section 2.4.
"""

import math

SCHEDULES = ("constant", "linear", "inverse_sigmoid")


def teacher_forcing_ratio(schedule: str, update: int, *, ratio: float, final_ratio: float, updates: int) -> float:
    """The probability of the reference's piece in an update, the first of which is number 0.

    constant: `ratio`. linear: from `ratio` to `final_ratio` within `updates`. inverse_sigmoid: k / (k + exp(i / k)) with
    k = `updates`, scaled so that it starts at `ratio`, and nowhere below `final_ratio`. A final ratio above the first one
    counts as the first one: the reference is never fed more often as training goes on.
    """
    final_ratio = min(final_ratio, ratio)
    if schedule == "constant":
        return ratio
    if schedule == "linear":
        return ratio + (final_ratio - ratio) * min(update / updates, 1.0)
    if schedule == "inverse_sigmoid":
        # (k + 1) / (k + exp(i / k)) is 1 at the first update; the exponent is bounded because exp overflows near 709.
        share = (updates + 1) / (updates + math.exp(min(update / updates, 700.0)))
        return max(ratio * share, final_ratio)
    raise ValueError(f"teacher_forcing.schedule={schedule}: must be one of {', '.join(SCHEDULES)}")
