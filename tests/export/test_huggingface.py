"""Hugging Face's classes compute what our Transformer computes."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from transformers import AutoModelForSeq2SeqLM

from support.exported_runs import PAIRS, SMALL, make_run
from translator.errors import UserError
from translator.export.__main__ import main
from translator.export.huggingface_model import make_configuration, supported, weights
from translator.ids import BOS, EOS, PAD
from translator.models.lstm import LstmSeq2Seq
from translator.models.transformer import Transformer
from translator.schema.model import TransformerConfig

# Every kind that can be exported: norm_order, positions, tie_embeddings, vocabulary sizes, activation.
VARIANTS = [
    (norm_order, positions, tie, sizes, activation)
    for norm_order, positions, activation in (
        ("pre", "sinusoidal", "relu"),
        ("pre", "learned", "gelu"),
        ("pre", "none", "relu"),
        ("post", "sinusoidal", "gelu"),
    )
    for tie, sizes in (("all", (40, 40)), ("target", (40, 53)), ("none", (53, 40)))
]


def transformer(sizes: tuple[int, int] = (40, 40), **options: str) -> Transformer:
    torch.manual_seed(1)
    model = Transformer(*sizes, 16, 24, 2, encoder_layers=2, decoder_layers=3, max_positions=30, **options)
    with torch.no_grad():  # peaked distributions, and non-trivial biases and gains
        for parameter in model.parameters():
            parameter.copy_(2 * parameter + 0.1 * torch.randn_like(parameter))
    return model.eval()


@pytest.mark.parametrize(("norm_order", "positions", "tie", "sizes", "activation"), VARIANTS)
def test_logits_agree_also_after_it_is_loaded_and_saved_again(
    norm_order: str, positions: str, tie: str, sizes: tuple[int, int], activation: str, tmp_path: Path
) -> None:
    options = {"norm_order": norm_order, "activation": activation, "positions": positions, "tie_embeddings": tie}
    model = transformer(sizes, **options)
    configuration = make_configuration(supported(model))
    configuration.save_pretrained(tmp_path)
    tensors = {name: tensor.detach().contiguous() for name, tensor in weights(model, configuration)}
    save_file(tensors, tmp_path / "model.safetensors", {"format": "pt"})
    loaded, report = AutoModelForSeq2SeqLM.from_pretrained(tmp_path, output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    assert not report["mismatched_keys"]
    loaded.save_pretrained(tmp_path / "saved again")  # as after fine-tuning
    assert_equal_logits(model, loaded, sizes)
    assert_equal_logits(model, AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "saved again"), sizes)


def assert_equal_logits(model: Transformer, exported: torch.nn.Module, sizes: tuple[int, int]) -> None:
    generator = torch.Generator().manual_seed(2)
    source = torch.randint(4, sizes[0], (3, 9), generator=generator)
    source[0, 8], source[1, 5], source[1, 6:], source[2, 8] = EOS, EOS, PAD, EOS
    target = torch.randint(4, sizes[1], (3, 7), generator=generator)
    target[:, 0] = BOS
    with torch.no_grad():
        model, exported = model.double(), exported.double().eval()  # so that rounding cannot hide or fake a difference
        ours = model.project(model(source, source != PAD, target).states)
        theirs = exported(input_ids=source, attention_mask=source != PAD, decoder_input_ids=target).logits
    assert torch.allclose(ours, theirs[..., : sizes[1]], atol=1e-9)
    assert bool((theirs[..., sizes[1] :] < -1e3).all())  # rows that only pad the smaller vocabulary


@pytest.mark.parametrize(
    ("model", "named"),
    [
        (Transformer(40, 40, 16, 32, 2, 1, 1, score="cosine"), "score"),
        (Transformer(40, 40, 16, 32, 2, 1, 1, positions="rotary"), "rotary"),
        (Transformer(40, 40, 16, 32, 2, 1, 1, positions="relative"), "relative"),
        (Transformer(40, 40, 16, 32, 2, 1, 1, norm="rms"), "rms"),
        (Transformer(40, 40, 16, 32, 2, 1, 1, activation="swiglu"), "swiglu"),
        (
            Transformer(40, 40, 16, 32, 2, 1, 1, norm_order="post", positions="learned"),
            "positions=learned: with norm_order=post.* norm_order=pre or positions=sinusoidal$",
        ),
        (Transformer(40, 40, 16, 32, 2, 1, 1, norm_order="post", positions="none"), "positions=none: with norm_order"),
        (LstmSeq2Seq(40, 40, 8, 8, 8, 1, 1), "LSTM"),
    ],
    ids=["score", "rotary", "relative", "rms", "swiglu", "post-learned", "post-none", "lstm"],
)
def test_models_without_an_equivalent_class_are_refused(model: torch.nn.Module, named: str) -> None:
    with pytest.raises(UserError, match=named):
        supported(model)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "joint", "norm_order"), [("bpe", True, "pre"), ("unigram", False, "post")], ids=["joint", "separate"]
)
def test_a_run_is_exported_and_used_as_its_card_says(
    kind: str,
    joint: bool,
    norm_order: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tie = "all" if joint else "target"
    model = TransformerConfig(**SMALL, norm_order=norm_order, tie_embeddings=tie)  # type: ignore[arg-type]
    run = make_run(tmp_path / "run", model, kind=kind, joint=joint)
    assert main([str(run), "--to", "huggingface", "-o", str(tmp_path / "exported")]) == 0
    error = capsys.readouterr().err
    assert "greedy: 6 of 6 translations equal" in error
    assert "beam 3: 6 of 6 translations equal" in error
    card = (tmp_path / "exported" / "README.md").read_text(encoding="utf-8")
    program = card.split("```python\n")[1].split("```")[0].replace("Hello!", PAIRS[1][0])
    monkeypatch.chdir(tmp_path)
    exec(compile(program, "card", "exec"), {})
    assert capsys.readouterr().out.strip() == PAIRS[1][1]
