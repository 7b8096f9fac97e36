"""The folder of a run: what is where, who may write into it, and whether it may be continued."""

import contextlib
import hashlib
import json
import logging
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from translator.errors import UserError
from translator.files.atomic import locked_folder, read_json, write_json
from translator.files.explain import explain_damage, require_folder
from translator.runs.hardware import hardware

logger = logging.getLogger(__name__)

FORMAT_VERSION = 1
_SHOWN_DIFFERENCES = 2  # between a run and what it would be resumed with
_LONGEST_VALUE = 40  # characters shown of a value that differs
_WITH_CHECKSUMS = "weights_have_checksums"  # in manifests; missing in those of earlier versions
_CHECKSUM = "manifest_sha256"  # in manifests, of everything else in them
RUNS = Path("runs")  # where new runs go
_PACKAGES = ("torch", "numpy", "sentencepiece", "datasets", "sacrebleu", "safetensors")


class RunDirectory:
    """One self-contained folder; `translate --model DIR` needs nothing else but the judges that `tune` has stored."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.yaml"
        self.tokenizer = path / "tokenizer"
        self.checkpoints = path / "checkpoints"
        self.weights = path / "model.safetensors"
        self.metrics = path / "metrics.json"
        self.manifest = path / "manifest.json"
        self.tensorboard = path / "tensorboard"
        self.report = path / "report.html"
        self.tuning = path / "tuning.json"

    def hypotheses(self, split: str) -> Path:
        """The run's translations of its test or validation set; what they were made with is beside them, as JSON."""
        return self.path / f"{split}.hypotheses.txt"

    @property
    def results(self) -> list[Path]:
        """What is written at the end of training, about the final weights."""
        hypotheses = [self.hypotheses(split) for split in ("valid", "test")]
        return [self.metrics, self.report, *hypotheses, *(path.with_suffix(".json") for path in hypotheses)]

    @property
    def contents(self) -> list[Path]:
        """What every finished run contains, apart from the TensorBoard log."""
        return [self.config, self.tokenizer, self.checkpoints, self.weights, self.manifest, self.metrics, self.report]

    @property
    def is_unfinished(self) -> bool:
        return self.manifest.exists() and not self.metrics.exists()

    def check_free(self) -> None:
        """Refuses a folder that already holds a run."""
        require_folder("run_dir", self.path)
        if self.manifest.exists() or self.manifest.is_symlink() or self.checkpoints.exists():
            raise UserError(
                f"run_dir={self.path}: holds another run; give resume={self.path} to continue it, or another run_dir"
            )

    def create(self, *, identity: dict[str, Any], details: dict[str, Any]) -> None:
        """Claims the folder. `identity` must not change when resuming; `details` are for information only."""
        self.check_free()
        self.path.mkdir(parents=True, exist_ok=True)
        manifest = {"format_version": FORMAT_VERSION, _WITH_CHECKSUMS: True, "identity": identity}
        origin = {"versions": versions(), "hardware": hardware(), "git_commit": git_commit()}
        content = {**manifest, **details, **origin}
        write_json(self.manifest, {**content, _CHECKSUM: _checksum(content)})

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps other processes from training the same run. The system releases the lock when the process dies."""
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(locked_folder(self.path))
            except BlockingIOError:
                raise UserError(
                    f"run_dir={self.path}: another process is training this run; wait for it, stop it, or give "
                    "another run_dir"
                ) from None
            except OSError as error:  # some network file systems have no locks
                logger.warning("%s: cannot be locked (%s); do not train this run twice at once", self.path, error)
            yield

    def begin_again(self) -> None:
        """Removes the results of a finished run whose training continues: they belong to earlier weights."""
        for path in self.results:
            path.unlink(missing_ok=True)

    def read_manifest(self) -> dict[str, Any]:
        """The manifest; refused if it is damaged or of a newer format."""
        with explain_damage(self.manifest):
            manifest = read_json(self.manifest)
            if not isinstance(manifest, dict):
                raise ValueError("not a JSON object")
            version = manifest["format_version"]
            if not isinstance(version, int) or version < 1:
                raise ValueError(f"format_version {version}")
        if version > FORMAT_VERSION:
            raise UserError(
                f"{self.manifest}: the run was made by a newer version of translator (format {version}, this one "
                f"knows {FORMAT_VERSION}); update translator"
            )
        with explain_damage(self.manifest):
            recorded = manifest.pop(_CHECKSUM, None)  # earlier versions did not write one
            if recorded is not None and recorded != _checksum(manifest):
                raise ValueError("it does not match its checksum")
        return manifest

    @property
    def has_checksums(self) -> bool:
        """Whether the weights have a checksum; those of earlier versions do not."""
        return _WITH_CHECKSUMS in self.read_manifest()

    def check_is_run(self) -> None:
        """Refuses to continue if there is no run, or one of a newer version."""
        if not self.manifest.exists():
            raise UserError(f"resume={self.path}: no run is there (manifest.json is missing); give the folder of a run")
        self.read_manifest()

    def check_resumable(self, identity: dict[str, Any], defaults: Mapping[str, Any] | None = None) -> None:
        """Refuses to continue with another corpus, tokenizer or architecture, and names the first differences.

        `defaults` are shown for what only one of the two identities has.
        """
        defaults = defaults or {}
        self.check_is_run()
        with explain_damage(self.manifest):
            before, now = flatten(self.read_manifest()["identity"]), flatten(identity)
        changed = sorted(key for key in before.keys() | now.keys() if before.get(key) != now.get(key))
        if changed:
            shown = changed[:_SHOWN_DIFFERENCES]
            differences = [
                f"{key}: the run has {_shortened(before.get(key, defaults.get(key)))}, now it would be "
                f"{_shortened(now.get(key, defaults.get(key)))}"
                for key in shown
            ]
            if len(changed) > len(shown):
                differences.append(f"and {len(changed) - len(shown)} more")
            raise UserError(
                f"resume={self.path}: this is no longer the same run ({'; '.join(differences)}); resume with the"
                " run's own configuration, or start a new run with another run_dir"
            )


def _checksum(content: dict[str, Any]) -> str:
    as_read = json.loads(json.dumps(content))  # where all keys are strings
    return hashlib.sha256(json.dumps(as_read, sort_keys=True).encode()).hexdigest()


def find_weights(run_dir: Path, given: str = "") -> Path:
    """The weights of a run: the finished ones or, while it is still being trained, the best so far.

    What is not a run is refused by what the user gave, such as `--model runs/a`; by default its path.
    """
    name = given or str(run_dir)
    if not os.path.isdir(run_dir):  # noqa: PTH112 - Path.is_dir fails where a name is too long
        what = "is a file" if os.path.isfile(run_dir) else "no such directory"  # noqa: PTH113
        raise UserError(f"{name}: {what}; give the directory of a training run, such as runs/NAME")
    run = RunDirectory(run_dir)
    if not (run.config.is_file() and run.manifest.is_file()):
        raise UserError(f"{name}: not a training run, which would have config.yaml and manifest.json inside")
    run.read_manifest()
    for path, too_early in (
        (run.tokenizer / "tokenizer.json", "the run has no tokenizer; it ended before training began, so train again"),
        (run.weights, "the run has no weights yet; let it train until its first validation"),
    ):
        if not path.is_file():
            lost = f"{path.relative_to(run_dir)} is missing; restore it from a copy of the run, or train again"
            raise UserError(f"{name}: {too_early if run.is_unfinished else lost}")
    return run.weights


def versions() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        "platform": f"{sys.platform}-{platform.machine()}",
        **{name: metadata.version(name) for name in _PACKAGES},
    }


def git_commit() -> str | None:
    """The commit of the source tree this package runs from, marked as modified if files differ from it."""
    git = ["git", "-C", str(Path(__file__).parent)]
    describe = ["describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        # An installed package may lie inside somebody else's repository, whose commit would be meaningless.
        for command in (["ls-files", "--error-unmatch", Path(__file__).name], describe):
            result = subprocess.run(git + command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return result.stdout.strip() or None


def _shortened(value: Any) -> str:
    """A value on one line, cut off where it is long."""
    text = " ".join(str(value).split())
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"


def flatten(value: Any, prefix: str = "") -> dict[str, Any]:
    if isinstance(value, dict):
        items = ((f"{prefix}.{key}" if prefix else str(key), item) for key, item in value.items())
    elif isinstance(value, list) and value:
        items = ((f"{prefix}[{index}]", item) for index, item in enumerate(value))
    else:
        return {prefix: value}
    return {key: leaf for name, item in items for key, leaf in flatten(item, name).items()}
