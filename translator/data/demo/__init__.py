"""A generated parallel corpus in English, German and Chinese with gold word alignments."""

from .alignment import alignment_tokens
from .combinations import Combination
from .generator import LANGUAGES, Example, generate, write

__all__ = ["LANGUAGES", "Combination", "Example", "alignment_tokens", "generate", "write"]
