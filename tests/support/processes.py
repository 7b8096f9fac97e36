"""The environment of the processes that tests start."""

import os
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


def environment(**changes: str) -> dict[str, str]:
    """That of this process, in which `translator` is the one of this checkout and `support` can be imported."""
    inherited = os.environ.get("PYTHONPATH")
    paths = [str(REPOSITORY), str(REPOSITORY / "tests"), *([inherited] if inherited else [])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)} | changes
