"""Checkpoints are complete or absent; damage is detected; whatever is still needed is kept."""

import errno
import json
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from support import warm_python
from support.training_toys import make_model, same, weights
from translator.errors import UserError
from translator.files import atomic
from translator.files.checksums import DamagedFolderError
from translator.runs.weights import average_weights, collect_weights, read_tensors, restore_weights, write_tensors
from translator.training.checkpoint import CheckpointStore


def tensors(value: float) -> dict[str, dict[str, Tensor]]:
    return {"model": {"w": torch.full((3, 2), value)}, "optimizer": {"0.step": torch.tensor(value)}}


def make_store(folder: Path, **options: Any) -> CheckpointStore:
    store = CheckpointStore(folder / "checkpoints", **({"keep_best": 2} | options))
    store.open()
    return store


def names(store: CheckpointStore) -> list[str]:
    return sorted(path.name for path in store.folder.iterdir() if path.is_dir())


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    store.save(7, tensors(1.5), {"progress": {"update": 7, "share": 0.1}}, score=30.0)
    checkpoint = make_store(tmp_path).newest(print)
    assert checkpoint is not None
    assert checkpoint.step == 7
    assert checkpoint.state["progress"] == {"update": 7, "share": 0.1}
    assert same(checkpoint.tensors("model"), tensors(1.5)["model"])
    files = {path.name for path in checkpoint.path.iterdir()}
    assert files == {"model.safetensors", "optimizer.safetensors", "state.json", "checksums.json"}


def test_best_and_newest_are_kept(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    for step, score in enumerate([5.0, 9.0, None, 7.0, 1.0, None], 1):
        store.save(step, tensors(step), {}, score)
    assert names(store) == ["step-00000002", "step-00000004", "step-00000005", "step-00000006"]
    assert [checkpoint.step for checkpoint in make_store(tmp_path).best(print)] == [2, 4]
    assert [checkpoint.step for checkpoint in make_store(tmp_path).newest_first(print)] == [6, 5]
    assert json.loads((store.folder / "index.json").read_text()) == {
        "last": "step-00000006",
        "best": [{"checkpoint": "step-00000002", "score": 9.0}, {"checkpoint": "step-00000004", "score": 7.0}],
    }


def flip_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def drop_checksum(path: Path, name: str) -> None:
    checksums = json.loads((path / "checksums.json").read_text())
    del checksums[name]
    (path / "checksums.json").write_text(json.dumps(checksums))


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: flip_a_byte(path / "model.safetensors"),
        lambda path: flip_a_byte(path / "state.json"),
        lambda path: os.truncate(path / "optimizer.safetensors", 20),
        lambda path: (path / "model.safetensors").unlink(),
        lambda path: (path / "checksums.json").write_text("{"),
        lambda path: (path / "checksums.json").write_text("{}"),
        lambda path: (path / "checksums.json").write_text("[]"),
        lambda path: (path / "checksums.json").unlink(),
        lambda path: drop_checksum(path, "optimizer.safetensors"),
        lambda path: drop_checksum(path, "state.json"),
    ],
)
def test_damage_is_found_and_the_one_before_is_used(tmp_path: Path, damage: Any) -> None:
    store = make_store(tmp_path)
    store.save(1, tensors(1), {}, None)
    damage(store.save(2, tensors(2), {}, None))
    said: list[str] = []
    checkpoint = make_store(tmp_path).newest(said.append)
    assert checkpoint is not None
    assert checkpoint.step == 1
    assert "step-00000002 is damaged" in said[0]
    with pytest.raises(DamagedFolderError):
        store.read("step-00000002")


def test_checkpoints_removed_by_hand_are_forgotten(tmp_path: Path) -> None:
    store = make_store(tmp_path, keep_best=1)
    for step in (1, 2, 3):
        store.save(step, tensors(step), {}, score=float(step == 1))
    for name in ("step-00000001", "step-00000002"):
        shutil.rmtree(store.folder / name)
    for step in (4, 5, 6):
        store.save(step, tensors(step), {}, None)
    assert names(store) == ["step-00000003", "step-00000005", "step-00000006"], "3 is the best that is left"
    assert [checkpoint.step for checkpoint in store.best(pytest.fail)] == [3]


