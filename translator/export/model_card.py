"""README.md of an export: a model card with scores, data, licence and how to use it."""

from pathlib import Path
from typing import Any

from translator.config import Config
from translator.evaluation.metrics import METRICS
from translator.files.atomic import read_json
from translator.runs.directory import RunDirectory
from translator.schema.data import DemoDataConfig, HubDataConfig, TextDataConfig

# The part of the normalisation that matters for ordinary text, as code.
NORMALIZED_LINE = '" ".join(unicodedata.normalize("NFC", line).split())'
_NORMALIZATION = "Unicode NFC, with white space reduced to single spaces."
BY_PROGRAM = f"Normalise text before splitting it into pieces, as the program above does: {_NORMALIZATION}"
BY_TOKENIZER = f"The tokenizer normalises text by itself: {_NORMALIZATION}"
LIBRARIES = {"ctranslate2": "ctranslate2", "huggingface": "transformers", "onnx": "onnx"}


def model_card(
    run: RunDirectory,
    config: Config,
    *,
    target: str,
    usage: str,
    normalization: str,
    packages: str,
    checks: list[str],
    license_id: str,
) -> str:
    """The card of an export to `target`.

    `usage` is a Python program and `checks` are the results of verification; `normalization`, which says where text is
    normalised, is left out if the run does not normalise.
    """
    source_language, target_language = config.data.source, config.data.target
    front_matter = "\n".join(
        [
            "---",
            f"language: [{source_language!r}, {target_language!r}]",
            f"license: {license_id}",
            f"library_name: {LIBRARIES[target]}",
            "pipeline_tag: translation",
            "tags: [translation]",
            "---",
        ]
    )
    figures = _read_figures(run)
    parts = [
        front_matter,
        f"# Translation from {source_language} to {target_language}",
        _describe_model(config, figures),
        "## Use",
        f"    pip install {packages}",
        f"```python\n{usage.strip()}\n```",
        *([normalization] if config.data.cleaning.normalize else []),
        "## Scores",
        _score_table(figures),
        "## Data",
        _describe_data(config),
        "## Checks",
        "The same sentences were translated with this folder and with the model as it was trained.",
        "\n".join(f"- {check}" for check in checks),
    ]
    return "\n\n".join(parts) + "\n"


def line_program(program: str, *, normalizes: bool) -> str:
    """The program as it is, or without the normalisation of lines."""
    if normalizes:
        return program
    return program.replace("import unicodedata\n\n", "").replace(NORMALIZED_LINE, "line")


def _read_figures(run: RunDirectory) -> dict[str, Any]:
    try:
        figures = read_json(run.metrics)
    except (OSError, ValueError):  # not finished yet
        return {}
    return figures if isinstance(figures, dict) else {}


def _describe_model(config: Config, figures: dict[str, Any]) -> str:
    options = {name: value for name, value in vars(config.model).items() if "dropout" not in name}
    described = ", ".join(f"{name} {value}" for name, value in options.items() if name != "kind")
    text = f"A {config.model.kind}: {described}."
    if "num_parameters" in figures:
        text += f" {figures['num_parameters']:,} parameters, trained for {figures['num_updates']:,} updates."
    return text


def _score_table(figures: dict[str, Any]) -> str:
    rows = []
    for split in ("validation", "test"):
        of_split = figures.get(split) or {}
        named = {f"{split} {direction}": scores for direction, scores in of_split.get("directions", {}).items()}
        for name_of_set, scores in (named or {split: of_split}).items():
            for name, metric in METRICS.items():
                if name in scores:
                    signature = (scores.get("signatures") or {}).get(name, "")
                    rows.append(f"| {name_of_set} | {metric.label} | {scores[name]:.2f} | `{signature}` |")
    if not rows:
        return "The run has no scores: its training has not finished."
    return "\n".join(["| set | metric | score | sacreBLEU signature |", "| --- | --- | --- | --- |", *rows])


def _describe_data(config: Config) -> str:
    """The corpora by name, without the folders of the machine that the model was trained on."""
    data = config.data
    if isinstance(data, DemoDataConfig):
        return f"The generated demo corpus of `translator`, {data.num_train:,} training pairs."
    if isinstance(data, HubDataConfig):
        return f"`{data.path}`" + (f" ({data.name})" if data.name else "") + " on the Hugging Face Hub."
    assert isinstance(data, TextDataConfig)
    return "Training files: " + ", ".join(f"`{Path(prefix).name}`" for prefix in data.train_prefixes) + "."
