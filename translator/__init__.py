"""Train, watch and use neural machine-translation models."""

import os
from typing import TYPE_CHECKING

import translator.process_start  # noqa: F401 - first of all, since it notes the time

if TYPE_CHECKING:
    from translator.api import Translator as Translator

__version__ = "0.1.0"
__all__ = ["Translator", "__version__"]

# Idle torch threads spin while they wait. Next to another busy program that takes time from the threads with work to
# do, and spinning for a shorter time costs nothing on an idle machine (docs/performance.md, "Threads").
# OpenMP's library reads this when torch is loaded.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")


def __getattr__(name: str) -> object:
    """Loads `translator.Translator`, and torch with it, when it is first asked for: `import translator` stays light."""
    if name == "Translator":
        from translator.api import Translator

        return Translator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
