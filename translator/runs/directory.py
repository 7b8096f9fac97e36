"""The folder of a run: what is where, who may write into it, and whether it may be continued."""

import contextlib
import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from translator.errors import UserError
from translator.files.atomic import read_json, write_json

FORMAT_VERSION = 1
RUNS = Path("runs")  # where new runs go
_PACKAGES = ("torch", "numpy", "sentencepiece", "datasets", "sacrebleu", "safetensors")


class RunDirectory:
    """One self-contained folder; `translate --model DIR` needs nothing else."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.yaml"
        self.tokenizer = path / "tokenizer"
        self.checkpoints = path / "checkpoints"
        self.weights = path / "model.safetensors"
        self.metrics = path / "metrics.json"
        self.manifest = path / "manifest.json"
        self.tensorboard = path / "tensorboard"

    @property
    def is_unfinished(self) -> bool:
        return self.manifest.exists() and not self.metrics.exists()

    def check_free(self) -> None:
        """Refuses a folder that already holds a run."""
        if self.manifest.exists() or self.checkpoints.exists():
            raise UserError(
                f"run_dir={self.path}: holds another run; give resume={self.path} to continue it, or another run_dir"
            )

    def create(self, *, identity: dict[str, Any], details: dict[str, Any]) -> None:
        """Claims the folder. `identity` is what may not change when resuming; `details` are for the reader."""
        self.check_free()
        self.path.mkdir(parents=True, exist_ok=True)
        self.write_manifest(identity=identity, details=details)

    def begin_again(self) -> None:
        """A finished run that trains on is not finished any more."""
        self.metrics.unlink(missing_ok=True)

    def write_manifest(self, *, identity: dict[str, Any], details: dict[str, Any]) -> None:
        manifest = {"format_version": FORMAT_VERSION, "identity": identity, **details, "versions": versions()}
        write_json(self.manifest, manifest | {"git_commit": git_commit()})

    def check_resumable(self, identity: dict[str, Any]) -> None:
        """Refuses to continue with another corpus, tokenizer or architecture, and shows the difference."""
        if not self.manifest.exists():
            raise UserError(f"resume={self.path}: no run is there (manifest.json is missing); give the folder of a run")
        manifest = read_json(self.manifest)
        if manifest["format_version"] != FORMAT_VERSION:
            found = manifest["format_version"]
            raise UserError(f"resume={self.path}: written in format {found}, this version reads {FORMAT_VERSION}")
        before, now = flatten(manifest["identity"]), flatten(identity)
        changed = sorted(key for key in before.keys() | now.keys() if before.get(key) != now.get(key))
        if changed:
            lines = [f"  {key}: the run has {before.get(key)}, now it would be {now.get(key)}" for key in changed]
            remedy = "  Resume with the run's own configuration, or start a new run with another run_dir."
            raise UserError("\n".join([f"resume={self.path}: this is not the same run any more.", *lines, remedy]))

    def point_latest(self) -> None:
        """`latest` beside the run leads to it: a symbolic link, or a text file with its name where links fail."""
        latest = self.path.parent / "latest"
        if self.path.name in ("", latest.name):
            return  # the working directory itself, or somebody's own run of that name
        if latest.is_dir() and not latest.is_symlink():
            return  # somebody's own run of that name
        temporary = latest.with_name(f".latest-{os.getpid()}")
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        try:
            temporary.symlink_to(self.path.name, target_is_directory=True)
        except OSError:
            temporary.write_text(self.path.name + "\n", encoding="utf-8")
        temporary.replace(latest)


def resolve_run(path: Path) -> Path:
    """The run that `latest` leads to where it is a text file with a name, since links cannot be made everywhere."""
    is_text = path.name == "latest" and path.is_file()
    return path.parent / path.read_text(encoding="utf-8").strip() if is_text else path


def find_weights(run_dir: Path) -> Path:
    """The weights of a run: the finished ones or, while it is still being trained, the best so far."""
    if not run_dir.exists():
        raise UserError(
            f"--model {run_dir}: no such directory; give the directory of a training run, such as runs/NAME"
        )
    run = RunDirectory(run_dir)
    if not (run.config.is_file() and run.manifest.is_file()):
        raise UserError(f"--model {run_dir}: not a training run, which would have config.yaml and manifest.json inside")
    _check_version(run.manifest)
    if not (run.tokenizer / "tokenizer.json").is_file():
        raise UserError(f"--model {run_dir}: the run has no tokenizer; it ended before training began, so train again")
    if not run.weights.is_file():
        raise UserError(f"--model {run_dir}: the run has no weights yet; let it train until its first validation")
    return run.weights


def _check_version(manifest: Path) -> None:
    try:
        version = read_json(manifest)["format_version"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{manifest}: damaged ({error}); copy the run again") from None
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise UserError(
            f"{manifest}: the run was made by a newer version of translator (format {version}, this one knows "
            f"{FORMAT_VERSION}); upgrade with `pip install --upgrade translator`"
        )


def newest_run(folder: Path) -> Path:
    """The run that `latest` in the folder leads to."""
    latest = folder / "latest"
    run = resolve_run(latest)
    if not (run / "manifest.json").exists():
        raise UserError(f"resume=true: {latest} leads to no run; give the folder of the run, resume=DIR")
    return run.resolve()


def versions() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        "platform": f"{sys.platform}-{platform.machine()}",
        **{name: metadata.version(name) for name in _PACKAGES},
    }


def git_commit() -> str | None:
    """The commit of the source tree this package runs from, marked where files differ from it."""
    git = ["git", "-C", str(Path(__file__).parent)]
    describe = ["describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        # An installed package may lie inside somebody else's repository, whose commit would say nothing.
        for command in (["ls-files", "--error-unmatch", Path(__file__).name], describe):
            result = subprocess.run(git + command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return result.stdout.strip() or None


def flatten(value: Any, prefix: str = "") -> dict[str, Any]:
    if isinstance(value, dict):
        items = ((f"{prefix}.{key}" if prefix else str(key), item) for key, item in value.items())
    elif isinstance(value, list) and value:
        items = ((f"{prefix}[{index}]", item) for index, item in enumerate(value))
    else:
        return {prefix: value}
    return {key: leaf for name, item in items for key, leaf in flatten(item, name).items()}
