"""A generated parallel corpus in English, German and Chinese with gold word alignments."""

from translator.demo.combinations import Combination
from translator.demo.generator import LANGUAGES, Example, generate, write

__all__ = ["LANGUAGES", "Combination", "Example", "generate", "write"]
