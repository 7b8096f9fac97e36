"""`Translator.load` and the `translate` command on runs with real models."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file as save_tensors

import translator
from support.processes import environment
from translator import config, evaluate
from translator.data.tokenizer import Tokenizer
from translator.errors import UserError
from translator.runs.model import build_model
from translator.runs.weights import collect_weights
from translator.schema.data import TextDataConfig, TokenizerConfig
from translator.schema.decode import SearchOptions
from translator.schema.model import LstmConfig, TransformerConfig
from translator.schema.training import OptimConfig, TrainerConfig
from translator.translate import main

PAIRS = [
    ("A man reads a book.", "Ein Mann liest ein Buch."),
    ("Two dogs run through the snow.", "Zwei Hunde rennen durch den Schnee."),
    ("The house is red.", "Das Haus ist rot."),
] * 5
LINES = ["A dog reads.", "", "The man runs through the house."]


def make_run(folder: Path, model: config.ModelConfig, vocab_size: int = 300) -> Path:
    """A run as training leaves it, except that nothing was trained."""
    settings = config.Config(
        model=model,
        data=TextDataConfig(train="train", valid="valid"),
        tokenizer=TokenizerConfig(vocab_size=vocab_size),
        optim=OptimConfig(),
        trainer=TrainerConfig(),
        decode=SearchOptions(beam_size=3, max_length_ratio=1.0, max_length_extra=5),
    )
    tokenizer = Tokenizer.train(PAIRS, vocab_size=vocab_size)
    torch.manual_seed(1)
    module = build_model(model, tokenizer.source_vocab_size, tokenizer.target_vocab_size)
    folder.mkdir()
    config.save_file(settings, folder / "config.yaml")
    tokenizer.save(folder / "tokenizer")
    save_tensors(collect_weights(module), folder / "model.safetensors")
    (folder / "manifest.json").write_text(json.dumps({"format_version": 1}), encoding="utf-8")
    (folder / "metrics.json").write_text("{}", encoding="utf-8")
    return folder


SMALL_TRANSFORMER = {"model_size": 16, "feedforward_size": 32, "num_heads": 2, "encoder_layers": 1, "decoder_layers": 1}
SMALL_LSTM = {"embedding_size": 16, "hidden_size": 16, "attention_size": 16}


@pytest.fixture
def transformer(tmp_path: Path) -> Path:
    return make_run(tmp_path / "transformer", TransformerConfig(**SMALL_TRANSFORMER))


@pytest.fixture
def lstm(tmp_path: Path) -> Path:
    return make_run(tmp_path / "lstm", LstmConfig(**SMALL_LSTM))


def test_a_run_translates_in_a_few_lines(transformer: Path, lstm: Path) -> None:
    for run in (transformer, str(lstm)):
        loaded = translator.Translator.load(run, device="cpu")
        outputs = loaded.translate(LINES)
        assert len(outputs) == 3
        assert outputs[1] == ""
        assert outputs[0]
        assert loaded.options.beam_size == 3
        assert loaded.translate(LINES[2:]) == outputs[2:]


def test_runs_of_different_models_make_an_ensemble_if_they_share_their_vocabulary(
    transformer: Path, lstm: Path, tmp_path: Path
) -> None:
    together = translator.Translator.load([transformer, lstm], device="cpu")
    assert len(together.translate(LINES)) == 3
    other = make_run(tmp_path / "other", LstmConfig(**SMALL_LSTM), vocab_size=310)
    with pytest.raises(UserError, match="vocabulary is not that of"):
        translator.Translator.load([transformer, other], device="cpu")


def test_the_command_and_the_python_interface_agree(
    transformer: Path, lstm: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in.txt").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    expected = translator.Translator.load([transformer, lstm], device="cpu").translate(LINES)
    arguments = ["--model", str(transformer), "--model", str(lstm), str(tmp_path / "in.txt"), "--device", "cpu"]
    assert main(arguments) == 0
    assert capfd.readouterr().out == "".join(line.replace("\n", " ") + "\n" for line in expected)


@pytest.mark.parametrize("sample", [True, False])
def test_minimum_bayes_risk_from_python_and_the_command(
    sample: bool, transformer: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in.txt").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    loaded = translator.Translator.load(transformer, device="cpu", mbr=6, mbr_utility="bleu", sample=sample)
    best = [translation.outputs[0] for translation in loaded.translate_fully(LINES)]
    arguments = ["--model", str(transformer), str(tmp_path / "in.txt"), "--device", "cpu", "--scores", "--mbr", "6"]
    assert main([*arguments, "--mbr-utility", "bleu", *(["--sample"] if sample else [])]) == 0
    lines = [f"{output.text} ||| {output.score:.4f}".replace("\n", " ") for output in best]
    assert capfd.readouterr().out == "".join(line + "\n" for line in lines)
    assert all(0 <= output.score <= 100 for output in best)


def test_an_unfinished_run_is_used_with_a_note_and_latest_may_be_a_text_file(
    transformer: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (transformer / "metrics.json").unlink()  # written at the end of training
    (tmp_path / "latest").write_text("transformer\n", encoding="utf-8")
    (tmp_path / "in.txt").write_text("A dog.\n", encoding="utf-8")
    assert main(["--model", str(tmp_path / "latest"), str(tmp_path / "in.txt"), "--device", "cpu"]) == 0
    captured = capfd.readouterr()
    assert captured.out.count("\n") == 1
    assert captured.err.count("has not finished training") == 1


def test_damaged_weights_and_unknown_devices_get_one_clear_line(
    transformer: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for device in ("abacus", "meta", "cuda:99"):
        assert main(["--model", str(transformer), "--device", device]) == 2
        remedy = "there is no such device here; use auto, cpu, cuda, cuda:N or mps"
        assert capfd.readouterr().err == f"translate: --device {device}: {remedy}\n"
        with pytest.raises(UserError) as refusal:
            translator.Translator.load(transformer, device)
        assert str(refusal.value) == f"device={device}: {remedy}"
    texts = ["--source", __file__, "--reference", __file__]
    assert evaluate.main(["--model", str(transformer), *texts, "--device", "abacus"]) == 2
    assert capfd.readouterr().err == f"evaluate: --device abacus: {remedy}\n"
    (transformer / "model.safetensors").write_bytes(b"nonsense")
    assert main(["--model", str(transformer), "--device", "cpu"]) == 2
    error = capfd.readouterr().err
    assert "model.safetensors: damaged" in error
    assert error.count("\n") == 1


def test_importing_the_package_does_not_load_torch() -> None:
    code = "import sys, translator; assert 'torch' not in sys.modules; translator.nothing"
    result = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True)
    assert "has no attribute 'nothing'" in result.stderr


OF_TRAINING = {"matplotlib", "datasets", "sacrebleu", "tensorboard", "hydra", "pandas", "pyarrow"}
USES = {
    "command": "from translator.translate import main; main(['--quiet', '--device', 'cpu', '--model', run, text])",
    "python": "import translator; translator.Translator.load(run, device='cpu').translate(['A dog reads.'])",
    "engine": "import translator; translator.Translator.load(run, engine='ctranslate2').translate(['A dog reads.'])",
}


def test_translating_loads_nothing_that_only_training_needs(transformer: Path, tmp_path: Path) -> None:
    """One process uses it in all ways, one after another, and says each time what is loaded by then."""
    (tmp_path / "in.txt").write_text("A dog reads.\n", encoding="utf-8")
    code = "import sys; run, text = sys.argv[1:]; "
    code += "; ".join(f"{use}; print('\\nloaded by {name}:', *sys.modules)" for name, use in USES.items())
    command = [sys.executable, "-c", code, str(transformer), str(tmp_path / "in.txt")]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for name in USES:
        (line,) = [line for line in output.splitlines() if line.startswith(f"loaded by {name}: ")]
        loaded = {module.split(".")[0] for module in line.partition(": ")[2].split()}
        assert {"torch", "sentencepiece", "translator"} <= loaded
        assert not OF_TRAINING & loaded, name


@pytest.mark.parametrize(
    ("given", "expected"),
    [({}, "10000"), ({"GOMP_SPINCOUNT": "5"}, "5"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "None")],
    ids=["neither", "count", "policy"],
)
def test_threads_spin_briefly_unless_told_otherwise(given: dict[str, str], expected: str) -> None:
    unset = {name: value for name, value in environment().items() if not name.startswith(("GOMP_", "OMP_"))}
    command = [sys.executable, "-c", "import os, translator; print(os.environ.get('GOMP_SPINCOUNT'))"]
    output = subprocess.run(command, env=unset | given, check=True, capture_output=True, text=True).stdout
    assert output.strip() == expected
