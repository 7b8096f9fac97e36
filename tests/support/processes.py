"""The environment for processes started by tests."""

import os
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


def environment(**changes: str) -> dict[str, str]:
    """This process's environment, with `translator` from this checkout and `support` importable."""
    inherited = os.environ.get("PYTHONPATH")
    paths = [str(REPOSITORY), str(REPOSITORY / "tests"), *([inherited] if inherited else [])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)} | changes
