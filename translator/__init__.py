"""Train, watch and use neural machine-translation models."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from translator.api import Translator as Translator

__version__ = "0.1.0"
__all__ = ["Translator", "__version__"]


def __getattr__(name: str) -> object:
    """Loads `translator.Translator`, and torch with it, when it is first asked for: `import translator` stays light."""
    if name == "Translator":
        from translator.api import Translator

        return Translator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
