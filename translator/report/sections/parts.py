"""What sections have in common."""

from dataclasses import dataclass
from typing import Any

from translator.report.html import Child, Markup, tag

Figures = dict[str, Any]


@dataclass(frozen=True)
class Section:
    """`anchor` is its address in the page, `short` its name in the list of sections."""

    anchor: str
    short: str
    title: str
    about: str
    content: Markup

    def to_html(self) -> Markup:
        return tag(
            "section",
            tag("h2", self.title),
            tag("p", self.about, class_="about"),
            self.content,
            id=self.anchor,
        )


def by_run(figures: Figures, name: str) -> dict[str, Any]:
    """A section's figures of each run that has them, by the name of the run."""
    return {run["name"]: run[name] for run in figures["runs"] if run[name]}


def left_out(figures: Figures, why: str) -> Markup:
    """Says why a section is empty and how to get it."""
    command = figures["full_command"]
    remedy: Child = [" The full report has it: ", tag("code", command)] if command else None
    return tag("p", why, remedy, class_="note")


def labelled(figures: Figures, name: str, label: str) -> str:
    """The name of a curve or bar: with the run's name where there are two."""
    return f"{label} · {name}" if len(figures["runs"]) > 1 else label


def counted_text(training: dict[str, Any] | None) -> str:
    """What words were counted in: the whole training text, or as much of it as was read."""
    if training is None or training["is_whole"]:
        return "training"
    return f"the first {training['num_pairs']:,} pairs of training"


def counted_texts(figures: Figures) -> str:
    """The same of all runs, which are named where they differ."""
    texts = {run["name"]: counted_text(run.get("training_text")) for run in figures["runs"] if run["frequency"]}
    if len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    return ", ".join(f"{text} ({name})" for name, text in texts.items())


NO_TRANSLATIONS = "Left out, because the translations of the final model were not available when this page was written."
NO_MODEL = "Left out of this quick report, because it takes longer."
NO_TRAINING_TEXT = "Left out, because the training text was not available."
