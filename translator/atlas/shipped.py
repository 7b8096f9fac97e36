"""Measurements that take too long to be repeated for every page: JSON files in data/, each with its provenance."""

import datetime
import json
from importlib import resources
from typing import Any

from translator import __version__
from translator.runs.directory import versions
from translator.runs.hardware import hardware


def shipped(name: str) -> dict[str, Any] | None:
    """The measurement data/NAME.json, {"provenance": …, "figures": …}; None if it is not shipped."""
    file = resources.files("translator.atlas") / "data" / f"{name}.json"
    if not file.is_file():
        return None
    result: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return result


def with_provenance(command: str, figures: dict[str, Any]) -> dict[str, Any]:
    """A measurement made now, by this command on this machine."""
    provenance = {
        "command": command,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "versions": {"translator": __version__, **versions()},
        "machine": hardware(),
    }
    return {"provenance": provenance, "figures": figures}


def provenance_text(measurement: dict[str, Any]) -> str:
    """When and where a measurement was made, in one sentence."""
    provenance = measurement["provenance"]
    machine, used = provenance["machine"], provenance["versions"]
    return (
        f"measured on {provenance['date']} on {machine['processor']}, {machine['threads']} of {machine['cores']} "
        f"cores, with torch {used['torch']} and translator {used['translator']}"
    )
