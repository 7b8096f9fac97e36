"""A real run with any of its files damaged in any way: refused in one line, or used with the correct result."""

import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors.torch import save_file

from support.configurations import configuration
from translator import Translator, cli, evaluate, train, translate
from translator.errors import UserError
from translator.files.checksums import write_checksums
from translator.runs.weights import read_tensors

TINY = [
    *(
        "trainer=smoke",
        "trainer.max_updates=4",
        "trainer.validate_every=2",
        "trainer.keep_best=1",
        "trainer.device=cpu",
    ),
    *("model=lstm_small", "model.embedding_size=8", "model.hidden_size=8", "model.attention_size=8"),
    *("data.num_train=60", "data.num_valid=4", "data.num_test=2", "tokenizer.vocab_size=600", "decode=greedy"),
    *("trainer.ema_decay=0.9", "trainer.num_samples=0", "trainer.report=false"),
]
LINES = ["The dog sleeps.", "", "Anna reads a book."]


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def flip_near_the_start(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 20] ^= 4
    path.write_bytes(content)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "flip": flip,
    "flip near the start": flip_near_the_start,
    "cut": lambda path: os.truncate(path, path.stat().st_size // 2),
    "cut at the end": lambda path: os.truncate(path, path.stat().st_size - 2),
    "empty": lambda path: path.write_bytes(b""),
    "missing": lambda path: path.unlink(),
    "a list": lambda path: path.write_text("[1, 2]\n"),
    "a number": lambda path: path.write_text("7"),
    "an empty object": lambda path: path.write_text("{}"),
    "deep": lambda path: path.write_text("[" * 5_000),
    "binary": lambda path: path.write_bytes(bytes(range(256)) * 20),
    "a pickle": lambda path: path.write_bytes(pickle.dumps({"a": [1, 2]})),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
}
OF_THE_MODEL = [
    "config.yaml",
    "manifest.json",
    "model.safetensors",
    "tokenizer/tokenizer.json",
    "tokenizer/joint.model",
]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    places = [f"run_dir={folder / 'run'}", f"data.folder={folder / 'demo'}", f"data.cache_dir={folder / 'cache'}"]
    train.run(configuration(*TINY, *places))
    return folder / "run"


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


@pytest.fixture(scope="module")
def translation(finished: Path) -> list[str]:
    return Translator.load(finished, device="cpu").translate(LINES)


@pytest.mark.parametrize("name", OF_THE_MODEL)
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_model_is_refused_or_translates_as_before(
    run: Path, translation: list[str], name: str, damage: str, capfd: pytest.CaptureFixture[str]
) -> None:
    DAMAGE[damage](run / name)
    source, output = run / "in.txt", run / "out.txt"
    source.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    code = translate.main([str(source), "-o", str(output), "--model", str(run), "--quiet", "--device", "cpu"])
    error = capfd.readouterr().err
    if code == 0:
        assert output.read_text(encoding="utf-8").split("\n")[:-1] == translation
        assert name in ("manifest.json", "config.yaml"), "the parts of them that are needed are intact"
    else:
        assert code == 2
        assert error.count("\n") == 1
        assert str(run) in error
        with pytest.raises(UserError) as caught:
            Translator.load(run, device="cpu")
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", OF_THE_MODEL)
def test_evaluation_refuses_what_is_damaged(run: Path, name: str, capfd: pytest.CaptureFixture[str]) -> None:
    DAMAGE["cut"](run / name)
    texts = run / "in.txt"
    texts.write_text("The dog sleeps.\n", encoding="utf-8")
    arguments = ["--model", str(run), "--source", str(texts), "--reference", str(texts), "--device", "cpu"]
    assert evaluate.main(arguments) == 2
    error = capfd.readouterr().err
    assert f"{run / name}: damaged" in error or "tokenizer.json: damaged" in error
    assert error.count("\n") == 1


NEWEST = "checkpoints/step-00000004"
RESUMED = [
    *((name, "cut") for name in OF_THE_MODEL),
    ("manifest.json", "an empty object"),
    ("tokenizer/joint.model", "flip"),
    ("tokenizer/tokenizer.json", "missing"),
    ("checkpoints/index.json", "binary"),
    (f"{NEWEST}/optimizer.safetensors", "missing"),
    (f"{NEWEST}/state.json", "deep"),
    (f"{NEWEST}/checksums.json", "an empty object"),
]


def resumed(run: Path) -> str | None:
    """Resumes the run as if it had not reached its end; returns the message if that is refused."""
    (run / "metrics.json").unlink()
    try:
        cli.main(train.run, [f"resume={run}"])
    except UserError as error:
        return str(error)
    return None


@pytest.mark.parametrize(("name", "damage"), RESUMED)
def test_a_damaged_run_is_refused_or_resumed_to_the_same_end(
    finished: Path, run: Path, name: str, damage: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """A damaged checkpoint is skipped: the run continues from the one before and reaches the same weights again."""
    DAMAGE[damage](run / name)
    refusal = resumed(run)
    if refusal is not None:
        assert str(run) in refusal
        assert "\n" not in refusal
        assert name in OF_THE_MODEL
        return
    expected, found = (read_tensors(folder / "model.safetensors", needs_checksum=True) for folder in (finished, run))
    assert expected.keys() == found.keys()
    assert all(expected[key].equal(found[key]) for key in expected)
    assert ("is damaged" in capfd.readouterr().err) == name.startswith(NEWEST)


def test_all_checkpoints_damaged(run: Path) -> None:
    for path in run.glob("checkpoints/step-*/state.json"):
        flip(path)
    with pytest.raises(UserError, match=r"checkpoints: every checkpoint is damaged; start a new run"):
        cli.main(train.run, [f"resume={run}", "trainer.max_updates=8"])


def test_a_run_or_checkpoint_of_a_newer_version_is_refused(run: Path, finished: Path) -> None:
    manifest = run / "manifest.json"
    newer = json.loads(manifest.read_text()) | {"format_version": 2}
    manifest.write_text(json.dumps(newer))
    for use in (lambda: Translator.load(run), lambda: cli.main(train.run, [f"resume={run}"])):
        with pytest.raises(UserError, match=r"newer version of translator \(format 2.*\); update translator$"):
            use()
    shutil.copy(finished / "manifest.json", manifest)
    checkpoint = run / NEWEST
    state = json.loads((checkpoint / "state.json").read_text()) | {"format_version": 2}
    (checkpoint / "state.json").write_text(json.dumps(state))
    (checkpoint / "checksums.json").unlink()
    write_checksums(checkpoint)
    with pytest.raises(UserError, match=r"step-00000004: written by a newer version .*; update translator$"):
        cli.main(train.run, [f"resume={run}", "trainer.max_updates=8"])


def test_weights_without_checksum_are_refused_unless_an_earlier_version_made_the_run(
    run: Path, translation: list[str]
) -> None:
    tensors = read_tensors(run / "model.safetensors", needs_checksum=True)
    save_file(tensors, run / "model.safetensors", {"format": "pt"})
    with pytest.raises(UserError, match=r"model\.safetensors: damaged \(its checksum is missing\)"):
        Translator.load(run)
    manifest = json.loads((run / "manifest.json").read_text())
    del manifest["weights_have_checksums"], manifest["manifest_sha256"]
    (run / "manifest.json").write_text(json.dumps(manifest))
    assert Translator.load(run, device="cpu").translate(LINES) == translation


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"a\0b", b"nowhere"])
def test_latest_that_names_no_run(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "latest").write_bytes(content)
    with pytest.raises(UserError, match=str(tmp_path)):
        Translator.load(tmp_path / "latest")
