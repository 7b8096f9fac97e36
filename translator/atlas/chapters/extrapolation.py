"""The part of chapter 5 about sentences longer than those seen in training."""

from typing import Any

from translator.atlas.chapters.parts import code, look, made_by, missing, text
from translator.report.curves import Curve, curve_chart
from translator.report.html import Markup, join, table, tag

CHAPTER = "positions"


def write(measurement: dict[str, Any] | None) -> Markup:
    heading = tag("h3", "Beyond the lengths seen in training")
    if measurement is None:
        remedy = "python -m translator.atlas.measure extrapolation --work DIR -o FILE"
        return join(heading, missing("How each kind of positions does on longer sentences is measured by", remedy))
    found = measurement["figures"]
    limit, buckets = found["trained_pieces"], found["buckets"]
    middles = [(first + last) / 2 for first, last in buckets]
    curves, rows = [], []
    for number, scheme in enumerate(found["schemes"]):
        scores = [[run["scores"][place] for run in scheme["runs"]] for place in range(len(buckets))]
        means = [_mean([one["bleu"] for one in place]) for place in scores]
        points = [(middle, mean) for middle, mean in zip(middles, means, strict=True) if mean is not None]
        is_control = number == len(found["schemes"]) - 1
        curves.append(Curve(scheme["name"], points, mode="both", dashed=is_control))
        rows.append((scheme["name"], *(_cell(place) for place in scores)))
    headings = ("positions", *(f"{first}–{last}" for first, last in buckets))
    sizes = ", ".join(str(size) for size in found["num_sentences"])
    num_runs = len(found["schemes"][0]["runs"])
    return join(
        heading,
        text(
            "Can a model use positions that it has never seen? Small Transformers (2 + 2 layers, vectors of 64 "
            f"numbers, 1,200 updates) were trained on pairs of the demo corpus with at most {limit} pieces on each "
            "side, and then translated longer sentences. The dashed curve is a control: the same model, trained on all "
            "lengths. What it loses with length is not due to the positions."
        ),
        curve_chart("BLEU by length", curves, x="pieces on the longer side (middle of the range)", y="BLEU", digits=1),
        table(headings, rows),
        made_by(CHAPTER, "positions", measurement),
        look(f"the difference between the dashed curve and each of the others to the right of {limit} pieces."),
        text(
            f"Greedy search; {sizes} sentences in the ranges. "
            + (
                "One run of each kind; in brackets is the 95 % interval over resampled sentences, which says nothing "
                "about other seeds. "
                if num_runs == 1
                else f"The curves are means of {num_runs} runs with different seeds, which are listed in the table. "
            )
            + "Learned positions have a vector for each of 1,024 places here, but training changes only the first "
            f"{limit}; the later ones are still the random numbers they began with. (Beyond the last place, all pieces "
            "would share its vector.) Long sentences also have more clauses than short ones, and a model trained on "
            "short ones stops too early; both hurt every scheme. ",
            code("translate"),
            " avoids the problem: it splits lines that are longer than ",
            code("data.max_pieces"),
            ".",
        ),
    )


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _cell(scores: list[dict[str, Any]]) -> str:
    """The score of each run, with the interval where there is only one."""
    if any(one["bleu"] is None for one in scores):
        return "–"
    if len(scores) == 1:
        return f"{scores[0]['bleu']:.1f} [{scores[0]['low']:.0f}, {scores[0]['high']:.0f}]"
    return " / ".join(f"{one['bleu']:.1f}" for one in scores)
