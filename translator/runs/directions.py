"""The directions a run translates in, and the tag that asks for each of them.

The tokenizer of a run determines whether there are tags: if it has one for the target language, every source begins
with it. So a run that starts from one with both directions (init_from) keeps the tag that its weights know.
"""

from dataclasses import dataclass

from translator.config import Config
from translator.data.examples import Reading, language_tag, tag_piece
from translator.data.tokenizer import Tokenizer
from translator.errors import OptionError
from translator.schema.data import Directions


@dataclass(frozen=True)
class Direction:
    source: str
    target: str
    reading: Reading  # how the pairs of the run's corpora become examples of this direction

    def __str__(self) -> str:
        return f"{self.source}-{self.target}"

    @property
    def tags(self) -> tuple[int, ...]:
        """Ids in front of every source."""
        return self.reading.tags


def directions_of(config: Config, tokenizer: Tokenizer) -> list[Direction]:
    """The directions of a run, the one from data.source to data.target first."""
    languages = [(config.data.source, config.data.target)]
    if config.data.directions is Directions.both:
        languages.append((config.data.target, config.data.source))
    ids = tokenizer.tag_ids
    directions = []
    for number, (source, target) in enumerate(languages):
        tag = ids.get(tag_piece(language_tag(target)))
        directions.append(Direction(source, target, Reading(() if tag is None else (tag,), is_reversed=number == 1)))
    return directions


def choose_direction(config: Config, tokenizer: Tokenizer, to: str | None, run: object) -> Direction:
    """The direction into the language `to`, by default the run's own; an error if the run has no such direction."""
    directions = directions_of(config, tokenizer)
    for direction in directions:
        if to in (None, direction.target):
            return direction
    possible = " or ".join(direction.target for direction in directions)
    raise OptionError("to", to, f"{run} translates into {possible} only; give that, or a run that was trained for {to}")
