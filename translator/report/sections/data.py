"""Sections about where a run comes from: its data, and what is needed to make it again."""

from typing import Any

from translator.languages import is_written_without_spaces
from translator.report.charts import bar_chart, number_text
from translator.report.html import Child, Markup, fold, join, table, tag
from translator.report.sections.parts import Figures, Section, by_run, counted_text, left_out

EFFECTS = {
    "normalize": "normalised (and kept)",
    "drop_blank": "removed: a side is blank",
    "max_characters": "removed: too long",
    "max_ratio": "removed: lengths too different",
    "drop_identical": "removed: source and target equal",
    "drop_leaked": "removed: also in validation or test",
    "drop_duplicates": "removed: seen before",
}


def data_card(figures: Figures) -> Section:
    about = "What the model was trained and judged on. Lengths are in words, or characters without spaces."
    found = by_run(figures, "data")
    if not found:
        return Section("data", "Data", "Data card", about, left_out(figures, "Left out."))
    blocks: list[Child] = []
    for name, values in found.items():
        blocks += [
            tag("h3", name) if len(found) > 1 else None,
            _sizes(values),
            tag("div", [_histogram(values, side) for side in ("source", "target")], class_="columns"),
            tag("h3", "Vocabulary"),
            _vocabulary(values["vocabulary"], counted_text(values["training"])),
            [_cleaning(report) for report in values["cleaning"]],
        ]
    return Section("data", "Data", "Data card", about, join(blocks))


def _sizes(values: dict[str, Any]) -> Markup:
    training, held_out = values["training"], values["held_out"]
    rows: list[tuple[str, ...]] = []
    if training is not None:
        rows.append(
            (
                counted_text(training),
                *(f"{training[key]:,}" for key in ("num_pairs", "num_source_words", "num_target_words")),
                *(f"{training[key]:,}" for key in ("num_source_types", "num_target_types")),
            )
        )
    vocabulary = values["vocabulary"]
    words = [f"{vocabulary[side]['num_words']:,}" for side in ("source", "target")]
    rows.append((held_out["name"], f"{held_out['num_pairs']:,}", *words, "", ""))
    headings = ("text", "pairs", "source words", "target words", "different source words", "different target words")
    return table(headings, rows)


def _histogram(values: dict[str, Any], side: str) -> Markup:
    lengths, language = values["lengths"], values["languages"][0 if side == "source" else 1]
    width, starts = lengths["width"], lengths["starts"]
    names = [str(start) if width == 1 else f"{start}–{start + width - 1}" for start in starts]
    if starts and starts[-1] + width > lengths["longest_counted"]:
        names[-1] = f"{starts[-1]}+"
    series = {
        name.removesuffix(f" {side}"): shares for name, shares in lengths["shares"].items() if name.endswith(side)
    }
    unit = "characters" if is_written_without_spaces(language) else "words"
    return bar_chart(f"Length of {side} ({language})", names, series, x=unit, y="share of sentences", percent=True)


def _vocabulary(values: dict[str, Any], counted_in: str) -> Markup:
    kind = f"{values['kind']}, {'one for both languages' if values['is_joint'] else 'one for each language'}"
    labels = {
        "size": "pieces in the vocabulary",
        "share_used": "… of these, used in the held-out set",
        "pieces_per_word": "pieces per word of the held-out set",
        "share_bytes": "pieces that are single bytes",
        "share_unknown": "unknown pieces",
        "share_words_in_training": f"words of the held-out set that are in {counted_in}",
        "share_types_in_training": f"different words of the held-out set that are in {counted_in}",
    }
    rows = []
    for key, label in labels.items():
        if key in values["source"]:
            rows.append((label, *(_vocabulary_cell(key, values[side][key]) for side in ("source", "target"))))
    return table((kind, "source", "target"), rows)


def _vocabulary_cell(key: str, value: float) -> str:
    if key == "size":
        return f"{value:,}"
    return number_text(value, 2) if key == "pieces_per_word" else number_text(value, 2, percent=True)


def _cleaning(report: dict[str, Any]) -> Markup:
    rows = [
        (EFFECTS.get(name, name), f"{step['count']:,}", "on" if report["options"].get(name) else "off", _examples(step))
        for name, step in report["steps"].items()
    ]
    leaks = [
        (
            overlap["name"],
            f"{overlap['num_pairs']:,}",
            f"{overlap['num_pairs_in_training']:,}",
            f"{overlap['num_sources_in_training']:,}",
        )
        for overlap in report["overlaps"]
    ]
    return join(
        tag("h3", f"Cleaning and leakage: {report['name']}"),
        tag("p", f"{report['num_read']:,} pairs read, {report['num_kept']:,} kept.", class_="about"),
        table(("cleaning step", "pairs", "switched", "examples"), rows),
        table(("held-out set", "pairs", "pairs found in training", "sources in the pairs kept"), leaks)
        if leaks
        else None,
    )


def _examples(step: dict[str, Any]) -> Child:
    lines = [f"line {one['line']}: {one['source']} | {one['target']}" for one in step["examples"]]
    return fold("show", [tag("p", line, dir="auto") for line in lines]) if lines else ""


def reproducibility(figures: Figures) -> Section:
    about = "What is needed to reproduce the run, from its manifest."
    found = by_run(figures, "reproducibility")
    if not found:
        return Section("reproducibility", "Reproduce", "Reproducibility", about, left_out(figures, "Left out."))
    blocks = []
    for name, values in found.items():
        blocks.append(tag("h3", name) if len(found) > 1 else None)
        blocks.append(_box(values))
    return Section("reproducibility", "Reproduce", "Reproducibility", about, join(blocks))


def _box(values: dict[str, Any]) -> Markup:
    training = {key.removeprefix("num_").replace("_", " "): value for key, value in values["training"].items()}
    rows: list[tuple[Child, ...]] = [
        ("command", tag("code", values["command"] or "not recorded")),
        ("folder", tag("code", values["folder"])),
        ("commit", tag("code", values["git_commit"] or "not recorded")),
        ("seed", str(values["seed"])),
        *((name, _value(value)) for name, value in training.items() if value is not None),
        *((name, _value(value)) for name, value in values["hardware"].items()),
        *((name, str(version)) for name, version in values["versions"].items()),
    ]
    prints = [(name, tag("code", _value(value))) for name, value in values["fingerprints"].items() if value]
    files = [(tag("code", file["path"]), f"{file['size']:,}", tag("code", file["sha256"])) for file in values["files"]]
    return join(
        table(("", "value"), rows),
        fold("Fingerprints and files", table(("SHA-256 of", ""), prints), table(("file", "bytes", "SHA-256"), files)),
        fold("Configuration", tag("pre", values["configuration"])),
    )


def _value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, float):
        return f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
