"""How many pairs each step of cleaning met, with examples: printed for the user and kept in the run's manifest."""

from dataclasses import asdict, dataclass, field
from typing import Any

STEPS = (
    "normalize",
    "drop_blank",
    "max_characters",
    "max_ratio",
    "drop_identical",
    "drop_leaked",
    "drop_duplicates",
)
MAX_EXAMPLES = 3
STORED_CHARACTERS = 200
SHOWN_CHARACTERS = 40


@dataclass
class Example:
    line: int  # from 1, in the corpus
    source: str
    target: str

    def __str__(self) -> str:
        source, target = (_shortened(text, SHOWN_CHARACTERS) for text in (self.source, self.target))
        return f"line {self.line}: {source} | {target}"


@dataclass
class Step:
    count: int = 0
    examples: list[Example] = field(default_factory=list)


@dataclass
class Overlap:
    """How much of a held-out corpus occurs in training: whole pairs as found, sources alone as far as they stay."""

    name: str
    num_pairs: int
    num_pairs_in_training: int
    num_sources_in_training: int


@dataclass
class CleaningReport:
    name: str
    options: dict[str, Any]  # of Cleaning
    num_read: int = 0
    num_kept: int = 0
    steps: dict[str, Step] = field(default_factory=lambda: {name: Step() for name in STEPS})
    overlaps: list[Overlap] = field(default_factory=list)  # known at the end of the corpus

    def count(self, name: str, line: int, source: str, target: str) -> None:
        step = self.steps[name]
        step.count += 1
        if len(step.examples) < MAX_EXAMPLES:
            step.examples.append(Example(line, _stored(source), _stored(target)))

    def __str__(self) -> str:
        rows = [f"cleaning of {self.name}: {self.num_read:,} pairs read, {self.num_kept:,} kept"]
        for name, step in self.steps.items():
            start = f"  {name:<16}{step.count:>10,} {self._effect(name):<8}"
            examples = [str(example) for example in step.examples] or [""]
            rows += [(start + examples[0]).rstrip(), *(" " * len(start) + example for example in examples[1:])]
        for overlap in self.overlaps:
            rows.append(
                f"  {overlap.name}, {overlap.num_pairs:,} pairs: {overlap.num_pairs_in_training:,} found in this corpus"
                f"; {overlap.num_sources_in_training:,} sources in what is kept of it"
            )
        return "\n".join(rows)

    def _effect(self, name: str) -> str:
        if not self.options[name]:
            return "kept" if self.steps[name].count else "(off)"
        return "changed" if name == "normalize" else "removed"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "CleaningReport":
        """The inverse of `to_dict`, for reports kept beside what was made of a corpus."""
        steps = {
            name: Step(step["count"], [Example(**example) for example in step["examples"]])
            for name, step in values["steps"].items()
        }
        return cls(**{**values, "steps": steps, "overlaps": [Overlap(**overlap) for overlap in values["overlaps"]]})


def _stored(text: str) -> str:
    """Escaped where a terminal would show nothing or, worse, obey."""
    start = text[: STORED_CHARACTERS + 1]
    visible = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in start)
    return _shortened(visible, STORED_CHARACTERS)


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
