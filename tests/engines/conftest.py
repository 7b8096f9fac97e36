"""Runs that CTranslate2 can express."""

from collections.abc import Callable
from pathlib import Path

import pytest

from support.exported_runs import SMALL, make_run
from translator.schema.model import TransformerConfig

VARIANTS = {
    "pre": TransformerConfig(**SMALL),
    "post": TransformerConfig(
        **SMALL, norm_order="post", activation="gelu", positions="learned", tie_embeddings="none"
    ),
    "rotary": TransformerConfig(**SMALL, norm="rms", activation="swiglu", positions="rotary", tie_embeddings="target"),
}


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The runs by the names of their variants, each trained once."""
    made: dict[str, Path] = {}

    def get(name: str) -> Path:
        if name not in made:
            folder = tmp_path_factory.mktemp(name)
            made[name] = make_run(folder / "run", VARIANTS[name], joint=name == "pre", num_updates=25)
        return made[name]

    return get
