"""Texts that belong together line by line, and their breakdown by length."""

from collections.abc import Sequence
from pathlib import Path

from translator.errors import UserError
from translator.languages import looks_written_without_spaces, sentence_length

LENGTHS = (
    5,
    10,
    15,
    20,
    30,
    50,
)  # upper bounds of the source-length buckets, in words or, where the sources have no spaces, in characters


def require_equal_lengths(texts: dict[str, Sequence[str]]) -> None:
    """Refuses texts that cannot belong together, naming them as the user did."""
    (first, lines), *others = texts.items()
    for name, other in others:
        if len(other) != len(lines):
            raise UserError(
                f"{name} has {len(other)} lines and {first} has {len(lines)}: line N of each must be the same sentence"
            )


def length_classes(sources: Sequence[str]) -> dict[str, list[int]]:
    """Indices of the sentences by the length of their source: {"1-5": […], …, "51+": […]}, without empty buckets."""
    starts = (1, *(end + 1 for end in LENGTHS))
    names = [f"{start}-{end}" for start, end in zip(starts, LENGTHS, strict=False)] + [f"{starts[-1]}+"]
    classes: dict[str, list[int]] = {name: [] for name in names}
    in_characters = looks_written_without_spaces(sources)
    for index, source in enumerate(sources):
        length = sentence_length(source, in_characters=in_characters)
        if length:
            classes[names[sum(length > end for end in LENGTHS)]].append(index)
    return {name: indices for name, indices in classes.items() if indices}


def guess_language(paths: Sequence[Path]) -> str | None:
    """The language that the names of the files end in, as in test.de or test.de.gz."""
    suffixes = {path.name.removesuffix(".gz").rpartition(".")[2] for path in paths}
    suffix = suffixes.pop() if len(suffixes) == 1 else ""
    return suffix if 2 <= len(suffix) <= 3 and suffix.isalpha() and suffix not in ("txt", "ref", "hyp", "out") else None
