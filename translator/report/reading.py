"""Reading the files of a run that may or may not be there."""

from typing import Any

from translator.files.atomic import read_json
from translator.files.explain import explain_damage
from translator.runs.directory import RunDirectory


def read_metrics(run: RunDirectory) -> dict[str, Any]:
    """metrics.json; empty while the run is being trained."""
    if not run.metrics.exists():
        return {}
    with explain_damage(run.metrics):
        figures = read_json(run.metrics)
        if not isinstance(figures, dict):
            raise ValueError("not a JSON object")
        return figures