def test_other_files_beside_checkpoints_are_left_alone(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    store.save(1, tensors(1), {}, None)
    (store.folder / "step-notes").mkdir()
    (store.folder / "step-00000009").write_text("a file")
    (store.folder / "step-00000008").mkdir()
    said: list[str] = []
    checkpoint = make_store(tmp_path).newest(said.append)
    assert checkpoint is not None
    assert checkpoint.step == 1
    assert len(said) == 1
    assert "step-00000008 is damaged" in said[0]


@pytest.mark.parametrize("content", ["[]", "5", '{"score": "high"}', "{", "[" * 100_000])
def test_a_state_of_the_wrong_shape_does_not_keep_the_store_from_opening(tmp_path: Path, content: str) -> None:
    store = make_store(tmp_path)
    path = store.save(1, tensors(1), {}, 3.0)
    (path / "state.json").write_text(content)
    assert make_store(tmp_path).best(pytest.fail) == []
    assert make_store(tmp_path).newest(lambda text: None) is None


@pytest.mark.parametrize("failing_call", range(1, 10))
def test_a_full_disk_leaves_existing_checkpoints_intact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing_call: int
) -> None:
    """Each of a save's flushes to disk fails in turn, including when it replaces a checkpoint of the same step."""
    store = make_store(tmp_path)
    store.save(1, tensors(1), {}, None)
    store.save(2, tensors(2), {"saved": "first"}, None)
    calls = iter(range(1, 100))

    def full(descriptor: int) -> None:
        if next(calls) >= failing_call:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(atomic.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        store.save(2, tensors(2), {"saved": "again"}, 1.0)
    monkeypatch.undo()
    for again in (store, make_store(tmp_path)):
        checkpoint = again.newest(pytest.fail)
        assert checkpoint is not None
        assert checkpoint.step == 2
        assert same(checkpoint.tensors("model"), tensors(2)["model"])
        assert again.read("step-00000001").step == 1
    assert not list(store.folder.glob(".unfinished*"))


FULL_DISK = """
import resource, signal, sys, torch
from pathlib import Path
from translator.training.checkpoint import CheckpointStore
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = CheckpointStore(Path(sys.argv[1]), keep_best=2)
store.open()
store.save(1, {"model": {"w": torch.ones(100)}}, {}, None)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    store.save(2, {"model": {"w": torch.ones(1_000_000)}}, {}, None)
except OSError as error:
    print("refused:", error)
"""


def test_a_write_that_the_system_refuses(tmp_path: Path) -> None:
    """Not simulated: the operating system does not let the file grow."""
    pytest.importorskip("resource")
    result = warm_python.run(FULL_DISK, str(tmp_path / "checkpoints"))
    assert result.returncode == 0, result.stderr
    assert "refused:" in result.stdout
    store = make_store(tmp_path)
    assert names(store) == ["step-00000001"]
    assert store.newest(pytest.fail) is not None


KILLED = """
import os, sys, torch
from pathlib import Path
from translator.training import checkpoint

def save(store, step, number, score):
    store.save(step, {"model": {"w": torch.full((9,), float(step))}}, {"number": number}, score)

def dying(function, countdown):
    def call(*arguments, **options):
        if next(countdown, None) is None:
            os._exit(9)
        return function(*arguments, **options)
    return call

def run(folder, moment):
    store = checkpoint.CheckpointStore(folder, keep_best=1)
    store.open()
    save(store, 1, 1, None)
    save(store, 2, 2, None)
    countdown = iter(range(moment))
    os.fsync, checkpoint.shutil.rmtree = dying(os.fsync, countdown), dying(checkpoint.shutil.rmtree, countdown)
    Path.rename, Path.replace = dying(Path.rename, countdown), dying(Path.replace, countdown)
    save(store, 2, 22, 1.0)  # again at the same step
    save(store, 3, 3, 2.0)
    save(store, 4, 4, 3.0)
    os._exit(0)

for moment in range(100):
    if os.fork() == 0:
        run(Path(sys.argv[1]) / str(moment) / "checkpoints", moment)
    if os.wait()[1] == 0:
        break
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills copies of a process made by fork")
def test_a_kill_at_any_moment_leaves_whole_checkpoints(tmp_path: Path) -> None:
    """A process dies before its first, second, third … change to the disk, until one completes all its saves."""
    result = warm_python.run(KILLED, str(tmp_path))
    assert result.returncode == 0, result.stderr
    found = []
    for moment in sorted(int(folder.name) for folder in tmp_path.iterdir()):
        store = make_store(tmp_path / str(moment))
        checkpoint = store.newest(pytest.fail)  # no listed checkpoint may be damaged
        assert checkpoint is not None
        assert checkpoint.tensors("model")["w"].tolist() == [float(checkpoint.step)] * 9
        assert not [name for name in names(store) if name.startswith(".")]
        found.append(checkpoint.state["number"])
    assert found[0] == 2
    assert set(found) == {2, 22, 3, 4}, "some die during each of the saves"
    assert found == sorted(found, key=[2, 22, 3, 4].index), "what was once on the disk is never lost again"


def test_a_kill_between_the_two_renames_is_repaired(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    path = store.save(2, tensors(2), {"saved": "first"}, None)
    path.rename(path.with_name(".replaced-step-00000002"))
    checkpoint = make_store(tmp_path).newest(pytest.fail)
    assert checkpoint is not None
    assert checkpoint.state["saved"] == "first"


def test_tied_weights_are_stored_once_and_restored(tmp_path: Path) -> None:
    model, other = make_model(1), make_model(2)
    stored = collect_weights(model)
    assert ("embedding.weight" in stored) != ("output.weight" in stored)
    write_tensors(tmp_path / "model.safetensors", stored)
    restore_weights(other, stored, "here")
    assert same(weights(model), weights(other))
    assert other.output.weight is other.embedding.weight


@pytest.fixture
def weights_file(tmp_path: Path) -> Path:
    tensors = {"a": torch.randn(3, 2), "b": torch.arange(4), "c": torch.tensor(2.0), "d": torch.ones(3).bfloat16()}
    write_tensors(tmp_path / "model.safetensors", tensors, update="7")
    return tmp_path / "model.safetensors"


def test_equal_weights_make_equal_files(weights_file: Path) -> None:
    before = weights_file.read_bytes()
    for _ in range(5):
        write_tensors(weights_file, read_tensors(weights_file, needs_checksum=True), update="7")
        assert weights_file.read_bytes() == before


def test_no_flipped_bit_changes_weights_unnoticed(weights_file: Path) -> None:
    content, written = weights_file.read_bytes(), load_file(weights_file)
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        weights_file.write_bytes(damaged)
        with pytest.raises(UserError, match=r"model\.safetensors: damaged \(.*\); copy the run again$"):
            read_tensors(weights_file, needs_checksum=True)
    weights_file.write_bytes(content)
    assert same(read_tensors(weights_file, needs_checksum=True), written)


def test_weights_without_a_checksum_are_those_of_an_earlier_version(weights_file: Path) -> None:
    written = load_file(weights_file)
    save_file(written, weights_file, {"format": "pt"})
    assert same(read_tensors(weights_file, needs_checksum=False), written)
    with pytest.raises(UserError, match="its checksum is missing"):
        read_tensors(weights_file, needs_checksum=True)


@pytest.mark.parametrize("content", [b"", b"nonsense", pickle.dumps({"a": 1}), b"\xff" * 100])
def test_what_is_not_safetensors_is_refused(weights_file: Path, content: bytes) -> None:
    weights_file.write_bytes(content)
    with pytest.raises(UserError, match=r"model\.safetensors: damaged"):
        read_tensors(weights_file, needs_checksum=False)


def test_weights_of_another_model_are_refused() -> None:
    with pytest.raises(UserError, match=r"run/model.safetensors: .*hidden.bias has shape \(12,\), not \(14,\)"):
        restore_weights(make_model(size=14), collect_weights(make_model(size=12)), "run/model.safetensors")
    partial = collect_weights(make_model())
    del partial["norm.bias"]
    with pytest.raises(UserError, match=r"norm.bias is missing"):
        restore_weights(make_model(), partial, "run/model.safetensors")


def test_average_is_the_mean() -> None:
    parts = [
        {"a": torch.tensor([1.0, 2.0]), "b": torch.tensor([[3]])},
        {"a": torch.tensor([5.0, 0.0]), "b": torch.tensor([[5]])},
    ]
    average = average_weights(iter(parts))
    assert average["a"].tolist() == [3.0, 1.0]
    assert average["b"].tolist() == [[4]]
    assert average["a"].dtype == torch.float32
    assert average["b"].dtype == torch.int64
