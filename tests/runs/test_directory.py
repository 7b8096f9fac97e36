"""Who may write into a run's folder, who may read it, and when it may be continued."""

import errno
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.warm_python import Program
from translator.errors import UserError
from translator.runs.directory import RunDirectory

IDENTITY: dict[str, Any] = {
    "model": {"kind": "lstm", "hidden_size": 256},
    "tokenizer": "abc",
    "corpus": [{"path": "train.en", "sha256": "12"}],
}


def make_run(path: Path) -> RunDirectory:
    run = RunDirectory(path)
    run.create(identity=IDENTITY, details={"seed": 5})
    return run


def test_manifest_tells_versions_and_identity(tmp_path: Path) -> None:
    manifest = json.loads(make_run(tmp_path / "a").manifest.read_text())
    assert manifest["format_version"] == 1
    assert manifest["seed"] == 5
    assert manifest["identity"] == IDENTITY
    assert {"python", "torch", "sentencepiece", "sacrebleu"} <= manifest["versions"].keys()
    assert "git_commit" in manifest


def test_a_folder_with_another_run_is_refused(tmp_path: Path) -> None:
    make_run(tmp_path / "a")
    with pytest.raises(UserError, match=r"run_dir=.*holds another run; give resume="):
        make_run(tmp_path / "a")
    (tmp_path / "b" / "checkpoints").mkdir(parents=True)
    with pytest.raises(UserError, match="holds another run"):
        make_run(tmp_path / "b")


def test_a_folder_that_only_holds_logs_is_taken(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "train.log").write_text("")
    assert make_run(tmp_path / "a").manifest.exists()


def test_resuming_the_same_run_is_allowed(tmp_path: Path) -> None:
    make_run(tmp_path / "a").check_resumable(IDENTITY)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"model": {"kind": "lstm", "hidden_size": 512}}, "model.hidden_size: the run has 256, now it would be 512"),
        ({"tokenizer": "abd"}, "tokenizer: the run has abc, now it would be abd"),
        ({"corpus": [{"path": "train.en", "sha256": "13"}]}, "corpus[0].sha256: the run has 12, now it would be 13"),
        ({"corpus": []}, "corpus[0].path: the run has train.en, now it would be None"),
        ({"tokenizer": "a\nb"}, "tokenizer: the run has abc, now it would be a b"),
        ({"tokenizer": 99 * "x"}, f"tokenizer: the run has abc, now it would be {39 * 'x'}…)"),
    ],
)
def test_another_corpus_tokenizer_or_architecture_is_refused(tmp_path: Path, change: dict, line: str) -> None:
    run = make_run(tmp_path / "a")
    with pytest.raises(UserError) as caught:
        run.check_resumable(IDENTITY | change)
    message = str(caught.value)
    assert line in message
    assert len(message.splitlines()) == 1
    assert message.endswith("resume with the run's own configuration, or start a new run with another run_dir")


def test_of_many_differences_the_first_two_are_named(tmp_path: Path) -> None:
    run = make_run(tmp_path / "a")
    with pytest.raises(UserError) as caught:
        run.check_resumable({"model": {"kind": "transformer", "hidden_size": 512}, "tokenizer": "abd", "corpus": "ab"})
    named = "(corpus: the run has None, now it would be ab; corpus[0].path: the run has train.en, now it would be None"
    assert f"{named}; and 4 more); resume with" in str(caught.value)


def test_a_folder_without_a_run_cannot_be_resumed(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no run is there"):
        RunDirectory(tmp_path).check_resumable(IDENTITY)


def test_another_format_is_refused(tmp_path: Path) -> None:
    run = make_run(tmp_path / "a")
    run.manifest.write_text(run.manifest.read_text().replace('"format_version": 1', '"format_version": 2'))
    with pytest.raises(
        UserError, match=r"manifest\.json: .*newer version of translator \(format 2, .*; update translator$"
    ):
        run.check_resumable(IDENTITY)


TRAIN = """
import sys, time
from pathlib import Path
from translator.runs.directory import RunDirectory
with RunDirectory(Path(sys.argv[1])).locked():
    print("training", flush=True)
    time.sleep(60)
"""


def test_a_run_is_trained_by_one_process_at_a_time(tmp_path: Path) -> None:
    """The lock is released with the process, even if it is killed."""
    pytest.importorskip("fcntl")
    run = make_run(tmp_path / "a")
    other = Program(TRAIN, str(run.path))
    assert other.stdout.readline() == b"training\n"
    with pytest.raises(UserError, match=rf"run_dir={run.path}: another process is training this run"), run.locked():
        pytest.fail("two processes train one run")
    other.kill()
    assert other.finish().returncode == -signal.SIGKILL
    with run.locked():
        assert run.manifest.exists()


def test_a_file_system_without_locks_is_used_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fcntl = pytest.importorskip("fcntl")

    def no_locks(*arguments: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with make_run(tmp_path / "a").locked():
        assert "No locks available" in caplog.text


def test_what_fails_while_the_lock_is_held_is_not_about_the_lock(tmp_path: Path) -> None:
    with pytest.raises(BlockingIOError), make_run(tmp_path / "a").locked():
        raise BlockingIOError


def test_others_may_read_the_weights(tmp_path: Path) -> None:
    """In a separate process, since the mask is read once. Libraries create files that only their owner can read."""
    code = (
        "import os, sys; os.umask(0o022); import torch; from pathlib import Path;"
        "from translator.runs.weights import write_tensors; write_tensors(Path(sys.argv[1]), {'a': torch.ones(2)})"
    )
    weights = tmp_path / "model.safetensors"
    subprocess.run([sys.executable, "-c", code, str(weights)], check=True)
    assert weights.stat().st_mode & 0o777 == 0o644


def test_a_manifest_that_was_altered_is_damaged(tmp_path: Path) -> None:
    run = make_run(tmp_path / "a")
    text = run.manifest.read_text(encoding="utf-8")
    for before, after in (('"seed": 5', '"seed": 4'), ('"identity"', '"idemtity"')):
        assert before in text
        run.manifest.write_text(text.replace(before, after), encoding="utf-8")
        with pytest.raises(UserError, match=r"manifest\.json: damaged \(it does not match its checksum\)"):
            run.check_resumable(IDENTITY)
    run.manifest.write_text(text.replace('"manifest_sha256"', '"manifest_sha255"'), encoding="utf-8")
    run.check_resumable(IDENTITY)  # as those of earlier versions, which have none
