"""Checks of values that are more than a type and a range, and the nearest valid name for a wrong one."""

import math
import re

from translator.errors import nearest, require


def parse_duration(option: str, text: str) -> float:
    """Seconds in a duration such as 90s, 20m, 1.5h or 1h30m."""
    match = re.fullmatch(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?", text.strip())
    require(bool(text.strip()) and match is not None, option, text, "give a duration such as 90s, 20m, 1.5h or 1h30m")
    assert match is not None
    hours, minutes, seconds = (float(part or 0) for part in match.groups())
    total = 3600 * hours + 60 * minutes + seconds
    require(total > 0, option, text, "must be longer than 0s")
    require(math.isfinite(total), option, text, "must be shorter")
    return total


def did_you_mean(wrong: str, valid: list[str]) -> str:
    """'did you mean …?' with the nearest valid name, or the list of all names where none is close.

    Names of the same group are compared without the group: `model.foo` is not close to `model.norm`.
    """
    group, _, name = wrong.rpartition(".")
    siblings = {known.rpartition(".")[2]: known for known in valid if known.rpartition(".")[0] == group}
    near = siblings.get(nearest(name, siblings) or "") if siblings else nearest(wrong, valid)
    valid = list(siblings.values()) or valid
    return f"did you mean {near}?" if near else f"choose one of {', '.join(valid)}"
