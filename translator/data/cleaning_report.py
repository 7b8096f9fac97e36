"""How many pairs each cleaning step affected, with examples: printed for the user and stored in the run's manifest."""

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
    line: int  # in the corpus, counted from 1
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
    """How much of a held-out corpus occurs in training: pairs, even if removed, and sources of the kept pairs."""

    name: str
    num_pairs: int
    num_pairs_in_training: int
    num_sources_in_training: int
    two_way: bool = False  # targets count as sources, too


@dataclass
class CleaningReport:
    name: str
    options: dict[str, Any]  # of Cleaning
    num_read: int = 0
    num_kept: int = 0
    steps: dict[str, Step] = field(default_factory=lambda: {name: Step() for name in STEPS})
    overlaps: list[Overlap] = field(default_factory=list)  # known once the whole corpus is read

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
            texts = "sources and targets" if overlap.two_way else "sources"
            rows.append(
                f"  {overlap.name}, {overlap.num_pairs:,} pairs: {overlap.num_pairs_in_training:,} found in this corpus"
                f"; {overlap.num_sources_in_training:,} {texts} in the pairs kept"
            )
        return "\n".join(rows)

    def removed(self) -> str:
        """What removed how many pairs, in one line."""
        steps = {f"data.cleaning.{name}": step for name, step in self.steps.items() if self._effect(name) == "removed"}
        return ", ".join(
            f"{name} removed {step.count:,} (such as {step.examples[0]})" for name, step in steps.items() if step.count
        )

    def _effect(self, name: str) -> str:
        if not self.options[name]:
            return "kept" if self.steps[name].count else "(off)"
        return "changed" if name == "normalize" else "removed"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "CleaningReport":
        """The inverse of `to_dict`, for reports stored with a tokenised corpus."""
        steps = {
            name: Step(step["count"], [Example(**example) for example in step["examples"]])
            for name, step in values["steps"].items()
        }
        return cls(**{**values, "steps": steps, "overlaps": [Overlap(**overlap) for overlap in values["overlaps"]]})


def _stored(text: str) -> str:
    """Escapes characters that a terminal would hide or, worse, obey."""
    start = text[: STORED_CHARACTERS + 1]
    visible = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in start)
    return _shortened(visible, STORED_CHARACTERS)


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
