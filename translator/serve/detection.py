"""Which of the languages that can be translated a text is written in."""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from py3langid.langid import MODEL_FILE, LanguageIdentifier  # type: ignore[import-untyped]

from translator.languages import language_subtag

LONGEST_TEXT = 2_000  # characters looked at; more make no difference


@cache
def _identifier() -> LanguageIdentifier:
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


class Detected(NamedTuple):
    language: str  # as the models call it
    confidence: float  # per cent


class Detector:
    """Ranks the languages of the models. The confidence is the probability among all languages that py3langid knows.

    A text in a language without a model therefore gets the most similar language, with a low confidence, and so does a
    text of a few letters. A language that py3langid does not know has confidence 0.
    """

    def __init__(self, languages: Sequence[str]) -> None:
        self.languages = list(languages)
        self._identifier = _identifier()

    def rank(self, text: str, languages: Sequence[str] | None = None) -> list[Detected]:
        """The languages, or those of the models, likeliest first."""
        shares = dict(self._identifier.rank(text[:LONGEST_TEXT]))
        found = [
            Detected(language, round(100 * float(shares.get(language_subtag(language), 0.0)), 1))
            for language in (self.languages if languages is None else languages)
        ]
        return sorted(found, key=lambda detected: -detected.confidence)
