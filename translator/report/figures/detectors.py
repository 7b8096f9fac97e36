"""Sentences in which something has visibly gone wrong, whatever the score says."""

import re
from collections.abc import Sequence

from translator.data.normalization import is_blank
from translator.evaluation.diagnostics import is_copied, is_repeating
from translator.languages import alignment_tokens, is_written_without_spaces, sentence_length

SHORT_RATIO, LONG_RATIO = 0.5, 2.0  # of the reference's length …
LEAST_DIFFERENCE = 3  # … and at least this many words, or characters of a language without spaces
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
DETECTORS = {
    "empty": "nothing was written",
    "copied": "the source was copied",
    "repeating": "words are repeated three times or more in a row, though not in the source",
    "too short": "less than half as long as the reference, and at least three words shorter",
    "too long": "more than twice as long as the reference, and at least three words longer",
    "number lost": "a number that source and reference share is missing",
    "name lost": "a capitalised word that source and reference share is missing, and is never written in lower case",
}


def find_faults(
    sources: Sequence[str], references: Sequence[str], outputs: Sequence[str], target_language: str
) -> list[list[str]]:
    """The names of the detectors that respond to each sentence; none to a sentence with a blank source."""
    lower_case = {word for text in (*sources, *references) for word in alignment_tokens(text) if word.islower()}
    in_characters = is_written_without_spaces(target_language)
    return [
        [] if is_blank(source) else _faults(source, reference, output, lower_case, in_characters)
        for source, reference, output in zip(sources, references, outputs, strict=True)
    ]


def _faults(source: str, reference: str, output: str, lower_case: set[str], in_characters: bool) -> list[str]:
    if is_blank(output):
        return ["empty"]
    length, wanted = (sentence_length(text, in_characters=in_characters) for text in (output, reference))
    names = {name for name in _capitalised(source) & _capitalised(reference) if name.lower() not in lower_case}
    found = {
        "copied": is_copied(source, output) and not is_copied(source, reference),
        "repeating": is_repeating(output) and not is_repeating(source),
        "too short": length < SHORT_RATIO * wanted and wanted - length >= LEAST_DIFFERENCE,
        "too long": length > LONG_RATIO * wanted and length - wanted >= LEAST_DIFFERENCE,
        "number lost": bool((_numbers(source) & _numbers(reference)) - _numbers(output)),
        "name lost": bool(names - set(alignment_tokens(output))),
    }
    return [name for name, is_found in found.items() if is_found]


def _numbers(text: str) -> set[str]:
    return set(_NUMBER.findall(text))


def _capitalised(text: str) -> set[str]:
    return {word for word in alignment_tokens(text) if len(word) > 1 and word[0].isupper() and word[1:].islower()}


def fault_counts(faults: Sequence[Sequence[str]]) -> dict[str, int]:
    return {name: sum(name in of_sentence for of_sentence in faults) for name in DETECTORS}
