"""Measurements of whole trainings, which take too long to be repeated for every page: they are shipped."""

from typing import Any

from translator.atlas.material import Material
from translator.atlas.shipped import shipped


def trainings(material: Material) -> dict[str, Any] | None:
    """Learning curves of both orders of normalisation and of the five scores: data/trainings.json."""
    return shipped("trainings")
