"""What somebody needs to make the same run again, from its manifest, configuration and metrics."""

from typing import Any

from translator.config import Config, to_yaml
from translator.report.reading import read_metrics
from translator.runs.directory import RunDirectory

TRAINING_FIGURES = (
    *("num_updates", "num_epochs", "num_target_tokens", "num_parameters", "seconds"),
    *("stopped_by", "final_weights", "num_skipped"),
)


def reproducibility(run: RunDirectory, config: Config) -> dict[str, Any]:
    manifest, metrics = run.read_manifest(), read_metrics(run)
    return {
        "folder": str(run.path),
        "command": manifest.get("command"),
        "git_commit": manifest.get("git_commit"),
        "seed": config.seed,
        "versions": manifest.get("versions", {}),
        "hardware": manifest.get("hardware", {}),
        "fingerprints": manifest["identity"].get("data", {}),
        "files": manifest.get("files", []),
        "configuration": to_yaml(config),
        "training": {name: metrics.get(name) for name in TRAINING_FIGURES},
    }
