"""The ONNX graphs compute what our Transformer computes."""

import re
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch

from support.exported_runs import PAIRS, SMALL, make_run
from translator.errors import UserError
from translator.export.__main__ import main
from translator.export.onnx import USAGE, DecoderStepGraph, EncoderGraph, supported, write
from translator.export.onnx_model import OnnxModel
from translator.ids import BOS, EOS, PAD
from translator.models.lstm import LstmSeq2Seq
from translator.models.transformer import Transformer
from translator.runs.loading import load_run
from translator.schema.model import TransformerConfig

SIZES = (40, 53)
VARIANTS = [
    {"norm_order": "pre", "norm": "layer", "activation": "relu", "positions": "sinusoidal"},
    {"norm_order": "post", "norm": "layer", "activation": "gelu", "positions": "learned"},
    {"norm_order": "pre", "norm": "rms", "activation": "swiglu", "positions": "rotary"},
    {"norm_order": "post", "norm": "rms", "activation": "relu", "positions": "none"},
]


@pytest.mark.parametrize("options", VARIANTS, ids=lambda options: "-".join(options.values()))
def test_step_by_step_the_graphs_give_the_logits_of_the_model(options: dict[str, str]) -> None:
    torch.manual_seed(1)
    model = Transformer(*SIZES, 16, 24, 2, 2, 3, tie_embeddings="target", **options).eval()  # type: ignore[arg-type]
    source = torch.randint(4, SIZES[0], (3, 9))
    source[0, 8], source[1, 5], source[1, 6:], source[2, 8] = EOS, EOS, PAD, EOS
    target = torch.randint(4, SIZES[1], (3, 7))
    target[:, 0] = BOS
    encoder, step = EncoderGraph(model), DecoderStepGraph(model)
    with torch.no_grad():
        expected = model.project(model(source, source != PAD, target).states)  # (B, T, V)
        cross = encoder(source)
        keys = values = cross[0][:, :, :, :0]
        for position in range(target.shape[1]):
            logits, keys, values = step(target[:, position], source, *cross, keys, values)
            assert torch.allclose(logits, expected[:, position], atol=1e-5)


@pytest.mark.parametrize(
    ("model", "named"),
    [
        (Transformer(40, 40, 16, 32, 2, 1, 1, score="gaussian"), "score"),
        (Transformer(40, 40, 16, 32, 2, 1, 1, positions="relative"), "relative"),
        (LstmSeq2Seq(40, 40, 8, 8, 8, 1, 1), "Transformers"),
    ],
    ids=["score", "relative", "lstm"],
)
def test_models_that_cannot_be_exported_are_refused(model: torch.nn.Module, named: str) -> None:
    with pytest.raises(UserError, match=named):
        supported(model)  # type: ignore[arg-type]


@pytest.mark.slow
def test_exported_graphs_take_any_batch_and_length(tmp_path: Path) -> None:
    run = load_run(make_run(tmp_path / "run", TransformerConfig(**SMALL), num_updates=0), torch.device("cpu"))
    (tmp_path / "exported").mkdir()
    write(run, tmp_path / "exported")
    exported = OnnxModel(tmp_path / "exported")
    assert isinstance(exported.encoder, onnxruntime.InferenceSession)
    for shape in ((1, 1), (1, 7), (3, 2)):
        source = torch.randint(4, 200, shape)
        mask = torch.ones(shape, dtype=torch.bool)
        tokens = torch.full(shape[:1], BOS)
        with torch.no_grad():
            state, other = (model.start(model.encode(source, mask)) for model in (run.model, exported))
            for _ in range(3):
                step, other_step = run.model.step(tokens, state), exported.step(tokens, other)
                assert np.allclose(step.logits, other_step.logits, atol=1e-4)
                tokens, state, other = step.logits.argmax(1), step.state, other_step.state
    with pytest.raises(TypeError, match="cannot be trained"):
        exported.output_weight  # noqa: B018


@pytest.mark.slow
def test_a_run_is_exported_and_used_as_its_card_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = TransformerConfig(**SMALL, positions="rotary", norm="rms", activation="swiglu", tie_embeddings="target")
    run = make_run(tmp_path / "run", model, joint=False)
    assert main([str(run), "--to", "onnx", "-o", str(tmp_path / "exported")]) == 0
    error = capsys.readouterr().err
    assert "greedy: 6 of 6 translations equal" in error
    assert "beam 3: 6 of 6 translations equal" in error
    program = (tmp_path / "exported" / "README.md").read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    lines = [source for source, _ in PAIRS]
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(compile(program.replace("Hello!", lines[2]), "card", "exec"), names)
    assert capsys.readouterr().out.strip() == PAIRS[2][1]
    translate = names["translate"]
    assert callable(translate)
    assert translate(lines) == [target for _, target in PAIRS]


def test_the_documented_program_is_that_of_the_card() -> None:
    """Another test runs that program."""
    page = (Path(__file__).parents[2] / "docs" / "export.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert program.strip() == USAGE.replace("FOLDER", "exported").strip()
