"""What must be in the folder of a run before a model can be loaded from it."""

import json
from pathlib import Path

from translator.errors import UserError

FORMAT_VERSION = 1  # of a run's folder, in its manifest.json


def resolve_run(path: Path) -> Path:
    """The run that `latest` leads to where it is a text file with a name, since links cannot be made everywhere."""
    is_text = path.name == "latest" and path.is_file()
    return path.parent / path.read_text(encoding="utf-8").strip() if is_text else path


def find_weights(run_dir: Path) -> Path:
    """The finished weights of a run or, while it is still being trained, those of its best checkpoint so far."""
    if not run_dir.exists():
        raise UserError(
            f"--model {run_dir}: no such directory; give the directory of a training run, such as runs/NAME"
        )
    if not run_dir.is_dir() or not (run_dir / "config.yaml").is_file():
        raise UserError(f"--model {run_dir}: not a training run, which would have a config.yaml inside")
    _check_version(run_dir / "manifest.json")
    if not (run_dir / "tokenizer" / "tokenizer.json").is_file():
        raise UserError(f"--model {run_dir}: the run has no tokenizer; it ended before training began, so train again")
    finished, best = run_dir / "model.safetensors", run_dir / "checkpoints" / "best" / "model.safetensors"
    if finished.is_file():
        return finished
    if best.is_file():
        return best
    raise UserError(f"--model {run_dir}: the run has no finished checkpoint; let it train until its first validation")


def _check_version(manifest: Path) -> None:
    if not manifest.is_file():
        return  # written at the end of training
    try:
        version = json.loads(manifest.read_text(encoding="utf-8"))["format_version"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{manifest}: damaged ({error}); copy the run again") from None
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise UserError(
            f"{manifest}: the run was made by a newer version of translator (format {version}, this one knows "
            f"{FORMAT_VERSION}); upgrade with `pip install --upgrade translator`"
        )
